// Decoding with a KV cache: a prompt, then one token at a time, with the same bits as one pass over all tokens. The
// cache is paged, so sequences of any length share it, and a fork shares the pages of its prefix.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "rapt/multi_head_attention.h"

namespace {

constexpr std::int64_t kPrompt = 20, kNew = 12, kSize = 32;

rapt::Tensor some_tokens() {
  rapt::Tensor x({1, kPrompt + kNew, kSize});
  std::uint32_t state = 1;
  for (float& value : x.values<float>()) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0F;
  }
  return x;
}

}  // namespace

int main() {
  // Four query heads share two key/value heads; q and k get rotary embedding.
  const rapt::MultiHeadAttention layer(
      {.embed_size = kSize, .heads = 4, .kv_heads = 2, .batch_first = true, .rotary = rapt::RotaryOptions{}}, 1);
  const rapt::Tensor x = some_tokens();
  const rapt::Tensor whole = layer.forward(x, {.attention = {.causal = true}}).out;

  rapt::KvCache cache({.kv_heads = 2, .head_size = 8, .sequences = 2, .page_size = 16, .pages = 8});
  const std::vector<std::int64_t> ids = {cache.add()};
  rapt::LayerWorkspace workspace;  // reused: after the first steps, nothing is allocated
  const rapt::LayerOptions options = {
      .attention = {.causal = true}, .cache = &cache, .sequences = ids, .workspace = &workspace};

  layer.forward(x.view().slice(1, 0, kPrompt), options);  // the prompt, at once
  bool same = true;
  for (std::size_t n = kPrompt; n < kPrompt + kNew; ++n) {  // then token by token
    const auto token = static_cast<std::int64_t>(n);
    const rapt::Tensor out = layer.forward(x.view().slice(1, token, token + 1), options).out;
    const std::span<const float> expected = whole.values<float>().subspan(n * kSize, kSize);
    same = same && std::ranges::equal(out.values<float>(), expected);
  }
  std::printf("%lld tokens in the cache, %s the bits of one pass\n", static_cast<long long>(cache.length(ids[0])),
              same ? "with" : "NOT with");

  // Another continuation of the prompt shares its pages.
  const std::int64_t fork = cache.fork(ids[0], kPrompt);
  std::printf("the fork has %lld tokens; %lld of 8 pages are free\n", static_cast<long long>(cache.length(fork)),
              static_cast<long long>(cache.free_pages()));
  return same ? 0 : 1;
}
