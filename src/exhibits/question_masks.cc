// Masks: the meaning of true, and ways to mask.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "rapt/error.h"

namespace rapt::exhibits {
namespace {

constexpr std::int64_t kLength = 4, kSize = 4;
constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

struct Inputs {
  Tensor q = noise({1, 1, kLength, kSize}, 31, 1.3), k = noise({1, 1, kLength, kSize}, 32, 1.3),
         v = noise({1, 1, kLength, kSize}, 33);

  Seen attend(const std::vector<Mask>& masks) const { return see(q, k, v, {.masks = masks}); }
};

// (1, 1, 1, L): one number per key, the same for all queries.
Tensor about_keys(const std::vector<double>& values) {
  return Tensor::from<double>({1, 1, 1, std::ssize(values)}, std::span<const double>(values));
}

ConstTensorView as_row(const Tensor& mask) { return mask.view().select(0, 0).select(0, 0); }

// ---------------------------------------------------------------- keep or ignore?

void build_mask_meaning(Builder& b) {
  const bool wrongly = b.is("read", "inverted");
  Texts words = b.tokens(kThreeWords);
  words.emplace_back("<pad>");
  const Inputs inputs;
  const Mood mood = wrongly ? Mood::wrong : Mood::right;
  const auto mask_matrix = [&](const std::string& title, const ConstTensorView& values, const Texts& rows) {
    Matrix matrix = b.numbers(title, values, rows, words);
    matrix.paint = Paint::none;
    matrix.decimals = 0;
    matrix.reading = b.say({"{row}: the mask has {value} for “{column}”", "{row}：掩码在“{column}”处是 {value}"});
    return matrix;
  };
  const auto weights_matrix = [&](const std::string& title, const Seen& seen, Mood how) {
    Matrix matrix = b.weights(title, of_head(seen.weights, 0), words, words);
    matrix.mood = how;
    return matrix;
  };
  const Texts one_row{b.say({"mask", "掩码"})};

  b.prose({"The last word is padding and must be ignored. Two conventions store that in opposite ways.",
           "最后一个词是填充，不应被关注。有两种约定，写法正好相反。"});

  // 1 means keep. With the opposite reading, the keys to keep are filled.
  const Tensor keeps = about_keys({1, 1, 1, 0}), is_zero = about_keys({0, 0, 0, 1});
  b.code("scores.masked_fill(mask == 0, -1e9)");
  b.add(mask_matrix(b.say({"1 means keep (most PyTorch tutorials)", "1 表示保留（多数 PyTorch 教程的写法）"}),
                    as_row(keeps), one_row));
  const Tensor fill_where = (wrongly ? keeps : is_zero).to(DType::boolean);
  const Seen filled = inputs.attend({Mask::fill(fill_where, -1e9)});
  b.add(weights_matrix(b.say({"weights", "权重"}), filled, mood));

  // 1 means masked: the mask is multiplied by −1e9 and added.
  b.code("scores + mask * -1e9");
  b.add(mask_matrix(b.say({"1 means ignore (TensorFlow tutorial)", "1 表示忽略（TensorFlow 教程的写法）"}),
                    as_row(is_zero), one_row));
  Tensor bias = (wrongly ? keeps : is_zero).clone();
  for (double& value : bias.values<double>()) value *= -1e9;
  const Seen added = inputs.attend({Mask::add(bias)});
  b.add(weights_matrix(b.say({"weights", "权重"}), added, mood));
  if (wrongly) {
    b.wrong({"Each mask was read by the other convention. There is no error, and every row still sums to 1, but all "
             "the weight goes to `<pad>`: {0} in the first row.",
             "两个掩码都按对方的约定解读了。没有报错，每行之和仍是 1，但注意力全给了 `<pad>`：第一行中占 {0}。"},
            {fixed(of_head(filled.weights, 0).at<double>(0, kLength - 1), 2)});
  } else {
    b.right({"The masks are opposite, the weights are the same (they differ by at most {0}), and `<pad>` gets {1}.",
             "两个掩码正好相反，权重却一样（最多差 {0}），`<pad>` 得到 {1}。"},
            {brief(largest_difference(filled.weights, added.weights)),
             fixed(of_head(filled.weights, 0).at<double>(0, kLength - 1), 2)});
  }

  // The attention mask, added: −inf if a query must not see a key.
  Tensor triangle({kLength, kLength}, DType::f64);
  for (std::int64_t i = 0; i < kLength; ++i) {
    for (std::int64_t j = 0; j < kLength; ++j) {
      const bool hidden = wrongly ? j <= i : j > i;
      triangle.view().at<double>(i, j) = hidden ? kMinusInf : 0.0;
    }
  }
  b.prose(
      {"The third convention is an additive mask: −inf excludes a key, 0 leaves it unchanged. This one masks the "
       "future, so it has a row for each query.",
       "第三种约定是加性掩码：−inf 遮住，0 不变。这个掩码遮住未来，所以每个查询一行。"});
  b.code(std::string("scores + torch.full((L, L), -torch.inf)") + (wrongly ? ".tril()" : ".triu(diagonal=1)"));
  b.add(mask_matrix(b.say({"added to the scores", "加到分数上"}), triangle, words));
  b.add(weights_matrix(b.say({"weights", "权重"}), inputs.attend({Mask::add(triangle)}), mood));
  if (wrongly) {
    b.wrong(
        {"Inverted, each word sees only the future, and the last one sees nothing: its weights are 0 in `rapt`, "
         "NaN by the plain formula.",
         "反过来，每个词只看得到未来，最后一个词什么也看不到：它的权重在 `rapt` 里是 0，直接套公式则是 NaN。"});
  }

  b.prose(
      {"Padding mask or attention mask? The shape tells. A padding mask applies to keys and is the same for every "
       "query. An attention mask has a row for each query.",
       "填充掩码还是注意力掩码？看形状。填充掩码只作用于键，对每个查询都一样。注意力掩码每个查询一行。"});
  const auto keep = [&] { return b.say({"keep", "保留"}); };
  const auto ignore = [&] { return b.say({"ignore", "忽略"}); };
  b.add(Table{b.say({"the meaning of true", "True 的含义"}),
              {"", b.say({"true, or 1", "True，即 1"}), b.say({"shape", "形状"})},
              {{"masked_fill(mask == 0, -1e9)", keep(), "(B, 1, 1, Lk), (B, 1, Lq, Lk)"},
               {"scores + mask * -1e9", ignore(), "(B, 1, 1, Lk)"},
               {"torch key_padding_mask", ignore(), "(B, Lk)"},
               {"torch attn_mask, bool", ignore(), "(Lq, Lk), (B·H, Lq, Lk)"},
               {"torch scaled_dot_product_attention", keep(), "(…, Lq, Lk)"},
               {"transformers attention_mask", keep(), "(B, Lk)"},
               {"Keras attention_mask", keep(), "(B, Lq, Lk)"},
               {"rapt Mask::keep", keep(), "(Lq, Lk), (B, H, Lq, Lk)"},
               {"rapt Mask::drop", ignore(), "(Lq, Lk), (B, H, Lq, Lk)"}}});
  b.prose({"A mask of three axes could be (B, Lq, Lk) or (H, Lq, Lk). `rapt` does not guess, and reports an error:",
           "三个轴的掩码，可能是 (B, Lq, Lk)，也可能是 (H, Lq, Lk)。`rapt` 不做猜测，直接报错："});
  try {
    const Tensor three({1, kLength, kLength}, DType::boolean);
    (void)inputs.attend({Mask::keep(three)});
  } catch (const Error& error) {
    b.code(error.what());
  }
}

// ---------------------------------------------------------------- -inf, -1e9, or 0?

// The textbook softmax, to show what a row of −inf does to it.
Tensor plain_softmax(const ConstTensorView& scores) {
  Tensor weights({scores.size(0), scores.size(1)}, DType::f64);
  for (std::int64_t i = 0; i < scores.size(0); ++i) {
    double largest = kMinusInf, sum = 0;
    for (std::int64_t j = 0; j < scores.size(1); ++j) largest = std::max(largest, scores.at<double>(i, j));
    for (std::int64_t j = 0; j < scores.size(1); ++j) sum += std::exp(scores.at<double>(i, j) - largest);
    for (std::int64_t j = 0; j < scores.size(1); ++j) {
      weights.view().at<double>(i, j) = std::exp(scores.at<double>(i, j) - largest) / sum;
    }
  }
  return weights;
}

constexpr double kBillion = 1e9;

// The smallest number of a type with this many bits after the point and this largest exponent: torch.finfo(dtype).min.
double smallest(int bits, int exponent) { return -std::ldexp(2.0 - std::ldexp(1.0, -bits), exponent); }

// What each way to mask makes of the scores (L, L), and the weights.
struct Hidden {
  Tensor scores, weights;
};

Hidden hidden_by(std::string_view how, const Inputs& inputs, const Tensor& hidden) {
  std::vector<Mask> masks;
  if (how == "inf" || how == "book") masks.push_back(Mask::drop(hidden));
  if (how == "1e9") masks.push_back(Mask::fill(hidden, -kBillion));
  if (how == "min") masks.push_back(Mask::fill(hidden, smallest(23, 127)));
  const Seen seen = inputs.attend(masks);
  Hidden result{Tensor::copy_of(of_head(seen.masked, 0)), Tensor::copy_of(of_head(seen.weights, 0))};
  if (how == "book") result.weights = plain_softmax(result.scores);
  if (how != "zero") return result;
  for (std::size_t n = 0; n < hidden.values<bool>().size(); ++n) {
    if (hidden.values<bool>()[n]) result.weights.values<double>()[n] = 0;
  }
  return result;
}

// The scores that softmax gets.
void show_scores(Builder& b, const std::string& how, const Tensor& scores, const Texts& words) {
  if (how != "1e9") {
    b.add(b.scores(how == "zero" ? b.say({"scores, nothing masked", "分数，都没有遮住"})
                                 : b.say({"scores, −inf where masked", "分数，遮住处为 −inf"}),
                   scores, words, words));
    return;
  }
  // A table, because −1000000000.00 would make the cells of a matrix too wide.
  Table table{b.say({"scores, −1e9 where masked", "分数，遮住处为 −1e9"}), {""}, {}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    table.header.push_back(words[i]);
    Texts row{words[i]};
    for (std::int64_t j = 0; j < kLength; ++j) {
      const double score = scores.view().at<double>(static_cast<std::int64_t>(i), j);
      row.push_back(score == -kBillion ? "-1e9" : fixed(score, 2));
    }
    table.rows.push_back(std::move(row));
  }
  b.add(std::move(table));
}

// Whether −1e9 fits into each type, and what fits into every type.
void show_types(Builder& b) {
  b.prose(
      {"−1e9 must also fit the type of the scores. f16 ends at {0}: there `scores.half().masked_fill(mask, -1e9)` "
       "raises “value cannot be converted to type c10::Half without overflow” (at::Half in older versions). What works "
       "in every type is −inf, or `torch.finfo(scores.dtype).min`. The latter is an ordinary number like −1e9: no NaN, "
       "but a fully masked row spreads its weight evenly.",
       "−1e9 还必须能用分数的数据类型表示。f16 最小只到 {0}，所以 `scores.half().masked_fill(mask, -1e9)` 会报错：“"
       "value cannot be converted to type c10::Half without overflow”（旧版本里是 "
       "at::Half）。任何类型都能用的是 −inf，或者 "
       "`torch.finfo(scores.dtype).min`。后者和 −1e9 一样是普通的数：不会出现 "
       "NaN，但整行被遮住时，权重会平均分给各个键。"},
      {brief(smallest(10, 15), 5)});
  struct Type {
    const char* name;
    DType type;
    int bits, exponent;
  };
  constexpr Type kTypes[] = {{"f32", DType::f32, 23, 127}, {"bf16", DType::bf16, 7, 127}, {"f16", DType::f16, 10, 15}};
  const Tensor big = Tensor::from<double>({1}, {-kBillion});
  Table table{b.say({"−1e9 in each type", "各类型里的 −1e9"}),
              {b.say({"type", "类型"}), b.say({"−1e9 rounds to", "−1e9 舍入为"}), "masked_fill(mask, -1e9)",
               "finfo(dtype).min"},
              {}};
  for (const Type& each : kTypes) {
    const double stored = big.to(each.type).to(DType::f64).values<double>()[0];
    table.rows.push_back({each.name, fixed(stored, 0),
                          std::isfinite(stored) ? b.say({"works", "可以"}) : b.say({"error", "报错"}),
                          brief(smallest(each.bits, each.exponent), 5)});
  }
  b.add(std::move(table));
}

void build_hiding(Builder& b) {
  const Texts words = b.tokens(kFourWords);
  const Inputs inputs;
  // A causal triangle, so that some keys are masked, and a fully masked last row.
  Tensor hidden({kLength, kLength}, DType::boolean);
  for (std::int64_t i = 0; i < kLength; ++i) {
    for (std::int64_t j = 0; j < kLength; ++j) hidden.view().at<bool>(i, j) = i + 1 == kLength || j > i;
  }
  b.prose({"Each word sees itself and earlier words. As an edge case, the last word, “{0}”, sees nothing at all, as in "
           "a sentence that is all padding.",
           "每个词只看自己和前面的词。再看一个边界情况：最后一个词“{0}”什么也看不到，就像一整句都是填充。"},
          {words.back()});

  const std::string how = b.chosen("hide");
  const Hidden shown = hidden_by(how, inputs, hidden);
  show_scores(b, how, shown.scores, words);
  if (how == "zero") {
    b.add(
        b.weights(b.say({"softmax of these", "它们的 softmax"}), of_head(inputs.attend({}).weights, 0), words, words));
  }
  Matrix matrix =
      b.weights(how == "zero" ? b.say({"weights, × 0 where masked", "权重，遮住处乘 0"}) : b.say({"weights", "权重"}),
                shown.weights, words, words);
  matrix.mood = how == "inf" ? Mood::right : Mood::wrong;
  b.add(std::move(matrix));
  if (how == "inf") {
    b.right(
        {"exp(−inf) is exactly 0, and the other keys share the weight of 1. The row that sees nothing gives 0, because "
         "there is nothing to average.",
         "exp(−inf) 正好是 0，权重 1 由其余的键分配。什么也看不到的那一行输出 0，因为没有值可以加权。"});
  } else if (how == "book") {
    b.wrong(
        {"The plain formula: in the last row the sum is 0, and 0 / 0 is NaN. In the next layer the k and v of that "
         "word are NaN. 0 × NaN is NaN too, so by this formula even a mask does not keep them out of other outputs.",
         "直接套公式：最后一行的和是 0，0 / 0 就是 NaN。到了下一层，这个词的 k 和 v 也是 NaN。0 × NaN 仍是 "
         "NaN，所以即使遮住它，其他词的输出也会变成 NaN。"});
  } else if (how == "1e9") {
    b.wrong({"−1e9 is an ordinary number. As long as some key is visible, it works: exp(−1e9) rounds to 0. In the last "
             "row all scores are equal, so every masked key gets {0}.",
             "−1e9 只是一个普通的数。只要还有看得见的键，它就管用：exp(−1e9) 会舍入为 "
             "0。最后一行分数全都相等，于是每个被遮住的键都分到 {0}。"},
            {fixed(shown.weights.view().at<double>(kLength - 1, 0), 2)});
  } else {
    b.wrong(
        {"Multiplying by 0 after softmax: the masked keys are already part of the softmax sum, so the rows no longer "
         "sum to 1, and the masked scores still affect the other weights.",
         "softmax 之后再乘 0：被遮住的键已经计入了 softmax 的分母，所以一行之和不再是 1，其余权重也仍受它们影响。"});
  }

  Table sums{b.say({"what each row sums to", "每行之和"}), {""}, {}};
  for (const std::string& word : words) sums.header.push_back(word);
  const std::pair<std::string_view, Both> kWays[] = {{"inf", {"−inf, as rapt does it", "−inf，rapt 的做法"}},
                                                     {"book", {"−inf, the plain formula", "−inf，直接套公式"}},
                                                     {"1e9", {"−1e9", "−1e9"}},
                                                     {"min", {"torch.finfo(dtype).min", "torch.finfo(dtype).min"}},
                                                     {"zero", {"× 0 after softmax", "softmax 之后乘 0"}}};
  for (const auto& [way, name] : kWays) {
    Texts row{b.say(name)};
    for (const double sum : row_sums(hidden_by(way, inputs, hidden).weights)) row.push_back(fixed(sum, 2));
    sums.rows.push_back(std::move(row));
  }
  b.add(std::move(sums));
  show_types(b);
}

}  // namespace

Question question_mask_meaning() {
  return {
      {"Does true in a mask mean keep or ignore? Which shape? Padding mask or attention mask?",
       "掩码里的 True 是保留还是忽略？形状是什么？填充掩码和注意力掩码怎么分？"},
      {"Both conventions exist, so check the line of code that uses the mask. A padding mask has one row for all "
       "queries; an attention mask has one for each.",
       "两种约定都存在，要看使用掩码的那行代码。填充掩码对所有查询只有一行；注意力掩码每个查询一行。"},
      {{"read",
        {"the mask is read", "掩码的解读"},
        {{"right", {"as it was meant", "按原意读"}}, {"inverted", {"inverted, the wrong way", "读反了，错误的做法"}}}}},
      build_mask_meaning};
}

Question question_hiding() {
  return {{"−1e9, −inf, or multiply by 0 after softmax? What about a row with everything masked?",
           "用 −1e9、−inf，还是 softmax 之后乘 0？一整行都被遮住怎么办？"},
          {"−inf before softmax masks exactly, in every type. A row that sees nothing has to be set to 0 explicitly: "
           "the plain formula gives NaN, and −1e9 spreads the weight evenly over the masked keys. −1e9 does not even "
           "fit into f16.",
           "在 softmax 之前用 −inf，任何类型都能完全遮住。一行什么也看不到时必须专门处理为 0：直接套公式会得到 NaN，用 "
           "−1e9 则会把权重平均分给本该遮住的键。f16 里甚至放不下 −1e9。"},
          {{"hide",
            {"masked with", "遮蔽方式"},
            {{"inf", {"−inf, and 0 for a fully masked row", "−inf，整行被遮住时输出 0"}},
             {"book", {"−inf in the plain formula, the wrong way", "−inf，直接套公式，错误的做法"}},
             {"1e9", {"−1e9, the wrong way for a fully masked row", "−1e9，整行被遮住时是错误的做法"}},
             {"zero", {"× 0 after softmax, the wrong way", "softmax 之后乘 0，错误的做法"}}}}},
          build_hiding};
}

}  // namespace rapt::exhibits
