// What q, k and v are, and the weights that a layer returns.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "exhibits/tokens.h"
#include "exhibits/walk.h"
#include "rapt/multi_head_attention.h"

namespace rapt::exhibits {
namespace {

// ---------------------------------------------------------------- q, k and v

// The position at which each distinct word of a sentence first appears.
std::vector<std::int64_t> different(const Sentence& sentence) {
  std::vector<std::int64_t> first;
  for (std::int64_t i = 0; i < sentence.length(); ++i) {
    if (sentence.ids[static_cast<std::size_t>(i)] == std::ssize(first)) first.push_back(i);
  }
  return first;
}

// Compares y with the embedding of each word, by a softmax over the vocabulary: the output matrix is the embedding
// table.
void show_vocabulary(Builder& b, const Walk& walk, const Texts& words, const ConstTensorView& y) {
  const std::vector<std::int64_t> vocabulary = different(walk.sentence);
  const auto count = static_cast<std::int64_t>(vocabulary.size());
  Texts names;
  Tensor keys({1, 1, count, kWho}, DType::f64), query({1, 1, 1, kWho}, DType::f64);
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t token = vocabulary[static_cast<std::size_t>(n)];
    names.push_back(words[static_cast<std::size_t>(token)]);
    for (std::int64_t d = 0; d < kWho; ++d) keys.view().at<double>(0, 0, n, d) = walk.x.view().at<double>(0, token, d);
  }
  for (std::int64_t d = 0; d < kWho; ++d) query.view().at<double>(0, 0, 0, d) = y.at<double>(d);
  const Seen seen = see(query, keys, keys, {.scale = 1.0});  // q·k with the vocabulary, then softmax, as in attention
  Matrix matrix = b.weights(b.say({"probability of each word", "每个词的概率"}), of_head(seen.weights, 0),
                            {b.say({"next word", "下一个词"})}, names);
  matrix.reading = b.say({"{row}: “{column}” with probability {value}", "{row}是“{column}”的概率：{value}"});
  b.add(std::move(matrix));
}

void build_qkv(Builder& b) {
  const bool hard = b.is("lookup", "hard");
  const Texts words = b.tokens(kFiveWords);
  const Walk walk = take_walk(tokenize(kFiveWords.en), 4, false);
  const std::int64_t asks = b.number("word");
  const std::string& word = words[static_cast<std::size_t>(asks)];
  const auto head = [&](const Tensor& each) { return split_heads(each.view(), walk.heads).slice(1, 0, 1); };
  const Seen seen = see(head(walk.q), head(walk.k), head(walk.v), {.scale = hard ? 100.0 : 1 / std::sqrt(6.0)});
  const ConstTensorView q = head(walk.q).select(0, 0).select(0, 0), k = head(walk.k).select(0, 0).select(0, 0),
                        v = head(walk.v).select(0, 0).select(0, 0);
  const Texts places = counted(walk.head_size);

  b.prose({"Every word produces three vectors: the query q (what it looks for), the key k (what others match against) "
           "and the value v (what it passes on). We follow “{0}” in head 0.",
           "每个词都生成三个向量：查询 q（它要找什么）、键 k（供别人匹配的标签）、值 v（它传递的内容）。下面以头 0 "
           "里的“{0}”为例。"},
          {word});
  b.add(b.numbers(b.say({"1. its query", "1. 它的查询"}), q.slice(0, asks, asks + 1), {"q " + word}, places));
  b.add(b.numbers(b.say({"2. the keys of all words", "2. 所有词的键"}), k, words, places));

  Table table{b.say({"3. the query against each key", "3. 查询与每个键"}),
              {b.say({"key", "键"}), hard ? "q·k × 100" : "q·k / √6", b.say({"weight", "权重"})},
              {}};
  const ConstTensorView raw = of_head(seen.raw, 0), weights = of_head(seen.weights, 0);
  for (std::int64_t j = 0; j < walk.length; ++j) {
    table.rows.push_back(
        {words[static_cast<std::size_t>(j)], fixed(raw.at<double>(asks, j), 2), fixed(weights.at<double>(asks, j), 2)});
  }
  b.add(std::move(table));

  Tensor parts({walk.length + 1, walk.head_size}, DType::f64);
  Texts rows;
  for (std::int64_t j = 0; j < walk.length; ++j) {
    rows.push_back(fixed(weights.at<double>(asks, j), 2) + " × v " + words[static_cast<std::size_t>(j)]);
    for (std::int64_t d = 0; d < walk.head_size; ++d) {
      parts.view().at<double>(j, d) = weights.at<double>(asks, j) * v.at<double>(j, d);
    }
  }
  rows.push_back(b.say({"sum = out", "和 = 输出"}));
  copy(of_head(seen.out, 0).select(0, asks), parts.view().select(0, walk.length));
  b.prose({"The output is the weighted sum of the values: each v times its weight, added up number by number.",
           "输出就是值的加权和：每个 v 乘上自己的权重，再逐个数相加。"});
  b.add(b.numbers(b.say({"4. the weighted sum", "4. 加权和"}), parts, rows, places));
  const std::int64_t best = largest_in_row(weights, asks);
  if (hard) {
    b.prose({"With scores this large, only one key counts: the output is the v of “{0}”, as in a database. But such a "
             "lookup has no gradient, so it cannot be learned.",
             "分数这么大时，只有一个键起作用：输出就是“{0}”的 v，等同于查数据库。但这样的查找没有梯度，无法学习。"},
            {words[static_cast<std::size_t>(best)]});
  } else {
    b.prose({"Is V a database? Nearly: a database returns the one entry whose key matches. Here each key matches to "
             "some degree, and the result mixes all values. “{0}” contributes most, {1}.",
             "V "
             "是数据库吗？差不多：数据库只返回键相符的那一条。这里每个键都有一定程度的匹配，结果是所有值的加权和。“{0}"
             "”占比最大，为 {1}。"},
            {words[static_cast<std::size_t>(best)], fixed(weights.at<double>(asks, best), 2)});
  }

  b.prose({"What happens to the output? The outputs of all heads are concatenated, W_o mixes them, and the word has "
           "{0} numbers again, ready for the next layer. Here are the first six.",
           "输出去了哪里？所有头的输出拼接起来，由 W_o 混合，这个词又变回 {0} 个数，送入下一层。这里是前六个。"},
          {whole(kEmbedding)});
  const ConstTensorView y = walk.y.view().select(0, 0).select(0, asks);
  b.add(b.numbers(b.say({"5. after W_o", "5. 经过 W_o"}),
                  walk.y.view().select(0, 0).slice(0, asks, asks + 1).slice(1, 0, 6), {"y " + word}, places));
  b.prose(
      {"After the last layer, the dot product of this vector with one vector per vocabulary word gives logits, and "
       "softmax turns them into probabilities. This model is not trained, so they mean nothing yet.",
       "最后一层之后，这个向量和词表里每个词的向量做点积，再用 softmax "
       "变成概率。这个模型没有训练过，所以概率还没有意义。"});
  show_vocabulary(b, walk, words, y);
}

// ---------------------------------------------------------------- need_weights

Texts measured_row(const Builder& b, const std::string& name, ReturnWeights weights) {
  constexpr std::int64_t kLong = 256, kWidth = 64;
  const MultiHeadAttention layer({.embed_size = kWidth, .heads = 8, .batch_first = true}, 1);
  const Tensor x = noise({1, kLong, kWidth}, 63).to(DType::f32);
  const LayerOptions options{.weights = weights};
  std::int64_t bytes = 0;
  double fastest = INFINITY;
  for (int n = 0; n < 5; ++n) {
    const auto begin = std::chrono::steady_clock::now();
    const LayerResult result = layer.forward(x, options);
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    bytes = weights == ReturnWeights::none ? 0 : result.weights.count() * static_cast<std::int64_t>(sizeof(float));
  }
  return {name, fixed(1e3 * fastest, 2) + " ms", b.say({"{0} KiB", "{0} KiB"}, {whole(bytes / 1024)})};
}

void build_need_weights(Builder& b) {
  constexpr std::int64_t kWidth = 8, kHeads = 2;
  constexpr double kRate = 0.25;
  const bool training = b.is("dropout", "on"), mean = b.is("weights", "mean");
  const Texts words = b.tokens(kFourWords);
  const MultiHeadAttention layer(
      {.embed_size = kWidth, .heads = kHeads, .dropout = kRate, .batch_first = true, .dtype = DType::f64}, 5);
  const Tensor x = noise({1, std::ssize(words), kWidth}, 61, 2.0);
  LayerOptions options{.weights = mean ? ReturnWeights::mean : ReturnWeights::per_head, .training = training};
  options.attention.dropout.seed = 4;
  const LayerResult result = layer.forward(x, options);

  b.prose(
      {"`need_weights=True` also returns the weights. With `average_attn_weights=True`, the default, that is one "
       "table: the mean over all heads. With False, there is one per head.",
       "`need_weights=True` 除了输出还返回权重。默认 `average_attn_weights=True` 只有一张表：所有头的平均。设为 False "
       "则每个头一张。"});
  Table sums{b.say({"what each row sums to", "每行之和"}), {""}, {}};
  for (const std::string& word : words) sums.header.push_back(word);
  const auto show = [&](const std::string& title, const ConstTensorView& weights) {
    b.add(b.weights(title, weights, words, words));
    Texts row{title};
    for (const double sum : row_sums(weights)) row.push_back(fixed(sum, 2));
    sums.rows.push_back(std::move(row));
  };
  if (mean) {
    show(b.say({"mean of {0} heads", "{0} 个头的平均"}, {whole(kHeads)}), result.weights.view().select(0, 0));
    b.prose(
        {"The mean hides what a single head does: two heads that look at different words become one that looks at "
         "both.",
         "平均会掩盖单个头的行为：两个头各看一个词，平均之后就像一个头同时看两个词。"});
  } else {
    for (std::int64_t h = 0; h < kHeads; ++h) show(b.head(h), of_head(result.weights, h));
  }
  b.add(std::move(sums));
  if (training) {
    b.prose({"Not a bug: dropout is on. Each weight becomes 0 with probability {0}, and the others are divided by {1}. "
             "A row sums to 1 only on average. Call `eval()` before you look at weights.",
             "这不是错误：dropout 开着。每个权重以 {0} 的概率变成 0，其余除以 {1}。一行之和只在平均意义上是 "
             "1。看权重之前先调用 `eval()`。"},
            {fixed(kRate, 2), fixed(1 - kRate, 2)});
  } else {
    b.right({"Without dropout every row sums to 1.", "没有 dropout，每行之和都是 1。"});
  }

  b.prose(
      {"The cost, measured just now with 256 words and 8 heads. Without weights, the 256×256 table is never stored.",
       "代价：刚刚在本机用 256 个词、8 个头测得。不返回权重时，256×256 的表根本不会存储。"});
  b.add(Table{b.say({"measured", "实测"}),
              {"need_weights", b.say({"time", "时间"}), b.say({"memory for weights", "权重占用的内存"})},
              {measured_row(b, "False", ReturnWeights::none),
               measured_row(b, b.say({"True, mean", "True，平均"}), ReturnWeights::mean),
               measured_row(b, b.say({"True, per head", "True，每个头"}), ReturnWeights::per_head)},
              true});
}

}  // namespace

