// Two hundred training steps compared with PyTorch, from the same weights and on the same batches.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/transformer.h"
#include "support/safetensors.h"

namespace rapt::test {
namespace {

// All as in tests/data/make_curve.py.
constexpr TransformerConfig kConfig{
    .vocabulary = 24, .context = 32, .width = 32, .layers = 2, .heads = 4, .hidden = 64};
constexpr std::int64_t kBatch = 8;
constexpr AdamOptions kAdam{.rate = 3e-3, .weight_decay = 0.01};
constexpr double kClip = 1.0;

struct Batch {
  explicit Batch(std::int64_t step) {
    for (std::int64_t row = 0; row < kBatch; ++row) {
      const auto token = [&](std::int64_t place) {
        return static_cast<std::int32_t>((7 * step + 5 * row + place * (1 + (3 * step + row) % 7)) %
                                         kConfig.vocabulary);
      };
      for (std::int64_t place = 0; place < kConfig.context; ++place) {
        tokens.push_back(token(place)), targets.push_back(token(place + 1));
      }
    }
  }
  std::vector<std::int32_t> tokens, targets;
};

TEST(TrainingCurve, IsPyTorchsInEveryStep) {
  const Safetensors curve = read_safetensors(RAPT_TEST_DATA "/training/curve.safetensors");
  Transformer model(kConfig);
  for (const NamedTensor& parameter : model.parameters()) {
    model.set_parameter(parameter.name, curve.at(std::string(parameter.name)));
  }
  const Tensor& losses = curve.at("losses");
  ASSERT_EQ(losses.count(), 200);
  // Checks that the loss decreases: a constant curve would test nothing.
  ASSERT_LT(losses.values<double>()[199], 0.2 * losses.values<double>()[0]);
  double furthest = 0.0;
  for (std::int64_t step = 0; step < losses.count(); ++step) {
    const Batch batch(step);
    const double wanted = losses.values<double>()[static_cast<std::size_t>(step)];
    const double loss = model.add_gradients(batch.tokens, batch.targets, kBatch);
    furthest = std::max(furthest, std::abs(loss - wanted) / wanted);
    ASSERT_LE(std::abs(loss - wanted), 1e-4 * wanted) << "step " << step;
    model.step(kAdam, kClip);
  }
  RecordProperty("furthest_in_millionths", std::to_string(1e6 * furthest));
}

}  // namespace
}  // namespace rapt::test
