// The four kinds of mask, each named after what its numbers mean. Scores are equal, so that the weights show only the
// mask.
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "rapt/attention.h"

namespace {

constexpr std::int64_t kTokens = 4;

void show(const char* title, const rapt::AttentionOptions& options) {
  const rapt::Tensor zero({1, 1, kTokens, 1});  // q · k = 0 everywhere
  rapt::Tensor out({1, 1, kTokens, 1});
  rapt::Tensor weights({1, 1, kTokens, kTokens});
  rapt::attention({.out = out, .captures = {{.stage = rapt::Stage::weights, .to = weights}}}, zero, zero, zero,
                  options);

  std::printf("%s\n", title);
  for (std::int64_t i = 0; i < kTokens; ++i) {
    for (std::int64_t j = 0; j < kTokens; ++j) {
      std::printf("  %.2f", static_cast<double>(weights.view().at<float>(0, 0, i, j)));
    }
    std::printf("\n");
  }
}

}  // namespace

int main() {
  // Padding: the last of four tokens is padding. Rank 4 broadcasts to (B, Hq, Lq, Lk).
  const std::array<bool, kTokens> real = {true, true, true, false};
  const std::array<bool, kTokens> padding = {false, false, false, true};
  const rapt::ConstTensorView real_keys(real.data(), {1, 1, 1, kTokens});
  const rapt::ConstTensorView padding_keys(padding.data(), {1, 1, 1, kTokens});

  show("keep: true means seen", {.masks = {rapt::Mask::keep(real_keys)}});
  show("drop: true means hidden", {.masks = {rapt::Mask::drop(padding_keys)}});
  rapt::AttentionOptions first_three;
  first_three.key_lengths = {3};
  show("key_lengths says the same without a mask", first_three);

  // add: any number, added to the score. −inf masks the key; log 3 triples its weight relative to others.
  const float hidden = -std::numeric_limits<float>::infinity();
  const std::array<float, kTokens> bias = {1.0986123F, 0.0F, 0.0F, hidden};
  show("add: 0 changes nothing, -inf hides", {.masks = {rapt::Mask::add({bias.data(), {1, 1, 1, kTokens}})}});

  // fill: the score becomes the number. −1e9 is an ordinary number and masks nothing by itself: filled keys get no
  // weight next to others, and a completely filled row attends uniformly. Here row 0 is completely filled.
  const std::array<bool, kTokens* kTokens> filled = {true,  true,  true,  true,  //
                                                     false, false, true,  true,  //
                                                     false, false, false, true,  //
                                                     false, false, false, false};
  show("fill with -1e9: true means replaced", {.masks = {rapt::Mask::fill({filled.data(), {kTokens, kTokens}}, -1e9)}});

  // Masks combine with each other, with causal and with a window. Here token 0 is masked, and causal hides the later
  // tokens from row 0, so row 0 sees no key. Such a row gives zeros, never NaN.
  const std::array<bool, kTokens> not_first = {false, true, true, true};
  show("causal, token 0 hidden", {.masks = {rapt::Mask::keep({not_first.data(), {1, 1, 1, kTokens}})}, .causal = true});
}
