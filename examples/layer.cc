// A layer of multi-head attention: self-attention, weights, cross-attention, and a layer split in two.
#include <cstddef>
#include <cstdio>

#include "rapt/multi_head_attention.h"

int main() {
  // torch.nn.MultiheadAttention(8, 2, batch_first=True), with parameters drawn from seed 1.
  rapt::MultiHeadAttention layer({.embed_size = 8, .heads = 2, .batch_first = true}, 1);
  for (const rapt::NamedTensor& parameter : layer.parameters()) {
    std::printf("%-16s %s\n", parameter.name.c_str(), rapt::to_string(parameter.value.shape()).c_str());
  }

  rapt::Tensor x({1, 3, 8});  // one sentence of three tokens
  std::size_t n = 0;
  for (float& value : x.values<float>()) value = static_cast<float>((n++ * 37) % 17) / 17.0F;

  // Causal self-attention; the weights are the mean over heads.
  const rapt::LayerResult self =
      layer.forward(x, {.attention = {.causal = true}, .weights = rapt::ReturnWeights::mean});
  std::printf("\nout %s, weights:\n", rapt::to_string(self.out.shape()).c_str());
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) std::printf("  %.3f", static_cast<double>(self.weights.view().at<float>(0, i, j)));
    std::printf("\n");
  }

  // Cross-attention: the queries of one sentence attend to another. PyTorch's key_padding_mask: true marks padding.
  const rapt::Tensor memory({1, 5, 8});
  const bool padding[] = {false, false, false, true, true};
  const rapt::ConstTensorView not_there(padding, {1, 5});
  const rapt::Tensor cross =
      layer.forward(x, memory, memory, {.attention = {.masks = {rapt::Mask::drop(rapt::mask_of_keys(not_there))}}}).out;
  std::printf("\ncross-attention: out %s\n", rapt::to_string(cross.shape()).c_str());

  // Each half of the heads separately: the two outputs add up to the output of the whole layer.
  const rapt::Tensor first = layer.slice(0, 2).forward(x).out;
  const rapt::Tensor second = layer.slice(1, 2).forward(x).out;
  const rapt::Tensor whole = layer.forward(x).out;
  std::printf("halves: %.4f + %.4f = %.4f\n", static_cast<double>(first.view().at<float>(0, 0, 0)),
              static_cast<double>(second.view().at<float>(0, 0, 0)),
              static_cast<double>(whole.view().at<float>(0, 0, 0)));
}
