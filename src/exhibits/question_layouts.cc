// Memory layouts: the split into heads.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "rapt/error.h"

namespace rapt::exhibits {
namespace {

constexpr std::int64_t kLength = 3, kHeads = 2, kHeadSize = 4, kSize = kHeads * kHeadSize;

// (1, L, E) as (1, H, L, D), a shape that both the right and the wrong split have.
ConstTensorView split(const ConstTensorView& x, bool wrongly) {
  return wrongly ? x.reshape({1, kHeads, kLength, kHeadSize}) : split_heads(x, kHeads);
}

Texts layout_row(const Builder& b, const std::string& name, const ConstTensorView& view) {
  return {name, to_string(view.shape()), to_string(view.strides()), b.yes_or_no(view.is_contiguous())};
}

Texts layout_header(const Builder& b) {
  return {"", b.say({"shape", "形状"}), b.say({"strides", "步长"}), b.say({"contiguous", "连续"})};
}

// Shows which head each number in memory belongs to, and what each head holds.
void show_memory(Builder& b, const Texts& words, bool wrongly) {
  const Mood mood = wrongly ? Mood::wrong : Mood::right;
  const Tensor memory = places({1, kLength, kSize});
  const ConstTensorView heads = split(memory.view(), wrongly);
  std::vector<int> head_of(static_cast<std::size_t>(memory.count()));
  Texts legend;
  for (std::int64_t h = 0; h < kHeads; ++h) {
    legend.push_back(b.head(h));
    for (std::int64_t i = 0; i < kLength; ++i) {
      for (std::int64_t d = 0; d < kHeadSize; ++d) {
        head_of[static_cast<std::size_t>(heads.at<double>(0, h, i, d))] = static_cast<int>(h);
      }
    }
  }
  Matrix whole_memory = b.places(b.say({"memory: which head takes which number", "内存：每个数归哪个头"}),
                                 memory.view().select(0, 0), words, counted(kSize), head_of, legend);
  whole_memory.mood = mood;
  b.add(std::move(whole_memory));
  Texts rows;
  for (std::int64_t i = 0; i < kLength; ++i) rows.push_back(b.say({"row {0}", "第 {0} 行"}, {whole(i)}));
  for (std::int64_t h = 0; h < kHeads; ++h) {
    std::vector<int> token_of;
    for (std::int64_t i = 0; i < kLength; ++i) {
      for (std::int64_t d = 0; d < kHeadSize; ++d) {
        token_of.push_back(static_cast<int>(heads.at<double>(0, h, i, d)) / static_cast<int>(kSize));
      }
    }
    Matrix held = b.places(b.say({"what {0} holds, by token", "{0} 拿到的数，按词元着色"}, {b.head(h)}),
                           heads.select(0, 0).select(0, h), rows, counted(kHeadSize), token_of, words);
    held.mood = mood;
    b.add(std::move(held));
  }
  if (wrongly) {
    b.wrong(
        {"`view(B, H, L, D)` splits memory into two halves, so a head is a part of the sentence. Row 1 of head 0 is "
         "the second half of “{0}”, not “{1}”.",
         "`view(B, H, L, D)` 把内存一切两半，一个头就成了句子的一段。头 0 的第 1 行是“{0}”的后半截，而不是“{1}”。"},
        {words[0], words[1]});
  } else {
    b.right({"Each head holds {0} numbers of every token: row 0 is “{1}”, row 1 is “{2}”, row 2 is “{3}”.",
             "每个头都拿到每个词元的 {0} 个数：第 0 行是“{1}”，第 1 行是“{2}”，第 2 行是“{3}”。"},
            {whole(kHeadSize), words[0], words[1], words[2]});
  }
}

struct Inputs {
  Tensor q = noise({1, kLength, kSize}, 11, 1.5), k = noise({1, kLength, kSize}, 12, 1.5),
         v = noise({1, kLength, kSize}, 13);

