// The error relative to the f64 reference is at most twice PyTorch's own error in f32, also with scores up to ±100.
#include <array>
#include <cmath>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cases/case.h"
#include "cases/compare.h"
#include "support/every_instruction_set.h"
#include "support/relative_error.h"
#include "support/sanitizers.h"
#include "support/vector_case.h"

namespace rapt::test {
namespace {

class Accuracy : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(Accuracy);

const nlohmann::json& measured() {
  static const nlohmann::json data = nlohmann::json::parse(std::ifstream(RAPT_TEST_DATA "/accuracy.json"));
  return data;
}

// The same numbers as bell() in tests/data/make_accuracy.py.
Tensor bell(std::uint64_t seed, std::uint32_t number, const Dims& shape, double spread) {
  Tensor tensor(shape);
  cases::Stream stream(seed, number);
  for (float& x : tensor.values<float>()) {
    double sum = stream.uniform();
    for (int n = 0; n < 3; ++n) sum += stream.uniform();
    x = static_cast<float>((sum - 2.0) * std::sqrt(3.0) * spread);
  }
  return tensor;
}

struct Inputs {
  explicit Inputs(const nlohmann::json& from)
      : shape{1, 2, from.at("length").get<std::int64_t>(), from.at("size").get<std::int64_t>()},
        seed(from.at("seed").get<std::uint64_t>()),
        query(bell(seed, 1, shape, from.at("spread").get<double>())),
        key(bell(seed, 2, shape, 1.0)),
        value(bell(seed, 3, shape, 1.0)),
        causal(from.at("causal").get<bool>()) {}

  Dims shape;
  std::uint64_t seed;
  Tensor query, key, value;
  bool causal;
};

// The f64 results of all shapes take seconds, so they are computed once for all instruction sets.
const Tensor& truth(const Inputs& inputs) {
  static std::map<std::uint64_t, Tensor> known;
  Tensor& answer = known[inputs.seed];
  if (answer.count() == 0) {
    answer = attention(inputs.query.to(DType::f64), inputs.key.to(DType::f64), inputs.value.to(DType::f64),
                       {.causal = inputs.causal});
  }
  return answer;
}

TEST(AccuracyInputs, AreTheNumbersThatPyTorchWasGiven) {
  const Inputs inputs(measured().at("cases")[0]);
  for (std::size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(inputs.query.values<float>()[n], measured().at("first_inputs")[n].get<float>()) << n;
  }
}

TEST(AccuracyInputs, HaveScoresUpToAHundred) {
  double largest = 0.0;
  for (const auto& one : measured().at("cases")) largest = std::max(largest, one.at("largest_score").get<double>());
  EXPECT_GE(largest, 100.0);
}

struct Gradients {
  explicit Gradients(const Inputs& inputs, DType dtype = DType::f32)
      : of{Tensor(inputs.shape, dtype), Tensor(inputs.shape, dtype), Tensor(inputs.shape, dtype)} {
    const Tensor dout = bell(inputs.seed, 4, inputs.shape, 1.0).to(dtype), query = inputs.query.to(dtype),
                 key = inputs.key.to(dtype), value = inputs.value.to(dtype);
    const AttentionOptions options{.causal = inputs.causal};
    Tensor out(inputs.shape, dtype), lse({1, 2, inputs.shape[2]}, dtype);
    attention({.out = out, .lse = lse}, query, key, value, options);
    attention_backward({.dquery = of[0], .dkey = of[1], .dvalue = of[2]}, {.dout = dout, .out = out, .lse = lse}, query,
                       key, value, options);
  }
  std::array<Tensor, 3> of;  // dq, dk, dv
};

TEST_P(Accuracy, IsAtWorstTwiceAsFarFromTheTruthAsPyTorchInGradients) {
  for (const auto& one : measured().at("cases")) {
    const Inputs inputs(one);
    // The f64 result of the largest shapes takes seconds, so they are skipped. The limit is higher for causal shapes,
    // because they test the order of sums: their first rows have the largest weights, and a sum over rows that starts
    // with those would round all later terms to their magnitude.
    if (inputs.shape[2] * inputs.shape[3] > (inputs.causal && !kSlow ? 1024 : 577) * 64) continue;
    const Gradients ours(inputs), exact(inputs, DType::f64);
    for (std::size_t n = 0; n < 3; ++n) {
      const double error = cases::relative_error(ours.of[n], exact.of[n]);
      const double theirs = std::min(one.at("torch_fused_gradient_errors")[n].get<double>(),
                                     one.at("torch_plain_gradient_errors")[n].get<double>());
      EXPECT_LE(error, 2.0 * theirs) << "d"
                                     << "qkv"[n] << " of " << one.dump();
      RecordProperty(std::string("error_over_torch_d") + "qkv"[n] + "_" + std::to_string(inputs.seed),
                     std::to_string(error / theirs));
    }
  }
}

TEST_P(Accuracy, IsAtWorstTwiceAsFarFromTheTruthAsPyTorchOnLargeShapes) {
  for (const auto& one : measured().at("cases")) {
    const Inputs inputs(one);
    if (kSlow && inputs.shape[2] * inputs.shape[3] > 577 * 64) continue;
    const Tensor out =
        attention(inputs.query, inputs.key, inputs.value, {.causal = inputs.causal, .engine = Engine::cpu});
    const double ours = cases::relative_error(out, truth(inputs));
    const double theirs =
        std::min(one.at("torch_fused_error").get<double>(), one.at("torch_plain_error").get<double>());
    EXPECT_LE(ours, 2.0 * theirs) << one.dump();
    RecordProperty("error_over_torch_" + std::to_string(inputs.seed), std::to_string(ours / theirs));
  }
}

// On small cases both errors are random, so the errors of all cases are combined, by kind of result.
TEST_P(Accuracy, IsAtWorstTwiceAsFarFromTheTruthAsPyTorchOverAllSmallCases) {
  for (const bool reuse : {false, true}) {
    std::map<std::string, std::pair<double, double>> errors;  // sums of squared errors, ours and PyTorch's
    for (const VectorName& name : vector_names()) {
      const VectorCase vector(name);
      if (vector.only_f32()) continue;
      const Results results = run_case(
          vector, {.engine = Engine::automatic, .query = DType::f32, .key_value = DType::f32, .reuse_forward = reuse});
      for (const char* what : {"out", "dq", "dk", "dv"}) {
        const Tensor& exact = vector.answer(what, DType::f64);
        errors[what].first += std::pow(relative_error(results.at(what), exact), 2);
        errors[what].second += std::pow(relative_error(vector.answer(what, DType::f32), exact), 2);
      }
    }
    for (const auto& [what, squares] : errors) {
      EXPECT_LE(std::sqrt(squares.first), 2.0 * std::sqrt(squares.second)) << what;
      RecordProperty("error_over_torch_" + what + (reuse ? "_reusing_forward" : ""),
                     std::to_string(std::sqrt(squares.first / squares.second)));
    }
  }
}

}  // namespace
}  // namespace rapt::test
