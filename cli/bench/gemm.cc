#include "cli/bench/gemm.h"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/bench/table.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 31;
constexpr std::array<std::pair<std::string_view, DType>, 3> kTypes{
    {{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}}};

// "1024x4096"
bench::GemmShape shape_of(const std::string& text) {
  const std::vector<std::string> sizes = split(text, 'x');
  if (sizes.size() != 2) {
    throw BadValue("--shape", fmt::format("'{}' is not KxN, such as 1024x4096", text));
  }
  return {whole_number("--shape", sizes[0], 1, kMostSize - 1), whole_number("--shape", sizes[1], 1, kMostSize - 1)};
}

std::optional<double> over_sgemm(const bench::GemmResult& result) {
  const bench::LibrarySamples* best = result.best_library();
  return best == nullptr ? std::nullopt : bench::median_ratio(result.gflops, best->gflops);
}

nlohmann::ordered_json as_json(const bench::GemmResult& result) {
  const bench::GemmCase& c = result.parameters;
  const bench::LibrarySamples* best = result.best_library();
  const bool streamed = !result.stream_gbps.empty();
  nlohmann::ordered_json data;
  data["name"] = c.name();
  data["rows"] = c.rows;
  data["inputs"] = c.shape.inputs;
  data["outputs"] = c.shape.outputs;
  data["type"] = name_of(c.type);
  data["threads"] = c.threads;
  data["error"] = result.check.error;
  put_times(result.ms, data);
  data["flops"] = c.flops();
  data["bytes"] = c.weight_bytes();
  data["gflops"] = result.gflops.median();
  data["gbps"] = result.gbps.median();
  data["libraries"] = nlohmann::ordered_json::object();
  for (const bench::LibrarySamples& each : result.libraries) data["libraries"][each.name] = each.gflops.median();
  data["sgemm_library"] = best == nullptr ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(best->name);
  data["over_sgemm"] = or_null(over_sgemm(result));
  data["stream_gbps"] = or_null(streamed ? std::optional(result.stream_gbps.median()) : std::nullopt);
  data["stream_way"] = streamed ? nlohmann::ordered_json(result.stream_way) : nlohmann::ordered_json(nullptr);
  data["over_stream"] = or_null(bench::median_ratio(result.gbps, result.stream_gbps));
  return data;
}

nlohmann::ordered_json as_json(const std::vector<bench::GemmResult>& results) {
  nlohmann::ordered_json data;
  data["schema"] = 1;
  data["machine"] = as_json(BenchMachine::here());
  data["cases"] = nlohmann::ordered_json::array();
  for (const bench::GemmResult& each : results) data["cases"].push_back(as_json(each));
  return data;
}

void show(Page& page, const std::vector<bench::GemmResult>& results) {
  const BenchMachine machine = BenchMachine::here();
  page.heading("rapt bench gemm", fmt::format("{} · {}", machine.cpu, machine.isa));
  std::vector<std::vector<std::string>> rows{{"case", "ms", "spread", "GFLOP/s"}};
  for (const bench::LibrarySamples& each : results[0].libraries) rows[0].push_back(each.name);
  rows[0].insert(rows[0].end(), {"/best", "GB/s", "read", "/read"});
  for (const bench::GemmResult& result : results) {
    rows.push_back(
        {result.parameters.name(), number(result.ms.median()), spread(result.ms), number(result.gflops.median())});
    for (const bench::LibrarySamples& each : result.libraries) rows.back().push_back(number(each.gflops.median()));
    rows.back().push_back(ratio(over_sgemm(result)));
    rows.back().push_back(number(result.gbps.median()));
    rows.back().push_back(result.stream_gbps.empty() ? "–" : number(result.stream_gbps.median()));
    rows.back().push_back(ratio(bench::median_ratio(result.gbps, result.stream_gbps)));
  }
  show_table(page, rows);
  page.line();
  page.quiet(
      "Medians over rounds; ratios are taken within a round. /best: relative to the fastest library, whose sgemm is "
      "f32 and packs W in every call. GB/s: the rate at which W is read. read: the fastest streaming read of the same "
      "bytes.");
}

}  // namespace

void add_bench_gemm(Command& bench, GemmOptions& options) {
  Command command = bench.below(
      "gemm",
      "The packed product y = x·Wᵀ, compared with every sgemm found; lists such as --rows 1,32 time every combination");
  command.numbers("--rows", options.plan.rows, kMostSize - 1, "Rows of x (default 1,8,32,128,512,2048)");
  command.one("--shape", "KxN,…", "Input and output sizes of W (default 1024x1024)",
              [&options](const std::string& text) {
                options.plan.shapes.clear();
                for (const std::string& part : split(text)) options.plan.shapes.push_back(shape_of(part));
              });
  command.choices("--type", options.plan.types, kTypes, "Storage type of W; x and y are f32 (default f32)");
  add_plan_options(command, options);
}

ExitCode run_bench_gemm(const GemmOptions& options) {
  bench::GemmPlan plan = options.plan;
  plan.progress = show_progress;
  const std::vector<bench::GemmResult> results = measured([&] { return bench::run_gemm_rounds(plan); });
  if (!all_good(results, [](const bench::GemmResult& each) { return each.parameters.name(); })) {
    return ExitCode::numbers_differ;
  }
  if (results[0].libraries.empty()) say_no_sgemm();

  return print_result(
      options, [&] { return as_json(results).dump(2); }, [&](Page& page) { show(page, results); });
}

}  // namespace rapt::cli