Question question_qkv() {
  return {
      {"What are Q, K and V? Is V a database? What happens to the output?",
       "Q、K、V 是什么？V 是数据库吗？输出去了哪里？"},
      {"q is the query, k the key it is matched against, v the value that is passed on. The output is a weighted sum "
       "of all values, with more weight where the key matches better: a soft lookup. W_o then combines the heads.",
       "q 是查询，k 是用来匹配的键，v 是要传递的内容。输出是所有值的加权和，键越匹配权重越大：这是一种“软”查表。之后由 "
       "W_o 合并各个头。"},
      {{"word",
        {"query", "查询词"},
        {{"4", {"the 5th word", "第 5 个词"}},
         {"1", {"the 2nd word", "第 2 个词"}},
         {"3", {"the 4th word", "第 4 个词"}}}},
       {"lookup",
        {"lookup", "查法"},
        {{"soft", {"soft: softmax of q·k / √D", "软：q·k / √D 的 softmax"}},
         {"hard", {"hard, as a database: scores × 100", "硬，像数据库：分数 × 100"}}}}},
      build_qkv};
}

Question question_need_weights() {
  return {{"What does `need_weights` return? Averaged or per head? Why do rows not sum to 1 in training?",
           "`need_weights` 返回什么？取平均还是每个头一份？训练时为什么一行之和不是 1？"},
          {"The L×L weights, by default their mean over heads. In training, dropout changes them, so rows sum to 1 "
           "only on average.",
           "返回 L×L 的权重，默认是各头的平均。训练时 dropout 会改变它们，所以一行之和只在平均意义上是 1。"},
          {{"weights",
            {"weights", "权重"},
            {{"mean", {"mean of the heads", "各头的平均"}}, {"per_head", {"one table for each head", "每个头一张"}}}},
           {"dropout",
            {"dropout", "dropout"},
            {{"off", {"off: eval()", "关：eval()"}}, {"on", {"on: train()", "开：train()"}}}}},
          build_need_weights};
}

}  // namespace rapt::exhibits
