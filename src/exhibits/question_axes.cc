// Memory layouts: packed qkv, and batch_first.
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "rapt/multi_head_attention.h"

namespace rapt::exhibits {
namespace {

// ---------------------------------------------------------------- packed qkv

constexpr std::int64_t kLength = 3, kHeads = 2, kHeadSize = 2, kParts = 3;
constexpr std::int64_t kWidth = kParts * kHeads * kHeadSize;
constexpr const char* kPartNames[] = {"q", "k", "v"};

std::int64_t part_of(double place) { return static_cast<std::int64_t>(place) % kWidth / (kHeads * kHeadSize); }

void build_permute(Builder& b) {
  const bool wrongly = b.is("order", "view");
  const Texts words = b.tokens(kThreeWords), parts{kPartNames[0], kPartNames[1], kPartNames[2]};
  std::int64_t part = 0;
  while (!b.is("part", kPartNames[part])) ++part;

  b.prose(
      {"One Linear computes q, k and v at once: {0} numbers per token, first q, then k, then v, each ordered by head. "
       "Each cell below shows an offset in memory.",
       "一个 Linear 一次算出 q、k、v：每个词元 {0} 个数，依次是 q、k、v，各自再按头排列。下面每格标的是内存中的偏移。"},
      {whole(kWidth)});
  const Tensor memory = places({1, kLength, kWidth});
  std::vector<int> groups;
  for (const double place : memory.values<double>()) groups.push_back(static_cast<int>(part_of(place)));
  b.add(b.places(b.say({"memory, coloured by part", "内存，按 q、k、v 着色"}), memory.view().select(0, 0), words,
                 counted(kWidth), groups, parts));

  const ConstTensorView cut = memory.view().reshape({1, kLength, kParts, kHeads, kHeadSize});
  const ConstTensorView permuted = cut.permute({2, 0, 3, 1, 4});
  constexpr int kOrder[] = {2, 0, 3, 1, 4};
  const Texts axes{"B", "L", "3", "H", "D"};
  Table moving{b.say({"the five axes", "五个轴"}),
               {b.say({"new axis", "新的轴"}), b.say({"was axis", "原来的轴"}), b.say({"name", "名字"}),
                b.say({"size", "大小"}), b.say({"stride", "步长"})},
               {}};
  for (int n = 0; n < 5; ++n) {
    moving.rows.push_back({whole(n), whole(kOrder[n]), axes[static_cast<std::size_t>(kOrder[n])],
                           whole(permuted.size(n)), whole(permuted.stride(n))});
  }
  b.prose(
      {"`view(B, L, 3, H, D)` gives the five axes. `permute(2, 0, 3, 1, 4)` puts them in a new order: the 3 comes "
       "first, and H comes before L. No data moves; only the strides change.",
       "`view(B, L, 3, H, D)` 得到五个轴。`permute(2, 0, 3, 1, 4)` 按新的顺序排列它们：3 移到最前面，H 移到 L "
       "前面。数据没有移动，只是改了步长。"});
  b.add(std::move(moving));

  const ConstTensorView all = wrongly ? memory.view().reshape({kParts, 1, kHeads, kLength, kHeadSize}) : permuted;
  const std::string name = kPartNames[part];
  const ConstTensorView one = all.select(0, part).select(0, 0);  // (H, L, D)
  b.prose({"The first axis now has three slices, which `queries, keys, values = qkv` unpacks. Here is `{0}`, of "
           "shape (B, H, L, D):",
           "第一个轴现在有三个切片，`queries, keys, values = qkv` 把它们分别取出。这是 `{0}`，形状是 (B, H, L, D)："},
          {name});
  std::int64_t strangers = 0;
  Texts numbered;
  for (std::int64_t i = 0; i < kLength; ++i) numbered.push_back(b.say({"row {0}", "第 {0} 行"}, {whole(i)}));
  for (std::int64_t h = 0; h < kHeads; ++h) {
    groups.clear();
    for (std::int64_t i = 0; i < kLength; ++i) {
      for (std::int64_t d = 0; d < kHeadSize; ++d) {
        const std::int64_t from = part_of(one.at<double>(h, i, d));
        groups.push_back(static_cast<int>(from));
        strangers += from != part ? 1 : 0;
      }
    }
    // The wrong view puts other words' numbers into a row.
    Matrix held = b.places(name + ", " + b.head(h), one.select(0, h), wrongly ? numbered : words, counted(kHeadSize),
                           groups, parts);
    held.mood = wrongly ? Mood::wrong : Mood::right;
    b.add(std::move(held));
  }
  if (wrongly) {
    b.wrong({"`view(3, B, H, L, D)` has the same shape, but it splits memory in the old order: {1} of the {2} numbers "
             "in this “{0}” do not belong to {0}.",
             "`view(3, B, H, L, D)` 形状一样，却按旧的顺序切分内存：这个“{0}”的 {2} 个数里有 {1} 个根本不是 {0}。"},
            {name, whole(strangers), whole(one.count())});
  } else {
    b.right({"All {1} numbers belong to {0}, and each row is one word. Still no copy: `rapt` reads them with the "
             "strides {2}.",
             "这 {1} 个数全部属于 {0}，每行一个词。仍然没有复制：`rapt` 按步长 {2} 直接读。"},
            {name, whole(one.count()), to_string(all.select(0, part).strides())});
  }
}

// ---------------------------------------------------------------- batch_first

constexpr std::int64_t kBatch = 2, kWords = 3, kSize = 4;

Texts batch_row(const Builder& b, const std::string& name, const ConstTensorView& view) {
  return {name, to_string(view.shape()), to_string(view.strides()), b.yes_or_no(view.is_contiguous())};
}

void build_batch_first(Builder& b) {
  const bool wrongly = b.is("input", "wrong");
  const Texts first = b.tokens(kThreeWords), second = b.tokens({"you see me", "你看我"});
  const Tensor x = noise({kBatch, kWords, kSize}, 21);  // (B, L, E)
  const ConstTensorView turned = x.view().transpose(0, 1);

  b.prose({"Two sentences, {0} words each, {1} numbers per word. `batch_first=True` takes (B, L, E): sentence, word, "
           "number. The default of PyTorch, `batch_first=False`, takes (L, B, E): word, sentence, number.",
           "两句话，每句 {0} 个词，每个词 {1} 个数。`batch_first=True` 要求 (B, L, E)：句子、词、数。PyTorch 默认 "
           "`batch_first=False`，要求 (L, B, E)：词、句子、数。"},
          {whole(kWords), whole(kSize)});
  b.add(Table{b.say({"the same tensor", "同一个张量"}),
              {"", b.say({"shape", "形状"}), b.say({"strides", "步长"}), b.say({"contiguous", "连续"})},
              {batch_row(b, "x (B, L, E)", x), batch_row(b, "x.transpose(0, 1) (L, B, E)", turned)}});
  b.prose(
      {"Transposing swaps two strides and copies nothing. The layer has to be told which layout it gets: the data "
       "alone does not show it.",
       "转置只交换两个步长，不复制数据。但必须告诉这一层用的是哪种布局，光看数据是看不出来的。"});

  const MultiHeadAttentionConfig config{.embed_size = kSize, .heads = 1, .dtype = DType::f64};
  MultiHeadAttentionConfig batch_first = config;
  batch_first.batch_first = true;
  const MultiHeadAttention by_batch(batch_first, 3), by_length(config, 3);
  const LayerOptions options{.weights = ReturnWeights::mean};
  const LayerResult right = by_batch.forward(x, options), same = by_length.forward(turned, options);
  if (!wrongly) {
    for (std::int64_t n = 0; n < kBatch; ++n) {
      const Texts& words = n == 0 ? first : second;
      Matrix matrix = b.weights(b.say({"sentence {0}: word by word", "句子 {0}：词对词"}, {whole(n)}),
                                right.weights.view().select(0, n), words, words);
      matrix.mood = Mood::right;
      b.add(std::move(matrix));
    }
    b.right({"Both layers, each given its own layout, agree: their outputs differ by at most {0}.",
             "两个层各用自己的布局，结果一致：输出最多差 {0}。"},
            {brief(largest_difference(right.out.view(), same.out.view().transpose(0, 1)))});
    return;
  }
  const LayerResult bad = by_length.forward(x, options);  // (B, L, E), read as if it were (L, B, E)
  for (std::int64_t n = 0; n < kWords; ++n) {
    const std::size_t at = static_cast<std::size_t>(n);
    const Texts column{first[at], second[at]};
    Matrix matrix = b.weights(b.say({"word {0}: sentence against sentence", "第 {0} 个词：句子对句子"}, {whole(n)}),
                              bad.weights.view().select(0, n), column, column);
    matrix.mood = Mood::wrong;
    b.add(std::move(matrix));
  }
  b.wrong({"A layer with `batch_first=False` was given (B, L, E). There is no error: it reads {0} sentences of {1} "
           "words as {1} sentences of {0} words. A word now sees itself and one word of the other sentence, but no "
           "other word of its own sentence.",
           "给 `batch_first=False` 的层传入了 (B, L, E)。没有报错：它把 {0} 句、每句 {1} 个词，当成了 {1} 句、每句 {0} "
           "个词。每个词只能看到自己和另一句话里的一个词，看不到本句的其他词。"},
          {whole(kBatch), whole(kWords)});
  b.wrong({"The output has the right shape {0} and is off by {1}%.", "输出的形状 {0} 是对的，数值却差了 {1}%。"},
          {to_string(bad.out.shape()), fixed(100 * off_by(bad.out, right.out), 0)});
}

}  // namespace

Question question_permute() {
  return {
      {"What is `permute(2, 0, 3, 1, 4)` doing to packed qkv?", "`permute(2, 0, 3, 1, 4)` 对打包的 qkv 做了什么？"},
      {"It moves the axis of size 3 to the front, so that q, k and v are slices along it, and the heads before the "
       "words, as attention expects. Only strides change.",
       "它把大小为 3 的轴移到最前面，q、k、v 就成了三个切片；又把头移到词前面，这正是注意力要求的顺序。变的只有步长。"},
      {{"part", {"show", "查看"}, {{"q", {"q", "q，查询"}}, {"k", {"k", "k，键"}}, {"v", {"v", "v，值"}}}},
       {"order",
        {"how", "做法"},
        {{"permute", {"permute(2, 0, 3, 1, 4)", "permute(2, 0, 3, 1, 4)"}},
         {"view", {"view(3, B, H, L, D), the wrong way", "view(3, B, H, L, D)，错误的做法"}}}}},
      build_permute};
}

Question question_batch_first() {
  return {{"What is `batch_first`?", "`batch_first` 是什么？"},
          {"It tells the layer whether the first axis is the sentence or the word. The wrong value raises no error, "
           "but words then attend across sentences.",
           "它说明第一个轴是句子还是词。弄错了不会报错，但词会去关注别的句子里的词。"},
          {{"input",
            {"input", "输入"},
            {{"right", {"the layout that the layer requires", "该层要求的布局"}},
             {"wrong",
              {"(B, L, E) for batch_first=False, the wrong way", "把 (B, L, E) 给 batch_first=False，错误的做法"}}}}},
          build_batch_first};
}

}  // namespace rapt::exhibits
