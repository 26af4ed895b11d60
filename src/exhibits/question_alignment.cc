// The position of the causal triangle.
#include <string>
#include <utility>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "rapt/error.h"

namespace rapt::exhibits {
namespace {

void build_alignment(Builder& b) {
  constexpr std::int64_t kQueries = 3, kKeys = 7, kCached = kKeys - kQueries, kSize = 4;
  const bool bottom = b.is("corner", "bottom-right");
  const Tensor q = noise({1, 1, kKeys, kSize}, 41), k = noise({1, 1, kKeys, kSize}, 42),
               v = noise({1, 1, kKeys, kSize}, 43);
  const ConstTensorView last = q.view().slice(2, kCached, kKeys);
  const Texts keys = counted(kKeys, "k"), all_queries = counted(kKeys, "q");
  const Texts queries(all_queries.begin() + kCached, all_queries.end());

  b.prose({"{0} tokens are already in the cache, and {1} new ones arrive: {1} queries, {2} keys. The whole triangle "
           "would be {2}×{2}:",
           "缓存里已有 {0} 个词元，新增 {1} 个：{1} 个查询，{2} 个键。完整的三角是 {2}×{2}："},
          {whole(kCached), whole(kQueries), whole(kKeys)});
  const Seen whole_pass = see(q, k, v, {.causal = true});
  b.add(b.weights(b.say({"all at once", "一次全算"}), of_head(whole_pass.weights, 0), all_queries, keys));

  const auto cut = [&](const Alignment& alignment) {
    return see(last, k, v, {.causal = true, .alignment = alignment});
  };
  const Seen seen = cut(bottom ? Alignment::bottom_right() : Alignment::top_left());
  Matrix matrix =
      b.weights(bottom ? b.say({"bottom-right: row i sees key j ≤ i + {0}", "右下对齐：第 i 行看得到键 j ≤ i + {0}"},
                               {whole(kCached)})
                       : b.say({"top-left: row i sees key j ≤ i", "左上对齐：第 i 行看得到键 j ≤ i"}),
                of_head(seen.weights, 0), queries, keys);
  matrix.mood = bottom ? Mood::right : Mood::wrong;
  b.add(std::move(matrix));
  const double difference = largest_difference(seen.out, whole_pass.out.view().slice(2, kCached, kKeys));
  if (bottom) {
    b.right(
        {"The new queries are the last rows of the whole triangle: the output is the same (it differs by at most {0}).",
         "新的查询就是完整三角的最后几行：输出一样（最多差 {0}）。"},
        {brief(difference)});
  } else {
    b.wrong({"The triangle is in the wrong corner: {0} sees only k0, but it should see k0 to k{1}. The output is "
             "off by up to {2}.",
             "三角放错了位置：{0} 只能看到 k0，而它本该看到 k0 到 k{1}。输出最多差 {2}。"},
            {queries[0], whole(kCached), fixed(difference, 2)});
  }
  b.prose(
      {"Top-left is right in other cases: when queries and keys are counted from the same start. Both exist: "
       "`is_causal=True` of PyTorch's `scaled_dot_product_attention` is top-left, `causal=True` of flash-attn is "
       "bottom-right since version 2.1. So `rapt` requires a choice when the lengths differ:",
       "左上对齐适用于查询和键从同一个起点数起的情况。两种都有人用：PyTorch 的 `scaled_dot_product_attention` 里，"
       "`is_causal=True` 是左上对齐；flash-attn 从 2.1 版起，`causal=True` 是右下对齐。所以长度不等时 `rapt` "
       "要求明确指定："});
  try {
    (void)see(last, k, v, {.causal = true});
  } catch (const Error& error) {
    b.code(error.what());
  }
}

}  // namespace

Question question_alignment() {
  return {{"Where is the triangle when Lq ≠ Lk, as with a cache?", "Lq ≠ Lk 时（比如有缓存），三角在哪个角？"},
          {"In the bottom-right corner if the queries are the newest tokens, as with a cache: query i comes after the "
           "cached keys.",
           "查询是最新的词元时（有缓存就是这样），三角在右下角：查询 i 排在缓存的键后面。"},
          {{"corner",
            {"triangle", "三角"},
            {{"bottom-right", {"bottom-right", "右下"}},
             {"top-left", {"top-left, the wrong way with a cache", "左上，有缓存时是错误的做法"}}}}},
          build_alignment};
}

}  // namespace rapt::exhibits
