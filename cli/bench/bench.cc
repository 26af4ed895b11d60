#include "cli/bench/bench.h"

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/harness/rounds.h"
#include "cli/bench/measured.h"
#include "cli/bench/report.h"
#include "cli/command.h"
#include "cli/terminal/output.h"
#include "cli/terminal/page.h"
#include "rapt/cuda.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMostDim = 512;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

constexpr std::array<std::pair<std::string_view, DType>, 4> kTypes{
    {{"f32", DType::f32}, {"f64", DType::f64}, {"bf16", DType::bf16}, {"f16", DType::f16}}};
constexpr std::array<std::pair<std::string_view, bench::BenchMask>, 5> kMasks{
    {{"none", bench::BenchMask::none},
     {"bool", bench::BenchMask::bool_full},
     {"float", bench::BenchMask::float_full},
     {"bool-plane", bench::BenchMask::bool_plane},
     {"float-plane", bench::BenchMask::float_plane}}};
constexpr std::array<std::pair<std::string_view, bench::BenchWeights>, 3> kWeights{
    {{"none", bench::BenchWeights::none}, {"mean", bench::BenchWeights::mean}, {"all", bench::BenchWeights::all}}};
constexpr std::array<std::pair<std::string_view, Engine>, 3> kEngines{
    {{"auto", Engine::automatic}, {"cpu", Engine::cpu}, {"reference", Engine::reference}}};
constexpr std::array<std::pair<std::string_view, Device::Kind>, 2> kDevices{
    {{"cpu", Device::Kind::cpu}, {"cuda", Device::Kind::cuda}}};
// "256,0", "256,open" or "none".
Window window_of(const std::string& text) {
  if (text == "none") return {};
  const std::vector<std::string> sides = split(text);
  if (sides.size() != 2) {
    throw BadValue("--window", fmt::format("'{}' is not LEFT,RIGHT, such as 256,0 or 256,open", text));
  }
  const auto side = [](const std::string& keys) -> std::optional<std::int64_t> {
    if (keys == "open") return std::nullopt;
    return whole_number("--window", keys, 0, kMostElements);
  };
  return {side(sides[0]), side(sides[1])};
}

// Options are read in the order in which they are added, so other options override this preset.
void add_decode(Command& command, bench::BenchSweep& sweep) {
  command.flag(
      "--decode",
      [&sweep] {
        sweep.heads = {32}, sweep.kv_heads = {8}, sweep.queries = {1}, sweep.keys = {32768};
        sweep.dtype = {DType::f32, DType::bf16, DType::f16};
      },
      "Decoding preset: 1 query on 32768 keys, 32 heads on 8 kv heads, in f32, bf16 and f16");
}

void add_cases(Command& command, bench::BenchSweep& sweep) {
  command.numbers("--batch", sweep.batch, kMostElements, "Batch size (default 1)");
  command.numbers("--heads", sweep.heads, kMostElements, "Query heads (default 8)");
  command.numbers("--kv-heads", sweep.kv_heads, kMostElements, "Key/value heads (default: as --heads)");
  command.numbers("--queries", sweep.queries, kMostElements, "Queries (default 2048)");
  command.numbers("--keys", sweep.keys, kMostElements,
                  "Keys (default: as --queries); if they differ, the last query is aligned with the last key");
  command.numbers("--dim", sweep.dim, kMostDim, "Head size (default 128)");
  command.choices("--dtype", sweep.dtype, kTypes, "Element type (default f32)");
  command.one_or_none("--causal", "[yes|no|both]", "Causal mask (default no); both: time with and without it",
                      [&sweep](const std::string& which) {
                        static constexpr std::array<std::pair<std::string_view, int>, 4> kWhich{
                            {{"", 1}, {"yes", 1}, {"no", 0}, {"both", 2}}};
                        const int how = chosen("--causal", which, kWhich);
                        sweep.causal = how == 2 ? std::vector<bool>{false, true} : std::vector<bool>{how == 1};
                      });
  command.many("--window", "LEFT,RIGHT",
               "Sliding window: keys before and after each query (default: none); repeat it to sweep",
               [&sweep](const std::vector<std::string>& windows) {
                 sweep.window.clear();
                 for (const std::string& each : windows) sweep.window.push_back(window_of(each));
               });
  command.choices("--mask", sweep.mask, kMasks,
                  "Mask of shape (B, Hq, Lq, Lk), or (Lq, Lk) for the -plane kinds (default: none)");
  command.numbers("--threads", sweep.threads, kMostThreads, "Threads (default 1)");
}

