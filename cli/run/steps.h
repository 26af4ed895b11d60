// The steps of `rapt run`: load arrays, run attention, a layer or the example, and return tensors.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/files/array_files.h"
#include "cli/run/options.h"
#include "cli/terminal/spinner.h"
#include "rapt/tensor.h"

namespace rapt::cli {

// The results of a run, and its summary.
struct RunResult {
  std::string title;  // "plain attention", "the layer …"
  Tensor out, weights, lse;
  std::vector<Tensor> scores;       // as options.scores
  std::vector<std::string> labels;  // of tokens, if they are words
  nlohmann::ordered_json model;
  double seconds = 0;
};

struct Inputs {
  ConstTensorView query, key, value;
};

// The arrays that the options name, converted to options.dtype if that is given.
class InputFiles : public Inputs {
 public:
  InputFiles(const RunOptions& options, ArrayFiles& files);

 private:
  ConstTensorView read(ArrayFiles& files, const RunOptions& options, const std::string& option,
                       const std::string& text);

  std::vector<Tensor> converted_;
};

// Reads the mask, interpreted as the options say, and the sinks, in the accumulation type of the call. `heads` is the
// number of heads of the call.
void read_head_options(const RunOptions& options, ArrayFiles& files, DType sums, std::int64_t heads,
                       AttentionOptions& attention);

template <class Work>
double timed(const std::string& what, const Work& work) {
  const Spinner spinner(what);
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

RunResult run_plain(const RunOptions& options, ArrayFiles& files);
RunResult run_model(const RunOptions& options, ArrayFiles& files);
RunResult run_example(const RunOptions& options);  // without an input: the sentence of `rapt explain`

}  // namespace rapt::cli
