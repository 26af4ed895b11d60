// Heads: one projection split into blocks, why it is split before softmax, and why there are several.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "exhibits/tokens.h"
#include "exhibits/walk.h"
#include "rapt/layers.h"
#include "rapt/multi_head_attention.h"

namespace rapt::exhibits {
namespace {

// ---------------------------------------------------------------- one projection, or one per head

constexpr std::int64_t kSize = 8;

MultiHeadAttention layer_of(std::int64_t heads) {
  return MultiHeadAttention(
      {.embed_size = kSize, .heads = heads, .separate_projections = true, .batch_first = true, .dtype = DType::f64}, 7);
}

std::int64_t parameters_of(const MultiHeadAttention& layer) {
  std::int64_t count = 0;
  for (const NamedTensor& each : layer.parameters()) count += each.value.count();
  return count;
}

void build_projection(Builder& b) {
  const std::int64_t heads = b.number("heads"), size = kSize / heads;
  const Texts words = b.tokens(kThreeWords);
  const MultiHeadAttention layer = layer_of(heads);
  const ConstTensorView weight = layer.parameters()[0].value;  // (E out, E in)

  b.prose({"W_q has {0} inputs and {0} outputs. Below, each column computes one number of q. Each head owns {1} "
           "adjacent columns: splitting q into heads means splitting W_q into column blocks.",
           "W_q 输入 {0} 个数，输出 {0} 个数。下面每一列算出 q 的一个数。每个头对应相邻的 {1} 列：把 q "
           "拆成多个头，就是把 W_q 按列分块。"},
          {whole(kSize), whole(size)});
  Matrix matrix = b.numbers(b.say({"W_q, coloured by head", "W_q，按头着色"}), weight.transpose(0, 1),
                            counted(kSize, "x"), counted(kSize, "q"));
  matrix.paint = Paint::group;
  for (std::int64_t n = 0; n < kSize * kSize; ++n) matrix.groups.push_back(static_cast<int>(n % kSize / size));
  for (std::int64_t h = 0; h < heads; ++h) matrix.legend.push_back(b.head(h));
  matrix.reading = b.say({"{row} has the factor {value} in {column}", "{column} 中 {row} 的系数是 {value}"});
  b.add(std::move(matrix));

  // Separate small matrices, compared with the split large one.
  const Tensor x = noise({std::ssize(words), kSize}, 71);
  Tensor q({std::ssize(words), kSize}, DType::f64);
  linear(q, x, weight);
  double difference = 0;
  for (std::int64_t h = 0; h < heads; ++h) {
    Tensor own({std::ssize(words), size}, DType::f64);
    linear(own, x, weight.slice(0, h * size, (h + 1) * size));
    difference = std::max(difference, largest_difference(own, q.view().slice(1, h * size, (h + 1) * size)));
  }
  b.right(
      {"One product with the whole W_q and then a split, or {0} products with one block each: the same q, off by at "
       "most {1}. One large product is just faster.",
       "用整个 W_q 乘一次再拆分，或者分块各乘一次、共 {0} 次：得到的 q 相同，最多差 {1}。区别只是一次大矩阵乘法更快。"},
      {whole(heads), brief(difference)});

  Table counts{b.say({"parameters of the layer, E = {0}", "这一层的参数，E = {0}"}, {whole(kSize)}),
               {b.say({"heads", "头数"}), b.say({"head size", "每头维度"}), b.say({"parameters", "参数个数"})},
               {}};
  for (const std::int64_t n : {1, 2, 4, 8}) {
    counts.rows.push_back({whole(n), whole(kSize / n), whole(parameters_of(layer_of(n)))});
  }
  b.add(std::move(counts));
  b.prose({"The number of parameters does not change: 4 matrices of {0}×{0} and 4 biases of {0}, however they are "
           "split. More heads means narrower heads.",
           "参数个数不变：4 个 {0}×{0} 的矩阵，4 个长 {0} 的偏置，怎么拆分都一样。头越多，每个头越窄。"},
          {whole(kSize)});
}

// ---------------------------------------------------------------- softmax in segments

void build_segments(Builder& b) {
  const bool wrongly = b.is("split", "no");
  const Texts words = b.tokens(kFiveWords);
  const Walk four = take_walk(tokenize(kFiveWords.en), 4, false), one = take_walk(tokenize(kFiveWords.en), 1, false);

  b.prose({"With four heads there are four tables of scores, {0}×{0} each. Each score sums the products of the 6 "
           "numbers of its head.",
           "四个头就有四张 {0}×{0} 的分数表。每个分数只对本头那 6 个数的乘积求和。"},
          {whole(four.length)});
  Tensor sum({four.length, four.length}, DType::f64);
  for (std::int64_t h = 0; h < four.heads; ++h) {
    Matrix matrix = b.scores("q·k, " + b.head(h), of_head(four.scores, h), words, words);
    matrix.decimals = 1;
    b.add(std::move(matrix));
    for (std::int64_t n = 0; n < sum.count(); ++n) {
      sum.values<double>()[static_cast<std::size_t>(n)] +=
          of_head(four.scores, h).at<double>(n / four.length, n % four.length);
    }
  }
  b.prose({"Without the split, QKᵀ sums over all 24 numbers at once. That gives one table, the sum of the four (off by "
           "at most {0}). The contribution of each segment is lost before softmax.",
           "不拆分时，QKᵀ 一次把 24 个数全加起来。只剩一张表，就是那四张之和（最多差 {0}）。softmax "
           "还没开始，各段的信息就已经混在一起了。"},
          {brief(largest_difference(sum, of_head(one.scores, 0)))});
  Matrix total = b.scores(b.say({"q·k without the split", "q·k，不拆分"}), of_head(one.scores, 0), words, words);
  total.decimals = 1;
  b.add(std::move(total));

  if (wrongly) {
    b.wrong(
        {"There is one table, and its columns are words, not dimensions. Splitting it into segments would split the "
         "sentence. One softmax gives one set of weights, which all 24 numbers of v share.",
         "只有一张表，它的列是词，不是维度。对它分段，分的是句子。一次 softmax 只给出一组权重，v 的 24 个数共用。"});
    Matrix matrix =
        b.weights(b.say({"softmax of the one table", "这一张表的 softmax"}), of_head(one.weights, 0), words, words);
    matrix.mood = Mood::wrong;
    b.add(std::move(matrix));
  } else {
    b.right({"Split q and k first: four tables, four softmaxes, four ways to attend to the sentence.",
             "先拆分 q 和 k：四张表，四次 softmax，四种关注这句话的方式。"});
    for (std::int64_t h = 0; h < four.heads; ++h) {
      Matrix matrix =
          b.weights(b.say({"weights, {0}", "权重，{0}"}, {b.head(h)}), of_head(four.weights, h), words, words);
      matrix.mood = Mood::right;
      b.add(std::move(matrix));
    }
  }
  b.add(Table{b.say({"shape of the weights", "权重的形状"}),
              {"", b.say({"shape", "形状"})},
              {{b.say({"split into 4 heads", "拆成 4 个头"}), to_string(four.weights.shape())},
               {b.say({"not split", "不拆分"}), to_string(one.weights.shape())}}});
}

// ---------------------------------------------------------------- why several

void build_several_heads(Builder& b) {
  const std::int64_t heads = b.number("heads");
  const Texts words = b.tokens(kFiveWords);
  const Sentence sentence = tokenize(kFiveWords.en);
  const Walk walk = take_walk(sentence, heads, false), one = take_walk(sentence, 1, false),
             four = take_walk(sentence, 4, false);
  constexpr std::int64_t kAsks = 3, kSame = 0, kBefore = 2;  // the second "the", the first "the", and "and"

  b.prose(
      {"The second “{0}” has two relations at once: the word before it is “{1}”, and the same word appears at the "
       "start. Of the four heads, head 0 is built to attend to the previous word, head 1 to the same word.",
       "第二个“{0}”同时有两种关系：它前面是“{1}”，句首还有同一个词。四个头里，头 0 专看前一个词，头 1 专看相同的词。"},
      {words[kAsks], words[kBefore]});
  const std::int64_t shown = std::min<std::int64_t>(walk.heads, 4);
  for (std::int64_t h = 0; h < shown; ++h) {
    Matrix matrix = b.weights(b.say({"weights, {0} of {1}", "权重，{0}（共 {1} 个）"}, {b.head(h), whole(heads)}),
                              of_head(walk.weights, h), words, words);
    matrix.mood = heads == 1 ? Mood::wrong : Mood::plain;
    b.add(std::move(matrix));
  }
  if (shown < heads) {
    b.prose({"(The first {0} of {1} heads are shown.)", "（只显示 {1} 个头里的前 {0} 个。）"},
            {whole(shown), whole(heads)});
  }
  const auto weight = [&](const Walk& of, std::int64_t h, std::int64_t key) {
    return fixed(of_head(of.weights, h).at<double>(kAsks, key), 2);
  };
  b.add(Table{b.say({"the second “{0}” attends to", "第二个“{0}”关注"}, {words[kAsks]}),
              {"", b.say({"“{0}”, the word before", "“{0}”，前一个词"}, {words[kBefore]}),
               b.say({"“{0}”, the same word", "“{0}”，相同的词"}, {words[kSame]})},
              {{b.say({"1 head", "1 个头"}), weight(one, 0, kBefore), weight(one, 0, kSame)},
               {b.say({"4 heads, head 0", "4 个头，头 0"}), weight(four, 0, kBefore), weight(four, 0, kSame)},
               {b.say({"4 heads, head 1", "4 个头，头 1"}), weight(four, 1, kBefore), weight(four, 1, kSame)}}});
  b.prose({"One head has one row of weights for “{0}”, and all relations share it: the previous word gets only {1}. "
           "Several heads keep the relations apart, in different parts of the output.",
           "一个头对“{0}”只有一行权重，所有关系都挤在里面：前一个词只剩 {1}。多个头把它们分开，放在输出的不同位置。"},
          {words[kAsks], weight(one, 0, kBefore)}, heads == 1 ? Mood::wrong : Mood::right);

  b.prose(
      {"Does one head of 1000 dimensions give each dimension 0.001? No. Softmax runs over the keys. The dimensions are "
       "summed within each score, before softmax.",
       "那么一个 1000 维的头，是不是每一维只分到 0.001？不是。softmax 是沿键的方向做的；各个维度早在 softmax "
       "之前，就在分数里加起来了。"});
  Table shares{b.say({"one query, 5 keys", "一个查询，5 个键"}), {"D"}, {}};
  for (const std::string& key : counted(5, "k")) shares.header.push_back(key);
  shares.header.push_back(b.say({"sum", "和"}));
  for (const std::int64_t size : {8, 64, 1000}) {
    const Seen seen = see(noise({1, 1, 1, size}, 81), noise({1, 1, 5, size}, 82), noise({1, 1, 5, 1}, 83));
    Texts row{whole(size)};
    for (std::int64_t j = 0; j < 5; ++j) row.push_back(fixed(of_head(seen.weights, 0).at<double>(0, j), 2));
    row.push_back(fixed(row_sums(of_head(seen.weights, 0))[0], 2));
    shares.rows.push_back(std::move(row));
  }
  b.add(std::move(shares));
}

}  // namespace

Question question_projection() {
  return {{"One projection E×E and then split, or one per head? Does splitting add parameters?",
           "是一个 E×E 的投影再拆分，还是每个头一个？拆分会增加参数吗？"},
          {"They are the same: the projection of a head is a block of columns of W. Splitting adds no parameters; "
           "their number does not depend on the number of heads.",
           "是一回事：一个头的投影就是 W 中的若干列。拆分不增加任何参数，参数个数和头数无关。"},
          {{"heads", {"heads", "头数"}, {{"2", {"2", "2"}}, {"1", {"1", "1"}}, {"4", {"4", "4"}}, {"8", {"8", "8"}}}}},
          build_projection};
}

Question question_segments() {
  return {{"Can I skip the split and apply softmax in segments?", "能不能不拆分，直接分段做 softmax？"},
          {"No. QKᵀ sums over all of E before softmax, so the segments are gone: what is left is one L×L table instead "
           "of H tables.",
           "不能。QKᵀ 在 softmax 之前就对整个 E 求了和，分段已不存在：只剩一张 L×L 的表，而不是 H 张。"},
          {{"split",
            {"split", "拆分"},
            {{"yes", {"before QKᵀ", "在 QKᵀ 之前"}}, {"no", {"not at all, the wrong way", "不拆，错误的做法"}}}}},
          build_segments};
}

Question question_several_heads() {
  return {
      {"Why several heads at all? Does one head of 1000 dimensions give each dimension 0.001?",
       "为什么要多个头？一个 1000 维的头，每一维只分到 0.001 吗？"},
      {"A head has one set of weights, so it can represent one relation, or an average of several. Softmax distributes "
       "1 over the keys, never over the dimensions.",
       "一个头只有一组权重，只能表示一种关系，否则就是几种关系的平均。softmax 是把 1 分给各个键，而不是分给各个维度。"},
      {{"heads",
        {"heads", "头数"},
        {{"4", {"4", "4"}},
         {"1", {"1: both relations in one", "1：两种关系挤在一起"}},
         {"2", {"2", "2"}},
         {"8", {"8", "8"}}}}},
      build_several_heads};
}

}  // namespace rapt::exhibits
