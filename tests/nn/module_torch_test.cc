// MultiHeadAttention against torch.nn.MultiheadAttention: 640 calls over all its arguments, with results computed by
// PyTorch (tests/data/make_modules.py).

#include <cmath>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "support/module_case.h"
#include "support/relative_error.h"

namespace rapt::test {
namespace {

// PyTorch gives NaN for a query that sees no key, in its weights and, if weights were requested, in its output. Ours
// are 0, and the output is the output projection's bias.
Tensor with_rows_that_see_nothing(const ModuleCase& module, const MultiHeadAttention& layer, const std::string& what) {
  Tensor answer = module.answer(what);
  std::vector<double> bias(static_cast<std::size_t>(layer.config().output_size));
  for (const NamedTensor& parameter : layer.parameters()) {
    if (parameter.name != "out_proj.bias") continue;
    const Tensor values = Tensor::copy_of(parameter.value, DType::f64);
    bias.assign(values.values<double>().begin(), values.values<double>().end());
  }
  std::size_t n = 0;
  for (double& value : answer.values<double>()) {
    if (std::isnan(value)) value = what == "out" ? bias[n % bias.size()] : 0.0;
    ++n;
  }
  return answer;
}

void expect_matches(const ModuleCase& module, DType dtype, Engine engine) {
  SCOPED_TRACE(module.name);
  const MultiHeadAttention layer = layer_of(module, dtype);
  const LayerResult result = run_module(module, layer, engine);
  const auto expect = [&](const char* what, const Tensor& found) {
    ASSERT_TRUE(module.has_answer(what));
    const double bound = dtype == DType::f64 ? 1e-12 : module.f32_bound(what);
    EXPECT_TRUE(is_near(found, with_rows_that_see_nothing(module, layer, what), bound)) << what;
  };
  expect("out", result.out);
  EXPECT_EQ(module.has_answer("weights"), result.weights.count() > 0);
  if (module.has_answer("weights")) expect("weights", result.weights);
}

TEST(TorchModule, DoubleMatches) {
  for (const ModuleCase& module : module_cases()) expect_matches(module, DType::f64, Engine::automatic);
}

TEST(TorchModule, FloatMatches) {
  for (const ModuleCase& module : module_cases()) expect_matches(module, DType::f32, Engine::automatic);
}

TEST(TorchModule, FloatMatchesOnTheReferenceEngine) {
  for (const ModuleCase& module : module_cases()) expect_matches(module, DType::f32, Engine::reference);
}

// ---- What the list of calls covers, derived from the calls themselves ----------------------------------------------

TEST(TorchModule, ThereAreAtLeastFiveHundredCalls) { EXPECT_GE(module_cases().size(), 500U); }

TEST(TorchModule, EveryPairOfArgumentsOccurs) {
  std::map<std::string, std::set<std::string>> seen;  // argument -> its values
  std::set<std::string> pairs;
  const auto arguments = [](const ModuleCase& module) {
    std::map<std::string, std::string> all;
    for (const auto& [name, value] : module.args.items()) all[name] = value.dump();
    for (const auto& [name, value] : module.call.items()) all[name] = value.dump();
    all.erase("embed_dim");  // follows the number of heads
    all.erase("queries"), all.erase("keys"), all.erase("hides_a_row");
    return all;
  };
  for (const ModuleCase& module : module_cases()) {
    for (const auto& [a, x] : arguments(module)) {
      seen[a].insert(x);
      for (const auto& [b, y] : arguments(module)) pairs.insert(a + "=" + x + " " + b + "=" + y);
    }
  }
  const auto impossible = [](const std::string& pair) {
    const auto has = [&](const char* part) { return pair.find(part) != std::string::npos; };
    // is_causal requires a causal mask; separate key and value sizes require separate inputs; PyTorch requires both
    // masks to be of one kind.
    return (has("is_causal=true") && has("attn_mask=") && !has("\"causal\"")) ||
           ((has("kdim=5") || has("vdim=7")) && (has("\"self\"") || has("\"memory\""))) ||
           (has("key_padding_mask=\"bool\"") && has("attn_mask=\"float")) ||
           (has("key_padding_mask=\"float\"") && has("attn_mask=\"bool"));
  };
  for (const auto& [a, xs] : seen) {
    for (const auto& [b, ys] : seen) {
      if (a >= b) continue;
      for (const std::string& x : xs) {
        for (const std::string& y : ys) {
          const std::string pair = a + "=" + x + " " + b + "=" + y;
          EXPECT_TRUE(pairs.contains(pair) || impossible(pair)) << pair;
        }
      }
    }
  }
}

TEST(TorchModule, SomeCallsHideARowWherePyTorchGivesNaN) {
  int with_nan = 0, without = 0;  // PyTorch's two ways to attend disagree
  for (const ModuleCase& module : module_cases()) {
    if (!module.hides_a_row()) continue;
    const Tensor out = module.answer("out");
    bool nan = false;
    for (const double value : out.values<double>()) nan = nan || std::isnan(value);
    ++(nan ? with_nan : without);
  }
  EXPECT_GT(with_nan, 4);
  EXPECT_GT(without, 0);
}

}  // namespace
}  // namespace rapt::test
