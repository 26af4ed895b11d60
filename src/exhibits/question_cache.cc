// The cache: which rows are read, and which are new.
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "rapt/kv_cache.h"
#include "rapt/layers.h"
#include "rapt/multi_head_attention.h"

namespace rapt::exhibits {
namespace {

constexpr std::int64_t kSize = 8, kHeads = 2, kHeadSize = kSize / kHeads;

// q, k or v of one token in head 0: part 0, 1 or 2 of the packed projection.
Tensor projected(const MultiHeadAttention& layer, const ConstTensorView& token, std::int64_t part) {
  Tensor y({1, kHeadSize});
  linear(y, token, layer.parameters()[0].value.slice(0, part * kSize, part * kSize + kHeadSize));
  return y;
}

void build_cache(Builder& b) {
  const Texts words = b.tokens(kFourWords);
  const auto length = static_cast<std::int64_t>(words.size());
  const std::int64_t step = b.number("step");
  const auto upto = [&](std::int64_t n) { return Texts(words.begin(), words.begin() + n); };
  const MultiHeadAttention layer({.embed_size = kSize, .heads = kHeads, .batch_first = true}, 15);
  const Tensor x = noise({1, length, kSize}, 111, 1.5).to(DType::f32);
  LayerOptions options{.attention = {.causal = true}, .weights = ReturnWeights::per_head};
  const LayerResult whole_pass = layer.forward(x, options);

  KvCache cache({.kv_heads = kHeads, .head_size = kHeadSize, .length = length});
  const std::vector<std::int64_t> ids{cache.add()};
  options.cache = &cache;
  Tensor weights({length, length}, DType::f64), held({step, kHeadSize}, DType::f64);
  double difference = 0;
  std::int64_t without = 0;  // rows of k and v to compute if every step started from scratch
  Table table{b.say({"every step", "每一步"}),
              {b.say({"step", "步"}), b.say({"new word", "新词"}), b.say({"q rows", "q 行"}),
               b.say({"k, v: new", "k、v：新算"}), b.say({"k, v: read", "k、v：读出"}),
               b.say({"new without a cache", "无缓存时需计算"})},
              {}};
  for (std::int64_t n = 0; n < length; ++n) {
    const std::int64_t before = cache.length(ids[0]);
    const LayerResult result = layer.forward(x.view().slice(1, n, n + 1), options);
    difference = std::max(difference, largest_difference(result.out, whole_pass.out.view().slice(1, n, n + 1)));
    for (std::int64_t j = 0; j <= n; ++j) {
      weights.view().at<double>(n, j) = static_cast<double>(result.weights.view().at<float>(0, 0, 0, j));
    }
    table.rows.push_back({whole(n + 1), words[static_cast<std::size_t>(n)], whole(result.out.size(1)),
                          whole(cache.length(ids[0]) - before), whole(cache.length(ids[0])), whole(n + 1)});
    without += n + 1;
    if (n + 1 != step) continue;
    CacheView view;
    cache.view(ids, view);
    copy(view.key.select(0, 0).select(0, 0).slice(0, 0, step), held);
  }

  const std::string& word = words[static_cast<std::size_t>(step - 1)];
  b.prose(
      {"Step {0}: the word “{1}” arrives. Its q is used once. It needs the k and v of every earlier word. Those "
       "have not changed since they were computed, because of the causal mask: an earlier word does not see the new "
       "one, so nothing about it changes, in any layer.",
       "第 {0} 步：新词“{1}”。它的 q 只用一次。它还需要前面每个词的 k 和 "
       "v，而它们算出来之后就不再变化。这靠的是因果掩码：前面的词看不到新词，所以在任何一层都不受影响。"},
      {whole(step), word});
  Matrix query =
      b.numbers(b.say({"q, head 0: one row", "q，头 0：只有一行"}),
                projected(layer, x.view().select(0, 0).slice(0, step - 1, step), 0), {word}, counted(kHeadSize));
  query.paint = Paint::group;
  query.groups.assign(static_cast<std::size_t>(kHeadSize), 1);
  query.legend = {b.say({"read from the cache", "从缓存读出"}), b.say({"new", "新算的"})};
  b.add(std::move(query));
  Matrix keys = b.numbers(b.say({"k, head 0: what attention reads", "k，头 0：注意力读到的"}), held, upto(step),
                          counted(kHeadSize));
  keys.paint = Paint::group;
  for (std::int64_t n = 0; n < step * kHeadSize; ++n) keys.groups.push_back(n / kHeadSize + 1 == step ? 1 : 0);
  keys.legend = {b.say({"read from the cache", "从缓存读出"}), b.say({"new", "新算的"})};
  b.add(std::move(keys));

  Matrix triangle = b.weights(b.say({"weights, head 0: one row per step so far", "权重，头 0：到目前为止，每步一行"}),
                              weights.view().slice(0, 0, step).slice(1, 0, length), upto(step), words);
  b.add(std::move(triangle));
  b.prose(
      {"Why not Q? The q of an earlier word was used for its own row, and that row is finished: its output is known. "
       "No later word uses that q again, but every later word needs its k and v.",
       "为什么不缓存 Q？前面那个词的 q "
       "只用在它自己那一行，那一行早已算完，输出也有了，后面不会再用到它。但后面每个词都要用到它的 k 和 v。"});
  b.add(std::move(table));
  b.right({"With the cache, {0} steps compute {0} rows of k and v; without it, {1} rows. The outputs are those of one "
           "causal pass over the sentence: they differ by {2}.",
           "有缓存时，{0} 步只计算 {0} 行 k、v；没有缓存则要计算 {1} 行。输出与整句一次性做因果注意力的结果一致：相差 "
           "{2}。"},
          {whole(length), whole(without), brief(difference)});
}

}  // namespace

Question question_cache() {
  return {{"Why are K and V cached and Q not?", "为什么缓存 K 和 V，却不缓存 Q？"},
          {"Every later word needs the k and v of an earlier one, and with a causal mask they never change. Its q was "
           "needed only for its own row, which is already finished.",
           "后面每个词都要用前面词的 k 和 v，而有因果掩码时它们不会变。q 只用于它自己那一行，而那一行已经算完了。"},
          {{"step",
            {"step", "步"},
            {{"3", {"3rd word", "第 3 个词"}},
             {"1", {"1st word", "第 1 个词"}},
             {"2", {"2nd word", "第 2 个词"}},
             {"4", {"4th word", "第 4 个词"}}}}},
          build_cache};
}

}  // namespace rapt::exhibits
