// A first call: causal attention on your data, which is not copied, and the attention weights.
#include "rapt/attention.h"

#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
  const std::int64_t batch = 1, tokens = 4, heads = 2, size = 8;

  // Your memory, in your layout: here (B, L, E), the output of a projection, with E = heads · size.
  std::vector<float> x(static_cast<std::size_t>(batch * tokens * heads * size));
  for (std::size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>((n * 37) % 17) / 17.0F;

  // A view never owns or copies memory. Attention takes (B, H, L, D): only the strides change.
  const rapt::ConstTensorView qkv = rapt::split_heads(rapt::TensorView(x.data(), {batch, tokens, heads * size}), heads);

  // The shortest form: self-attention in which every token sees itself and earlier tokens.
  const rapt::Tensor out = rapt::attention(qkv, qkv, qkv, {.causal = true});
  std::printf("out %s\n", rapt::to_string(out.shape()).c_str());

  // The long form writes to your memory, and returns the weights (and more) on request.
  rapt::Tensor again({batch, heads, tokens, size});
  rapt::Tensor weights({batch, heads, tokens, tokens});
  rapt::attention({.out = again, .captures = {{.stage = rapt::Stage::weights, .to = weights}}}, qkv, qkv, qkv,
                  {.causal = true});

  for (std::int64_t i = 0; i < tokens; ++i) {
    std::printf("head 0, token %d looks at:", static_cast<int>(i));
    for (std::int64_t j = 0; j < tokens; ++j) {
      std::printf("  %.3f", static_cast<double>(weights.view().at<float>(0, 0, i, j)));
    }
    std::printf("\n");
  }
}