// The options that `rapt bench attention` and `rapt bench backward` share.
void add_common(Command& command, BenchOptions& options) {
  command.choice("--engine", options.engine, kEngines, "Engine (default auto)");
  command.choice("--device", options.device, kDevices, "Device of the tensors; cuda is the first GPU (default cpu)");
  command.flag(
      "--baseline", options.baseline,
      "In every round, also time a matrix product, the FMA peak and streaming memory reads, and print the ratios");
  add_measuring(command, options);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--csv", options.csv, "Print CSV");
  command.exclude("--csv", "--json");
  command.choice("--color", options.color, kColors, "When to use colour");
}

}  // namespace

Command add_bench(Command& rapt, BenchOptions& options) {
  Command bench = rapt.below("bench", "Run benchmarks; results are checked first");
  bench.require_below();
  Command command =
      bench.below("attention", "Attention forward; lists such as --queries 512,1024 time every combination");
  add_decode(command, options.sweep);
  add_cases(command, options.sweep);
  command.choices("--weights", options.sweep.weights, kWeights,
                  "Also return the weights: their mean over heads, or all (default: none)");
  add_common(command, options);
  Command backward = bench.below(
      "backward", "Attention backward (dq, dk and dv); lists such as --queries 512,1024 time every combination");
  backward.when_given([&options] { options.sweep.backward = true; });
  add_cases(backward, options.sweep);
  add_common(backward, options);
  add_bench_gemm(bench, options.gemm);
  add_bench_mha(bench, options.mha);
  add_bench_decode(bench, options.decode);
  return bench;
}

ExitCode run_bench(const BenchOptions& options) {
  if (options.gemm.asked) return run_bench_gemm(options.gemm);
  if (options.mha.asked) return run_bench_mha(options.mha);
  if (options.decode.asked) return run_bench_decode(options.decode);
  const bench::BenchPlan plan{.cases = measured([&] { return bench::cases_of(options.sweep); }),
                              .engine = options.engine,
                              .device = {options.device, 0},
                              .baseline = options.baseline,
                              .rounds = options.rounds,
                              .shortest_sample = options.shortest_sample,
                              .progress = show_progress};
  const bool on_gpu = options.device == Device::Kind::cuda;
  if (on_gpu && !cuda::available()) {
    throw UsageError(fmt::format("bench: --device cuda: {}", cuda::unavailable_because()));
  }
  if (on_gpu && options.baseline)
    throw UsageError("bench: --baseline measures the CPU; it cannot be combined with --device cuda");
  const bench::BenchReport report = measured([&] { return bench::run_rounds(plan); });

  if (!all_good(report.results, [](const bench::BenchResult& each) { return each.parameters.name(); })) {
    return ExitCode::numbers_differ;
  }
  if (!report.baselines.empty() && report.baselines[0].sgemm_library.empty()) say_no_sgemm();

  BenchMachine machine = BenchMachine::here();
  if (on_gpu) machine.gpu = cuda::devices()[0].name;
  if (options.json) {
    print(bench_as_json(machine, report).dump(2) + "\n");
  } else if (options.csv) {
    print(bench_as_csv(report));
  } else {
    show_page(options.color, [&](Page& page) { show_bench(page, machine, report); });
  }
  return ExitCode::good;
}

}  // namespace rapt::cli
