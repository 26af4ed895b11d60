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

  b.prose(kWeightAxes);
  b.prose(
      {"W_q has {0} inputs and {0} outputs: {0} columns, {0} rows. Each head owns {1} adjacent rows: splitting q into "
       "heads means splitting W_q into blocks of rows. With W_o it is the other way round: its inputs are the "
       "numbers of the heads, so a head owns columns.",
       "W_q 输入 {0} 个数，输出 {0} 个数，即 {0} 列、{0} 行。每个头对应相邻的 {1} 行：把 q 拆成多个头，就是把 W_q "
       "按行分块。W_o 正相反：它的输入是各个头的数，所以每个头对应它的若干列。"},
      {whole(kSize), whole(size)});
  Matrix matrix = b.numbers(b.say({"W_q (out, in), coloured by head", "W_q (out, in)，按头着色"}), weight,
                            counted(kSize, "q"), counted(kSize, "x"));
  matrix.paint = Paint::group;
  for (std::int64_t n = 0; n < kSize * kSize; ++n) matrix.groups.push_back(static_cast<int>(n / kSize / size));
  for (std::int64_t h = 0; h < heads; ++h) matrix.legend.push_back(b.head(h));
  matrix.reading = b.say({"{row}: the factor of {column} is {value}", "{row} 中 {column} 的系数是 {value}"});
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
        b.weights(b.say({"softmax of the one table / √{0}", "这一张表除以 √{0}，再做 softmax"}, {whole(one.head_size)}),
                  of_head(one.weights, 0), words, words);
    matrix.mood = Mood::wrong;
    b.add(std::move(matrix));
  } else {
    b.right({"Split q and k first: four tables, each divided by √{0}, four softmaxes, four ways to attend to the "
             "sentence.",
             "先拆分 q 和 k：四张表各自除以 √{0}，四次 softmax，四种关注这句话的方式。"},
            {whole(four.head_size)});
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

// The head that gives a relation the most weight.
struct Best {
  std::int64_t head = 0;
  double weight = -1;
  bool is_own() const { return weight > 0.5; }  // most of a row: two relations cannot both have most of one
};

// A word's weights on the keys that stand in a relation to it, in each head.
std::vector<double> shares(const Walk& walk, std::int64_t query, const std::vector<std::int64_t>& keys) {
  std::vector<double> found;
  for (std::int64_t h = 0; h < walk.heads; ++h) {
    double sum = 0;
    for (const std::int64_t key : keys) sum += of_head(walk.weights, h).at<double>(query, key);
    found.push_back(sum);
  }
  return found;
}

Best best_of(const std::vector<double>& found) {
  Best best;
  for (std::size_t h = 0; h < found.size(); ++h) {
    if (found[h] > best.weight) best = {static_cast<std::int64_t>(h), found[h]};
  }
  return best;
}

void build_several_heads(Builder& b) {
  const std::int64_t heads = b.number("heads");
  const Texts words = b.tokens(kFiveWords);
  const Sentence sentence = tokenize(kFiveWords.en);
  const Walk walk = take_walk(sentence, heads, false), one = take_walk(sentence, 1, false),
             four = take_walk(sentence, 4, false);
  constexpr std::int64_t kAsks = 3, kBefore = 2;                    // the second "the", and "and"
  const std::vector<std::int64_t> before{kBefore}, same{0, kAsks};  // both "the"
  const auto percent = [](double share) { return fixed(100 * share, 0); };

  b.prose({"The second “{0}” has two relations at once: the word before it is “{1}”, and the same word appears at the "
           "start. The matrices of this model are made for four heads of {2} numbers: head 0 attends to the previous "
           "word, head 1 to the same word.",
           "第二个“{0}”同时有两种关系：它前面是“{1}”，句首还有同一个词。这个模型的矩阵是按四个头、每个头 {2} "
           "个数设计的：头 0 专看前一个词，头 1 专看相同的词。"},
          {words[kAsks], words[kBefore], whole(four.head_size)});
  if (heads != four.heads) {
    b.prose({"Here the same {0} numbers are cut for another number of heads: {1} of {2} numbers each.",
             "这里把同样的 {0} 个数换一种切法：{1} 个头，每个头 {2} 个数。"},
            {whole(kEmbedding), whole(heads), whole(walk.head_size)});
  }
  const std::vector<double> to_before = shares(walk, kAsks, before), to_same = shares(walk, kAsks, same);
  const Best previous = best_of(to_before), repeated = best_of(to_same);
  const bool apart = previous.is_own() && repeated.is_own();
  const std::int64_t shown = std::min<std::int64_t>(walk.heads, 4);
  for (std::int64_t h = 0; h < shown; ++h) {
    Matrix matrix = b.weights(b.say({"weights, {0} of {1}", "权重，{0}（共 {1} 个）"}, {b.head(h), whole(heads)}),
                              of_head(walk.weights, h), words, words);
    matrix.mood = apart ? Mood::plain : Mood::wrong;
    b.add(std::move(matrix));
  }
  if (shown < heads) {
    b.prose({"(The first {0} of {1} heads are shown.)", "（只显示 {1} 个头里的前 {0} 个。）"},
            {whole(shown), whole(heads)});
  }
  Table table{b.say({"weights of the second “{0}”", "第二个“{0}”的权重"}, {words[kAsks]}),
              {b.say({"head", "头"}), b.say({"“{0}”, the word before", "“{0}”，前一个词"}, {words[kBefore]}),
               b.say({"“{0}”, the same word (both)", "“{0}”，相同的词（两处之和）"}, {words[kAsks]})},
              {}};
  for (std::size_t h = 0; h < to_before.size(); ++h) {
    table.rows.push_back({whole(static_cast<std::int64_t>(h)), fixed(to_before[h], 2), fixed(to_same[h], 2)});
  }
  b.add(std::move(table));
  if (apart) {
    b.right(
        {"Each relation has a head of its own: head {0} gives {1}% of its weight to the word before, head {2} gives "
         "{3}% to the same word. They end up in different parts of the output. A single head has one row for both: "
         "the word before gets {4}%, the same word {5}%.",
         "每种关系都有自己的头：头 {0} 把 {1}% 的权重给前一个词，头 {2} 把 {3}% "
         "给相同的词，结果放在输出的不同位置。如果只有一个头，两种关系就挤在同一行里：前一个词得 "
         "{4}%，相同的词得 {5}%。"},
        {whole(previous.head), percent(previous.weight), whole(repeated.head), percent(repeated.weight),
         percent(shares(one, kAsks, before)[0]), percent(shares(one, kAsks, same)[0])});
  } else {
    b.wrong(
        {"The relations are not kept apart: a head has one row of weights for “{0}”, which all relations in that head "
         "share. Here the word before gets at most {1}% (in head {2}), the same word at most {3}% (in head {4}). "
         "With four heads it is {5}% and {6}%.",
         "两种关系没有分开：一个头对“{0}”只有一行权重，落在这个头里的所有关系都挤在这一行。这里前一个词最多得 "
         "{1}%（头 {2}），相同的词最多得 {3}%（头 {4}）。四个头时分别是 {5}% 和 {6}%。"},
        {words[kAsks], percent(previous.weight), whole(previous.head), percent(repeated.weight), whole(repeated.head),
         percent(best_of(shares(four, kAsks, before)).weight), percent(best_of(shares(four, kAsks, same)).weight)});
  }

  b.prose(
      {"Does one head of 1000 dimensions give each dimension 0.001? No. Softmax runs over the keys. The dimensions are "
       "summed within each score, before softmax.",
       "那么一个 1000 维的头，是不是每一维只分到 0.001？不是。softmax 是沿键的方向做的；各个维度早在 softmax "
       "之前，就在分数里加起来了。"});
  Table sums{b.say({"one query, 5 keys", "一个查询，5 个键"}), {"D"}, {}};
  for (const std::string& key : counted(5, "k")) sums.header.push_back(key);
  sums.header.push_back(b.say({"sum", "和"}));
  for (const std::int64_t size : {8, 64, 1000}) {
    const Seen seen = see(noise({1, 1, 1, size}, 81), noise({1, 1, 5, size}, 82), noise({1, 1, 5, 1}, 83));
    Texts row{whole(size)};
    for (std::int64_t j = 0; j < 5; ++j) row.push_back(fixed(of_head(seen.weights, 0).at<double>(0, j), 2));
    row.push_back(fixed(row_sums(of_head(seen.weights, 0))[0], 2));
    sums.rows.push_back(std::move(row));
  }
  b.add(std::move(sums));
}

}  // namespace

Question question_projection() {
  return {{"One projection E×E and then split, or one per head? Does splitting add parameters?",
           "是一个 E×E 的投影再拆分，还是每个头一个？拆分会增加参数吗？"},
          {"They are the same: the projection of a head is a block of rows of W_q, W_k or W_v. Splitting adds no "
           "parameters; their number does not depend on the number of heads.",
           "是一回事：一个头的投影就是 W_q、W_k、W_v 各自的若干行。拆分不增加任何参数，参数个数和头数无关。"},
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
      {{"heads", {"heads", "头数"}, {{"4", {"4", "4"}}, {"1", {"1", "1"}}, {"2", {"2", "2"}}, {"8", {"8", "8"}}}}},
      build_several_heads};
}

}  // namespace rapt::exhibits
