#include "cli/bench/mha.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/bench/table.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 31;

// Fills in the defaults. Throws on invalid options.
bench::MhaPlan completed(const bench::MhaPlan& given) {
  bench::MhaPlan plan = given;
  bench::MhaSizes& sizes = plan.sizes;
  if (sizes.kv_heads == 0) sizes.kv_heads = sizes.heads;
  if (plan.variants.empty()) {
    for (const auto& each : bench::kMhaVariants) plan.variants.push_back(each.second);
  }
  if (sizes.embed % sizes.heads != 0) {
    throw UsageError(
        fmt::format("bench: an embedding size of {} is not divisible by {} heads; --heads must divide --embed",
                    sizes.embed, sizes.heads));
  }
  if (sizes.heads % sizes.kv_heads != 0) {
    throw UsageError(fmt::format("bench: {} cannot share {} evenly; --kv-heads must divide --heads",
                                 counted(sizes.heads, "head"), counted(sizes.kv_heads, "kv head")));
  }
  // A duplicate would be compared with itself.
  const auto require_once = [](auto list, const char* option) {
    std::ranges::sort(list);
    if (std::ranges::adjacent_find(list) != list.end()) {
      throw UsageError(fmt::format("bench: {} lists a value twice", option));
    }
  };
  require_once(plan.variants, "--variants");
  require_once(plan.threads, "--threads");

  constexpr double kMostElements = 1e11;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  double largest = std::max(3.0 * real(sizes.batch) * real(sizes.tokens), 3.0 * real(sizes.embed)) * real(sizes.embed);
  for (const bench::MhaVariant variant : plan.variants) {
    const double plane = real(sizes.batch) * real(sizes.tokens) * real(sizes.tokens);
    if (bench::weights_of(variant) == ReturnWeights::mean) largest = std::max(largest, plane);
    if (variant == bench::MhaVariant::plain || variant == bench::MhaVariant::all_weights) {
      largest = std::max(largest, plane * real(sizes.heads));
    }
  }
  if (largest > kMostElements) {
    throw UsageError(
        fmt::format("bench: mha with these sizes needs tensors of {:.1e} elements; use smaller sizes", largest));
  }
  plan.progress = show_progress;
  return plan;
}

nlohmann::ordered_json as_json(const bench::MhaSizes& sizes, const bench::MhaReport& report) {
  nlohmann::ordered_json data;
  data["schema"] = 1;
  data["machine"] = as_json(BenchMachine::here());
  data["sizes"] = {{"batch", sizes.batch}, {"tokens", sizes.tokens},     {"embed", sizes.embed},
                   {"heads", sizes.heads}, {"kv_heads", sizes.kv_heads}, {"causal", sizes.causal}};
  data["flops"] = sizes.flops();
  data["baselines"] = nlohmann::ordered_json::array();
  for (const bench::MhaBaseline& each : report.baselines) {
    const bool found = !each.library.empty();
    nlohmann::ordered_json baseline;
    baseline["threads"] = each.threads;
    baseline["sgemm_library"] = found ? nlohmann::ordered_json(each.library) : nlohmann::ordered_json(nullptr);
    baseline["sgemm_gflops"] = or_null(found ? std::optional(each.sgemm_gflops.median()) : std::nullopt);
    data["baselines"].push_back(std::move(baseline));
  }
  data["cases"] = nlohmann::ordered_json::array();
  for (const bench::MhaResult& result : report.results) {
    nlohmann::ordered_json each;
    each["name"] = result.name();
    each["variant"] = name_of(result.variant);
    each["type"] = rapt::name_of(bench::type_of(result.variant));
    each["threads"] = result.threads;
    each["error"] = result.check.error;
    put_times(result.ms, each);
    each["flops"] = sizes.flops(result.variant);
    each["gflops"] = result.gflops.median();
    each["time_over_sgemm"] = or_null(report.time_over_sgemm(result));
    each["time_over_packed"] = or_null(report.time_over_packed(result));
    data["cases"].push_back(std::move(each));
  }
  return data;
}

void show(Page& page, const bench::MhaSizes& sizes, const bench::MhaReport& report) {
  const BenchMachine machine = BenchMachine::here();
  page.heading("rapt bench mha", fmt::format("{} · {}", machine.cpu, machine.isa));
  page.line();
  const std::string kv = sizes.kv_heads == sizes.heads ? "" : " on " + counted(sizes.kv_heads, "kv head");
  page.prose(fmt::format("batch {}, {} tokens, width {}, {}{}{}: {} GFLOP of useful work", sizes.batch, sizes.tokens,
                         sizes.embed, counted(sizes.heads, "head"), kv, sizes.causal ? ", causal" : "",
                         number(sizes.flops() / 1e9)));
  std::vector<std::vector<std::string>> rows{{"variant", "ms", "spread", "GFLOP/s", "/sgemm", "×"}};
  for (const bench::MhaResult& result : report.results) {
    rows.push_back({result.name(), number(result.ms.median()), spread(result.ms), number(result.gflops.median()),
                    ratio(report.time_over_sgemm(result)), ratio(report.time_over_packed(result))});
  }
  show_table(page, rows);
  page.line();
  page.quiet(
      "Medians over rounds; ratios are taken within a round. Useful work: the projections and the visible (query, key) "
      "pairs; with backward, 3 times the projections and 3.5 times the pairs. /sgemm: time relative to the same work "
      "at the rate of the fastest sgemm (2048³). ×: time relative to packed qkv.");
}

}  // namespace

void add_bench_mha(Command& bench, MhaOptions& options) {
  Command command = bench.below("mha", "The multi-head attention layer: ways to build it, and a training step");
  const auto size = [&](const std::string& name, std::int64_t& value, const std::string& help) {
    command.whole(name, value, kMostSize - 1, help);
  };
  size("--batch", options.plan.sizes.batch, "Batch size (default 8)");
  size("--tokens", options.plan.sizes.tokens, "Sequence length (default 1024)");
  size("--embed", options.plan.sizes.embed, "Embedding size (default 768)");
  size("--heads", options.plan.sizes.heads, "Query heads (default 12)");
  size("--kv-heads", options.plan.sizes.kv_heads, "Key/value heads (default: as --heads)");
  static constexpr std::array<std::pair<std::string_view, bool>, 2> kYesNo{{{"yes", true}, {"no", false}}};
  command.choice("--causal", options.plan.sizes.causal, kYesNo, "Causal mask (default yes)");
  command.choices("--variants", options.plan.variants, bench::kMhaVariants,
                  "Ways to build the layer, as a list (default: all)");
  add_plan_options(command, options);
}

ExitCode run_bench_mha(const MhaOptions& options) {
  const bench::MhaPlan plan = completed(options.plan);
  const bench::MhaReport report = measured([&] { return bench::run_mha_rounds(plan); });

  if (!all_good(report.results, [](const bench::MhaResult& each) { return each.name(); })) {
    return ExitCode::numbers_differ;
  }
  if (report.baselines[0].library.empty()) say_no_sgemm();

  return print_result(
      options, [&] { return as_json(plan.sizes, report).dump(2); },
      [&](Page& page) { show(page, plan.sizes, report); });
}

}  // namespace rapt::cli
