#include "cli/check/tensor_core.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "rapt/tensor_core.h"

namespace rapt::cli {
namespace {

std::int64_t all_dots(const cuda::TensorCoreReport& report) {
  std::int64_t dots = 0;
  for (const cuda::TensorCoreScore& score : report.scores) dots += score.dots;
  return dots;
}

// One line per kind, with a column per type: scores are in the order of types, then kinds.
void print_scores(const std::vector<cuda::TensorCoreScore>& scores) {
  fmt::print("{:<22}{:>10}{:>14}{:>14}\n", "random dot products", "each type", "bf16 differ", "f16 differ");
  for (const cuda::TensorCoreScore& score : scores) {
    if (score.type != DType::bf16) continue;
    const auto f16 = std::find_if(scores.begin(), scores.end(), [&](const cuda::TensorCoreScore& other) {
      return other.type == DType::f16 && other.kind == score.kind;
    });
    fmt::print("{:<22}{:>10}{:>14}{:>14}\n", score.kind, score.dots, score.wrong, f16->wrong);
  }
}

void print_table(const cuda::TensorCoreReport& report) {
  fmt::print("tensor cores of {}: {:.1f} million dot products, each by {} instructions, in {:.1f} s\n\n", report.device,
             static_cast<double>(all_dots(report)) * 1e-6, report.instructions.size(), report.seconds);
  print_scores(report.scores);
  fmt::print("\ninstructions:\n");
  for (const std::string& instruction : report.instructions) fmt::print("  {}\n", instruction);
  fmt::print("\n{}\n", report.good() ? "✓ every bit agrees with the model" : "✗ bits differ from the model:");
  for (const std::string& failure : report.failures) fmt::print("\n{}\n", failure);
}

void print_json(const cuda::TensorCoreReport& report) {
  nlohmann::ordered_json data = {{"schema", 1},
                                 {"good", report.good()},
                                 {"device", report.device},
                                 {"instructions", report.instructions},
                                 {"dots", all_dots(report)},
                                 {"seconds", report.seconds}};
  for (const cuda::TensorCoreScore& score : report.scores) {
    data["kinds"].push_back({{"kind", score.kind},
                             {"type", std::string(name_of(score.type))},
                             {"dots", score.dots},
                             {"differ", score.wrong}});
  }
  data["failures"] = report.failures;
  fmt::print("{}\n", data.dump());
}

}  // namespace

ExitCode run_tensor_core_check(bool json) {
  const cuda::TensorCoreReport report = cuda::check_tensor_core();
  if (json) {
    print_json(report);
  } else {
    print_table(report);
  }
  return report.good() ? ExitCode::good : ExitCode::numbers_differ;
}

}  // namespace rapt::cli
