#include "cli/bench/report.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/harness/peak.h"
#include "cli/bench/table.h"
#include "rapt/cpu.h"
#include "rapt/parallel.h"

namespace rapt::cli {
namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

struct Ratios {
  std::optional<double> sgemm, fma, stream;
};

Ratios ratios_of(const bench::BenchReport& report, const bench::BenchResult& result) {
  const bench::BenchBaseline* baseline = report.baseline_of(result);
  if (baseline == nullptr) return {};
  return {bench::median_ratio(result.gflops, baseline->sgemm_gflops),
          bench::median_ratio(result.gflops, baseline->fma_gflops),
          bench::median_ratio(result.gbps, result.stream_gbps)};
}

std::optional<double> median_of(const bench::Samples& samples) {
  return samples.empty() ? std::nullopt : std::optional(samples.median());
}

nlohmann::ordered_json as_json(const bench::BenchBaseline& baseline) {
  nlohmann::ordered_json data;
  data["threads"] = baseline.threads;
  data["sgemm_gflops"] = or_null(median_of(baseline.sgemm_gflops));
  data["fma_gflops"] = or_null(median_of(baseline.fma_gflops));
  data["stream_gbps"] = or_null(median_of(baseline.stream_gbps));
  data["stream_way"] = baseline.stream_way;
  data["sgemm_library"] =
      baseline.sgemm_library.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(baseline.sgemm_library);
  return data;
}

nlohmann::ordered_json as_json(const bench::BenchReport& report, const bench::BenchResult& result) {
  const bench::BenchCase& c = result.parameters;
  nlohmann::ordered_json data;
  data["name"] = c.name();
  data["batch"] = c.batch;
  data["heads"] = c.heads;
  data["kv_heads"] = c.kv_heads;
  data["queries"] = c.queries;
  data["keys"] = c.keys;
  data["dim"] = c.dim;
  data["dtype"] = rapt::name_of(c.dtype);
  data["pass"] = c.backward ? "backward" : "forward";
  data["causal"] = c.causal;
  data["window"] = bench::name_of(c.window);
  data["mask"] = name_of(c.mask);
  data["weights"] = name_of(c.weights);
  data["threads"] = c.threads;
  data["error"] = result.check.error;
  put_times(result.ms, data);
  if (!result.host_us.empty()) data["host_us"] = result.host_us.median();
  data["flops"] = c.flops();
  data["gflops"] = result.gflops.median();
  if (!c.backward) {
    data["bytes"] = c.key_value_bytes();
    data["gbps"] = result.gbps.median();
  }
  if (report.baseline_of(result) != nullptr) {
    const Ratios ratios = ratios_of(report, result);
    data["over_sgemm"] = or_null(ratios.sgemm);
    data["over_fma"] = or_null(ratios.fma);
    if (c.backward) return data;
    data["stream_gbps"] = or_null(median_of(result.stream_gbps));
    data["stream_way"] = result.stream_way;
    data["over_stream"] = or_null(ratios.stream);
    data["over_streams"] = or_null(bench::median_ratio(result.gbps, result.streams_gbps));
  }
  return data;
}

}  // namespace

BenchMachine BenchMachine::here() {
  BenchMachine machine;
  machine.cpu = cpu_name();
  for (const InstructionSetInfo& set : instruction_sets()) {
    if (set.in_use) machine.isa = set.name;
  }
  machine.fma = bench::fma_instructions();
  machine.threads = thread_count();
  machine.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return machine;
}

void show_bench(Page& page, const BenchMachine& machine, const bench::BenchReport& report) {
  const bool backward = report.results[0].parameters.backward;
  page.heading(backward ? "rapt bench backward" : "rapt bench attention",
               report.results[0].host_us.empty() ? fmt::format("{} · {}", machine.cpu, machine.isa) : machine.gpu);
  for (const bench::BenchBaseline& each : report.baselines) {
    const std::string sgemm =
        each.sgemm_gflops.empty()
            ? "no sgemm"
            : fmt::format("sgemm {} ({})", number(each.sgemm_gflops.median()), each.sgemm_library);
    page.line(fmt::format("{}  {} · FMA peak {} ({}) GFLOP/s · stream {} GB/s",
                          each.threads == 1 ? "1 thread " : fmt::format("{} threads", each.threads), sgemm,
                          number(each.fma_gflops.median()), machine.fma, number(each.stream_gbps.median())));
  }

  std::vector<std::vector<std::string>> rows{{"case", "ms", "spread", "GFLOP/s"}};
  const bool compared = !report.baselines.empty();
  if (!backward) rows[0].emplace_back("GB/s");
  if (compared) rows[0].insert(rows[0].end(), {"/sgemm", "/FMA"});
  if (compared && !backward) rows[0].emplace_back("/stream");
  const bool on_gpu = !report.results[0].host_us.empty();
  if (on_gpu) rows[0].emplace_back("host µs");
  for (const bench::BenchResult& result : report.results) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        result.parameters.name(), number(result.ms.median()), spread(result.ms), number(result.gflops.median())});
    const Ratios ratios = ratios_of(report, result);
    if (!backward) row.push_back(number(result.gbps.median()));
    if (compared) row.insert(row.end(), {ratio(ratios.sgemm), ratio(ratios.fma)});
    if (compared && !backward) row.push_back(ratio(ratios.stream));
    if (on_gpu) row.push_back(number(result.host_us.median()));
  }
  show_table(page, rows);
  page.line();
  if (backward) {
    page.quiet(
        "Medians over rounds; spread is half the interquartile range. A call computes dq, dk and dv from forward's out "
        "and lse. GFLOP/s of useful work: five products, 2.5 times the work of forward; only visible pairs count.");
    return;
  }
  page.quiet(
      "Medians over rounds; spread is half the interquartile range. GFLOP/s of useful work: only visible pairs count. "
      "GB/s: keys and values, read once. /stream: relative to a streaming read of the same memory, in the same "
      "rounds.");
}

std::string bench_as_csv(const bench::BenchReport& report) {
  // The same columns as the JSON data, in the same order.
  std::string text;
  for (const bench::BenchResult& result : report.results) {
    const nlohmann::ordered_json data = as_json(report, result);
    if (text.empty()) {
      for (const auto& [key, value] : data.items()) text += (text.empty() ? "" : ",") + key;
      text += '\n';
    }
    std::string line;
    for (const auto& [key, value] : data.items()) {
      if (!line.empty()) line += ',';
      // Strings are quoted because a window has a comma in it; no string here contains a quote.
      line += value.is_null() ? "" : value.dump();
    }
    text += line + "\n";
  }
  return text;
}

nlohmann::ordered_json bench_as_json(const BenchMachine& machine, const bench::BenchReport& report) {
  nlohmann::ordered_json data;
  data["schema"] = 1;
  data["machine"] = as_json(machine);
  data["baseline"] = report.baselines.empty() ? nlohmann::ordered_json(nullptr) : as_json(report.baselines[0]);
  data["baselines"] = nlohmann::ordered_json::array();  // one per number of threads; `baseline` is the first
  for (const bench::BenchBaseline& each : report.baselines) data["baselines"].push_back(as_json(each));
  data["cases"] = nlohmann::ordered_json::array();
  for (const bench::BenchResult& each : report.results) data["cases"].push_back(as_json(report, each));
  return data;
}

}  // namespace rapt::cli
