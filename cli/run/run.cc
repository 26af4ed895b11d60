#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/error_words.h"
#include "cli/files/statistics.h"
#include "cli/run/steps.h"
#include "cli/terminal/output.h"
#include "cli/view/explorer_page.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kNumbersShown = 6;

nlohmann::ordered_json tensor_json(const Tensor& tensor) {
  return {{"shape", shape_json(tensor.shape())},
          {"dtype", name_of(tensor.dtype())},
          {"statistics", statistics_json(statistics_of(tensor))},
          {"first", first_numbers_json(tensor, kNumbersShown)}};
}

// Writes the requested outputs, and returns their names with the tensors.
std::vector<std::pair<std::string, const Tensor*>> write_outputs(const RunOptions& options, const RunResult& result) {
  std::vector<std::pair<std::string, const Tensor*>> written;
  const auto write = [&](const std::string& path, const Tensor& tensor) {
    if (path.empty()) return;
    write_array(path, tensor);
    written.emplace_back(path, &tensor);
  };
  write(options.out, result.out);
  write(options.weights, result.weights);
  write(options.lse, result.lse);
  for (std::size_t n = 0; n < result.scores.size(); ++n) write(options.scores[n].second, result.scores[n]);
  if (!options.html.empty()) {
    const Tensor weights = Tensor::copy_of(result.weights, DType::f32);
    write_page(options.html, {.title = result.title,
                              .files = {{.name = "weights.npy", .bytes = npy_bytes(weights)}},
                              .labels = result.labels});
    written.emplace_back(options.html, &result.weights);
  }
  return written;
}

void print_result_json(const RunResult& result, const std::vector<std::pair<std::string, const Tensor*>>& written) {
  nlohmann::ordered_json json = {{"schema", 1}, {"ran", result.title}, {"seconds", result.seconds}};
  if (!result.model.is_null()) json["model"] = result.model;
  json["out"] = tensor_json(result.out);
  json["written"] = nlohmann::ordered_json::array();
  for (const auto& [path, tensor] : written) {
    json["written"].push_back(
        {{"file", path}, {"shape", shape_json(tensor->shape())}, {"dtype", name_of(tensor->dtype())}});
  }
  print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print_result(const RunOptions& options, const RunResult& result,
                  const std::vector<std::pair<std::string, const Tensor*>>& written) {
  if (options.out.empty()) {
    const std::string text =
        fmt::format("{}\nout      {} {}\n         {}\n         {}\n", fitted(stdout, result.title),
                    shape_words(result.out.shape()), name_of(result.out.dtype()),
                    statistics_words(statistics_of(result.out)), first_numbers(result.out, kNumbersShown));
    const bool data_on_stdout =
        std::any_of(written.begin(), written.end(), [](const auto& each) { return each.first == "-"; });
    std::fwrite(text.data(), 1, text.size(), data_on_stdout ? stderr : stdout);
  } else {
    fmt::print(stderr, "{}\n", fitted(stderr, result.title));
  }
  for (const auto& [path, tensor] : written) {
    if (path != "-") {
      fmt::print(stderr, "wrote {}: {} {}\n", path, shape_words(tensor->shape()), name_of(tensor->dtype()));
    }
  }
}

}  // namespace

ExitCode run_run(const RunOptions& options) {
  check_run_options(options);
  ArrayFiles files;
  RunResult result;
  try {
    result = !options.model.empty() ? run_model(options, files)
             : options.has_input()  ? run_plain(options, files)
                                    : run_example(options);
  } catch (const Error& error) {
    throw Error(with_flags(error, options.mask));
  }
  const auto written = write_outputs(options, result);
  if (options.json) {
    print_result_json(result, written);
  } else {
    print_result(options, result, written);
  }
  return ExitCode::good;
}

}  // namespace rapt::cli