  Seen attend(bool wrongly, bool causal) const {
    return see(split(q.view(), wrongly), split(k.view(), wrongly), split(v.view(), wrongly), {.causal = causal});
  }
};

// The number of earlier tokens whose outputs change with the last word, under a causal mask.
std::int64_t leaks(bool wrongly) {
  Inputs inputs;
  const Tensor before = combine_heads_copy(inputs.attend(wrongly, true).out);
  for (Tensor* each : {&inputs.q, &inputs.k, &inputs.v}) {
    for (std::int64_t d = 0; d < kSize; ++d) each->view().at<double>(0, kLength - 1, d) += 1.0;
  }
  const Tensor after = combine_heads_copy(inputs.attend(wrongly, true).out);
  std::int64_t moved = 0;
  for (std::int64_t i = 0; i + 1 < kLength; ++i) {
    moved += largest_difference(before.view().select(1, i), after.view().select(1, i)) > 0 ? 1 : 0;
  }
  return moved;
}

void show_outputs(Builder& b, const Texts& words, bool wrongly) {
  const Inputs inputs;
  const Seen right = inputs.attend(false, false), wrong = inputs.attend(true, false);
  Matrix matrix = b.weights(b.say({"weights of head 0, right split", "头 0 的权重，正确拆分"}),
                            of_head(right.weights, 0), words, words);
  matrix.mood = Mood::right;
  b.add(std::move(matrix));
  if (wrongly) {
    Matrix bad = b.weights(b.say({"weights of head 0, wrong split", "头 0 的权重，错误拆分"}),
                           of_head(wrong.weights, 0), words, words);
    bad.mood = Mood::wrong;
    b.add(std::move(bad));
  }
  const Tensor y = combine_heads_copy(right.out), bad = combine_heads_copy(wrong.out);
  if (wrongly) {
    b.wrong({"The shape is right, so there is no error. But the output is off by {0}% (|wrong − right| / |right|).",
             "形状没错，所以不会报错。输出却差了 {0}%（|错 − 对| / |对|）。"},
            {fixed(100 * off_by(bad, y), 0)});
  }
  const std::int64_t moved = leaks(wrongly);
  b.prose({"With a causal mask, no word may depend on a later one. When the last word changes, {0} of the {1} words "
           "before it change their output.",
           "有因果掩码时，任何词都不该依赖后面的词。把最后一个词换掉：前面 {1} 个词里有 {0} 个输出变了。"},
          {whole(moved), whole(kLength - 1)}, moved == 0 ? Mood::right : Mood::wrong);
}

// (1, L, H, D) as (1, L, E), in PyTorch's three ways.
struct Merged {
  Tensor memory;            // of the copy, if there is one
  ConstTensorView result;   // undefined after an error
  std::int64_t copied = 0;  // numbers
  bool works() const { return result.defined(); }
};

Merged by_view(const ConstTensorView& x) {
  try {
    return {.memory = {}, .result = x.merge(2), .copied = 0};
  } catch (const Error&) {
    return {};
  }
}

Merged by_copy(const ConstTensorView& x) {
  Tensor memory = Tensor::copy_of(x);
  const ConstTensorView result = memory.view().merge(2);
  return {.memory = std::move(memory), .result = result, .copied = x.count()};
}

Merged by_reshape(const ConstTensorView& x) {
  Merged view = by_view(x);
  return view.works() ? std::move(view) : by_copy(x);
}

Merged by_contiguous(const ConstTensorView& x) { return x.is_contiguous() ? by_view(x) : by_copy(x); }

void show_way_back(Builder& b) {
  const Seen seen = Inputs().attend(false, false);
  const ConstTensorView turned = seen.out.view().transpose(1, 2);
  const Tensor stored = Tensor::copy_of(turned);  // the same numbers, contiguous
  b.prose(
      {"And the way back to (B, L, E)? `transpose(1, 2)` restores the order of the axes, but moves no data. `view` "
       "would have to merge H and D into one axis, which takes a stride of H of {0}, the size of D. It is {1}, so no "
       "strides describe the result, and `view` raises an error. `reshape` returns a view if one is possible, and a "
       "copy otherwise. `contiguous()` copies only what is not contiguous yet.",
       "那怎么变回 (B, L, E)？`transpose(1, 2)` 把轴换回原来的顺序，但没有移动数据。`view` 要把 H 和 D "
       "合并成一个轴，H 的步长就必须是 {0}，即 D 的大小；而它是 {1}，没有哪组步长能表示合并的结果，于是 `view` "
       "报错。`reshape` 能用视图就返回视图，否则复制一份。`contiguous()` 只在张量不连续时才复制。"},
      {whole(kHeadSize), whole(turned.stride(2))});
  const auto told = [&](const Merged& merged) {
    return merged.works() ? b.say({"works, {0} numbers copied", "可以，复制 {0} 个数"}, {whole(merged.copied)})
                          : b.say({"error", "报错"});
  };
  const Merged reshaped = by_reshape(turned), copied = by_contiguous(turned);
  b.add(Table{b.say({"(B, L, H, D) to (B, L, E)", "从 (B, L, H, D) 到 (B, L, E)"}),
              {"", b.say({"contiguous", "连续的张量"}), b.say({"after transpose(1, 2)", "transpose(1, 2) 之后"})},
              {{".view(B, L, E)", told(by_view(stored)), told(by_view(turned))},
               {".reshape(B, L, E)", told(by_reshape(stored)), told(reshaped)},
               {".contiguous().view(B, L, E)", told(by_contiguous(stored)), told(copied)}}});
  b.prose(
      {"So `out.transpose(1, 2).reshape(B, L, E)` and `out.transpose(1, 2).contiguous().view(B, L, E)` are the same "
       "copy (they differ by at most {0}). The difference: the result of `view` always shares memory with its input; "
       "that of `reshape` may or may not, so do not write into it. And `x.reshape(B, H, L, D)` is as wrong as "
       "`x.view(B, H, L, D)`: both keep the order in memory.",
       "所以 `out.transpose(1, 2).reshape(B, L, E)` 和 `out.transpose(1, 2).contiguous().view(B, L, E)` "
       "做的是同一次复制（最多差 {0}）。区别在于：`view` 的结果一定与输入共享内存；`reshape` "
       "的结果可能共享，也可能不共享，所以不要往里写。另外，`x.reshape(B, H, L, D)` 和 `x.view(B, H, L, D)` "
       "错得一样：都保持内存中的顺序。"},
      {brief(largest_difference(reshaped.result, copied.result))});
  b.add(Table{b.say({"combining the heads", "合并各个头"}),
              layout_header(b),
              {layout_row(b, "out (B, H, L, D)", seen.out), layout_row(b, ".transpose(1, 2)", turned),
               layout_row(b, ".contiguous()", stored), layout_row(b, ".view(B, L, E)", copied.result),
               layout_row(b, b.say({"or: .reshape(B, L, E)", "或者：.reshape(B, L, E)"}), reshaped.result)}});
}

void build_view(Builder& b) {
  const bool wrongly = b.is("split", "wrong");
  const Texts words = b.tokens(kThreeWords);
  b.prose(
      {"{0} words of {1} numbers: {2} numbers in memory, one token after the other. Each cell below shows an offset in "
       "memory. `view` moves no data.",
       "{0} 个词，每个 {1} 个数：内存里 {2} 个数，按词元依次存放。下面每格标的是内存中的偏移。`view` 不移动任何数据。"},
      {whole(kLength), whole(kSize), whole(kLength * kSize)});
  show_memory(b, words, wrongly);
  const Tensor memory = places({1, kLength, kSize});
  const ConstTensorView x = memory.view(), cut = x.reshape({1, kLength, kHeads, kHeadSize});
  b.add(Table{b.say({"shape and strides", "形状和步长"}),
              layout_header(b),
              {layout_row(b, "x (B, L, E)", x), layout_row(b, ".view(B, L, H, D)", cut),
               layout_row(b, ".transpose(1, 2)", cut.transpose(1, 2)),
               layout_row(b, b.say({"x.view(B, H, L, D), wrong", "x.view(B, H, L, D)，错"}), split(x, true))}});
  b.prose({"The last two views in the table have the same shape but different strides. Look at the stride of L, the "
           "distance from one row of a head to the next: {0} in the right split, exactly one token; {1} in the wrong "
           "split.",
           "表中最后两个视图形状相同，步长不同。看 L 这一维的步长，即每个头里从一行到下一行的距离：正确的拆分是 {0}，"
           "正好跨过一个词元；错误的拆分只有 {1}。"},
          {whole(cut.transpose(1, 2).stride(2)), whole(split(x, true).stride(2))});
  show_outputs(b, words, wrongly);
  show_way_back(b);
}

}  // namespace

Question question_view() {
  return {
      {"Why `view(B, L, H, D).transpose(1, 2)` and not `view(B, H, L, D)`? `view` or `reshape`, and what does "
       "`contiguous()` do?",
       "为什么是 `view(B, L, H, D).transpose(1, 2)`，而不是 `view(B, H, L, D)`？`view`、`reshape` 和 `contiguous()` "
       "有什么区别？"},
      {"`view` never moves data: it only splits memory in storage order. The numbers of a token are contiguous, so "
       "split each token first, then move the heads forward. On the way back `view` fails, because the strides no "
       "longer fit: `contiguous()` makes the copy that it needs, and `reshape` makes it by itself.",
       "`view` 不移动数据，只按内存顺序切分。一个词元的数是连续存放的，所以先切开每个词元，再把头的维度移到前面。"
       "合并时步长已对不上，`view` 会报错：`contiguous()` 完成它所需的复制，`reshape` 则会自己复制。"},
      {{"split",
        {"split", "拆分"},
        {{"right", {"view(B, L, H, D).transpose(1, 2)", "view(B, L, H, D).transpose(1, 2)"}},
         {"wrong", {"view(B, H, L, D), the wrong way", "view(B, H, L, D)，错误的做法"}}}}},
      build_view};
}

}  // namespace rapt::exhibits
