#include "cli/bench/decode.h"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/bench/table.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 31;
constexpr std::array<std::pair<std::string_view, DType>, 4> kTypes{
    {{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}, {"i8", DType::i8}}};

const bench::DecodeResult* find(const std::vector<bench::DecodeResult>& results, DType type, bool paged, int threads) {
  for (const bench::DecodeResult& each : results) {
    if (each.type == type && each.paged == paged && each.threads == threads) return &each;
  }
  return nullptr;
}

// Time relative to that of another cache, if it was timed too.
std::optional<double> time_over(const bench::DecodeResult& result, const bench::DecodeResult* other) {
  return other == nullptr ? std::nullopt : bench::median_ratio(result.ms, other->ms);
}

nlohmann::ordered_json as_json(const bench::DecodePlan& plan, const std::vector<bench::DecodeResult>& results) {
  nlohmann::ordered_json data;
  data["schema"] = 1;
  data["machine"] = as_json(BenchMachine::here());
  data["sizes"] = {{"batch", plan.batch}, {"cached", plan.cached},     {"embed", plan.embed},
                   {"heads", plan.heads}, {"kv_heads", plan.kv_heads}, {"page_size", plan.page_size}};
  data["cases"] = nlohmann::ordered_json::array();
  for (const bench::DecodeResult& result : results) {
    const bench::DecodeResult* f32 = find(results, DType::f32, result.paged, result.threads);
    nlohmann::ordered_json each;
    each["name"] = result.name();
    each["type"] = rapt::name_of(result.type);
    each["paged"] = result.paged;
    each["threads"] = result.threads;
    each["error"] = result.error;
    put_times(result.ms, each);
    each["weight_bytes"] = result.weight_bytes;
    each["cache_bytes"] = result.cache_bytes;
    each["cache_bytes_over_f32"] =
        or_null(f32 == nullptr ? std::nullopt : std::optional(result.cache_bytes / f32->cache_bytes));
    each["gbps"] = result.gbps.median();
    each["stream_gbps"] = result.stream_gbps.median();
    each["time_over_stream"] = or_null(bench::median_ratio(result.stream_gbps, result.gbps));
    each["time_over_f32"] = or_null(time_over(result, f32));
    each["time_over_contiguous"] = or_null(time_over(result, find(results, result.type, false, result.threads)));
    data["cases"].push_back(std::move(each));
  }
  return data;
}

void show(Page& page, const bench::DecodePlan& plan, const std::vector<bench::DecodeResult>& results) {
  const BenchMachine machine = BenchMachine::here();
  page.heading("rapt bench decode", fmt::format("{} · {}", machine.cpu, machine.isa));
  page.line();
  page.prose(fmt::format("one token, {} cached, batch {}, width {}, {} on {}, page size {}", plan.cached, plan.batch,
                         plan.embed, counted(plan.heads, "head"), counted(plan.kv_heads, "kv head"), plan.page_size));
  std::vector<std::vector<std::string>> rows{
      {"cache", "ms", "spread", "MB", "GB/s", "read", "/read", "/contiguous", "error"}};
  for (const bench::DecodeResult& result : results) {
    const bench::DecodeResult* contiguous = find(results, result.type, false, result.threads);
    rows.push_back({result.name(), number(result.ms.median()), spread(result.ms),
                    number((result.weight_bytes + result.cache_bytes) / 1e6), number(result.gbps.median()),
                    number(result.stream_gbps.median()), ratio(bench::median_ratio(result.stream_gbps, result.gbps)),
                    ratio(time_over(result, contiguous)), fmt::format("{:.1e}", result.error)});
  }
  show_table(page, rows);
  page.line();
  page.quiet(
      "Medians over rounds; ratios are taken within a round. MB: weights, keys and values, each read once. /read: time "
      "relative to a streaming read of the same bytes. error: relative error of the output, compared with an f32 "
      "cache.");
}

}  // namespace

void add_bench_decode(Command& bench, DecodeOptions& options) {
  Command command = bench.below(
      "decode", "The layer decoding one token with a long KV cache, compared with a streaming read of its bytes");
  const auto size = [&](const std::string& name, std::int64_t& value, const std::string& help) {
    command.whole(name, value, kMostSize - 1, help);
  };
  size("--batch", options.plan.batch, "Sequences (default 1)");
  size("--cached", options.plan.cached, "Cached tokens per sequence (default 8192)");
  size("--embed", options.plan.embed, "Embedding size (default 1024)");
  size("--heads", options.plan.heads, "Query heads (default 16)");
  size("--kv-heads", options.plan.kv_heads, "Key/value heads (default: as --heads)");
  size("--page-size", options.plan.page_size, "Page size, in tokens (default 64)");
  command.choices("--type", options.plan.types, kTypes, "Element types of the cache (default f32,bf16,f16,i8)");
  add_plan_options(command, options);
}

ExitCode run_bench_decode(const DecodeOptions& options) {
  bench::DecodePlan plan = options.plan;
  if (plan.kv_heads == 0) plan.kv_heads = plan.heads;
  plan.progress = show_progress;
  const std::vector<bench::DecodeResult> results = measured([&] { return bench::run_decode_rounds(plan); });
  bool good = true;
  for (const bench::DecodeResult& result : results) {
    if (result.error <= result.limit()) continue;
    good = false;
    fmt::print(stderr, "rapt: bench: {}: error {:.1e} exceeds the limit {:.1e}\n", result.name(), result.error,
               result.limit());
  }
  if (!good) return ExitCode::numbers_differ;
  return print_result(
      options, [&] { return as_json(plan, results).dump(2); }, [&](Page& page) { show(page, plan, results); });
}

}  // namespace rapt::cli
