// What q, k and v are, and the weights that a layer gives back.
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

// The words of a sentence, each once.
std::vector<std::int64_t> different(const Sentence& sentence) {
  std::vector<std::int64_t> first;
  for (std::int64_t i = 0; i < sentence.length(); ++i) {
    if (sentence.ids[static_cast<std::size_t>(i)] == std::ssize(first)) first.push_back(i);
  }
  return first;
}

// y, compared with who each word is: softmax over the vocabulary. The output matrix is that of the embeddings.
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
  const Seen seen =
      see(query, keys, keys, {.scale = 1.0});  // q·k with the vocabulary, then softmax: the same arithmetic
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

  b.prose({"Every word makes three vectors. q is its question, k is the label it shows to those who ask, v is what it "
           "hands over. We follow “{0}” in head 0.",
           "每个词都造出三个向量。q 是它的提问，k 是它给别人看的标签，v 是它交出的内容。我们跟着头 0 里的“{0}”走。"},
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
    b.prose({"With scores this large only one key counts: the output is the v of “{0}”, and this is a database. But "
             "such a lookup passes no gradient, so nobody could learn it.",
             "分数这么大时只有一个键算数：输出就是“{0}”的 v，这就是数据库。可这样查不出梯度，学不会。"},
            {words[static_cast<std::size_t>(best)]});
  } else {
    b.prose({"Is V a database? Nearly: a database returns the one entry whose key matches. Here each key matches a "
             "little, and all values come mixed. “{0}” gives most, {1}.",
             "V "
             "是数据库吗？差不多：数据库只返回键相符的那一条。这里每个键都符合一点，值按比例混在一起。“{0}”给得最多，{"
             "1}。"},
            {words[static_cast<std::size_t>(best)], fixed(weights.at<double>(asks, best), 2)});
  }

  b.prose({"What becomes of it? The outputs of all heads lie side by side, W_o mixes them, and the word has {0} "
           "numbers again, ready for the next layer. Here are the first six.",
           "输出去了哪里？所有头的输出并排放好，W_o 把它们混合，这个词又有了 {0} 个数，交给下一层。这是前六个。"},
          {whole(kEmbedding)});
  const ConstTensorView y = walk.y.view().select(0, 0).select(0, asks);
  b.add(b.numbers(b.say({"5. after W_o", "5. 经过 W_o"}),
                  walk.y.view().select(0, 0).slice(0, asks, asks + 1).slice(1, 0, 6), {"y " + word}, places));
  b.prose(
      {"After the last layer, the vector is compared with one vector for each word of the vocabulary, and softmax "
       "makes probabilities of it. This model is not trained, so they mean nothing yet.",
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
      {"`need_weights=True` gives back the weights beside the output. With `average_attn_weights=True`, the default, "
       "it is one table: the mean of all heads. With False there is one for each head.",
       "`need_weights=True` 除了输出还返回权重。默认 `average_attn_weights=True` 只有一张表：所有头的平均。设为 False "
       "则每个头一张。"});
  Table sums{b.say({"what each row sums to", "每行之和"}), {""}, {}};
  for (const std::string& word : words) sums.header.push_back(word);
  const auto show = [&](const std::string& title, const ConstTensorView& weights) {
    Matrix matrix = b.weights(title, weights, words, words);
    matrix.mood = training ? Mood::wrong : Mood::plain;
    b.add(std::move(matrix));
    Texts row{title};
    for (const double sum : row_sums(weights)) row.push_back(fixed(sum, 2));
    sums.rows.push_back(std::move(row));
  };
  if (mean) {
    show(b.say({"mean of {0} heads", "{0} 个头的平均"}, {whole(kHeads)}), result.weights.view().select(0, 0));
    b.prose(
        {"The mean hides what a single head does: two heads that look at different words become one that looks at "
         "both.",
         "平均会盖住单个头的行为：两个头各看一个词，平均之后就像一个头同时看两个词。"});
  } else {
    for (std::int64_t h = 0; h < kHeads; ++h) show(b.head(h), of_head(result.weights, h));
  }
  b.add(std::move(sums));
  if (training) {
    b.wrong({"Not a bug: dropout is on. Each weight becomes 0 with probability {0}, and the others are divided by {1}. "
             "A row sums to 1 only on average. Call `eval()` before you look at weights.",
             "这不是错误：dropout 开着。每个权重以 {0} 的概率变成 0，其余除以 {1}。一行之和只在平均意义上是 "
             "1。看权重之前先调用 `eval()`。"},
            {fixed(kRate, 2), fixed(1 - kRate, 2)});
  } else {
    b.right({"Without dropout every row sums to 1.", "没有 dropout，每行之和都是 1。"});
  }

  b.prose(
      {"What it costs, measured just now on 256 words and 8 heads. Without weights, no table of 256×256 is ever "
       "stored.",
       "代价如何？刚刚在这台机器上用 256 个词、8 个头测的。不要权重时，256×256 的表根本不会存下来。"});
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
      {"What are Q, K and V? Is V a database? What becomes of the output?",
       "Q、K、V 是什么？V 是数据库吗？输出去了哪里？"},
      {"q asks, k answers, v is handed over. The output is a mix of all values, weighted by how well their keys "
       "answer: a lookup that is soft. W_o then joins the heads.",
       "q 提问，k 应答，v 交出内容。输出是所有值的加权和，键越合适权重越大：这是“软”的查表。之后 W_o 把各个头合起来。"},
      {{"word",
        {"who asks", "谁在提问"},
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
  return {{"What is `need_weights`? Averaged or per head? Why do rows not sum to 1 in training?",
           "`need_weights` 是什么？取平均还是每个头一份？训练时为什么一行之和不是 1？"},
          {"It gives back the L×L weights, by default the mean of the heads. In training dropout has changed them, so "
           "rows sum to 1 only on average.",
           "它返回 L×L 的权重，默认是各头的平均。训练时 dropout 动过它们，所以一行之和只在平均意义上是 1。"},
          {{"weights",
            {"weights", "权重"},
            {{"mean", {"mean of the heads", "各头的平均"}}, {"per_head", {"one table for each head", "每个头一张"}}}},
           {"dropout",
            {"dropout", "dropout"},
            {{"off", {"off: eval()", "关：eval()"}}, {"on", {"on: train()", "开：train()"}}}}},
          build_need_weights};
}

}  // namespace rapt::exhibits
