// What q, k and v are, and the weights that a layer returns.
#include <algorithm>
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
  const auto split = [&](const Tensor& each) { return split_heads(each.view(), walk.heads); };
  const double root = std::sqrt(static_cast<double>(walk.head_size));
  const Seen seen = see(split(walk.q), split(walk.k), split(walk.v), {.scale = hard ? 100.0 : 1 / root});
  const Tensor out = linear(combine_heads_copy(seen.out), walk.weight.w_o);  // (1, L, E)
  const auto first_head = [&](const Tensor& each) { return split(each).select(0, 0).select(0, 0); };
  const ConstTensorView q = first_head(walk.q), k = first_head(walk.k), v = first_head(walk.v);
  const Texts places = counted(walk.head_size);

  b.prose({"Every word produces three vectors: the query q (what it looks for), the key k (what others match against) "
           "and the value v (what it passes on). We follow “{0}” in head 0.",
           "每个词都生成三个向量：查询 q（它要找什么）、键 k（供别人匹配的标签）、值 v（它传递的内容）。下面以头 0 "
           "里的“{0}”为例。"},
          {word});
  b.add(b.numbers(b.say({"1. its query", "1. 它的查询"}), q.slice(0, asks, asks + 1), {"q " + word}, places));
  b.add(b.numbers(b.say({"2. the keys of all words", "2. 所有词的键"}), k, words, places));

  Table table{b.say({"3. the query against each key", "3. 查询与每个键"}),
              {b.say({"key", "键"}), hard ? "q·k × 100" : "q·k / √" + whole(walk.head_size), b.say({"weight", "权重"})},
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
    b.prose({"With scores this large, one key has a weight of {1}: the output is the v of “{0}”, as in a database. But "
             "a small change of q or k no longer changes the weights, so no gradient reaches q and k. What they look "
             "for cannot be learned; only v can.",
             "分数这么大时，一个键的权重就是 {1}：输出就是“{0}”的 v，等同于查数据库。但 q、k "
             "稍有变化时权重并不随之变化，梯度传不到 q 和 k，“该找什么”也就无从学起，能学的只有 v。"},
            {words[static_cast<std::size_t>(best)], fixed(weights.at<double>(asks, best), 2)});
  } else {
    b.prose({"Is V a database? Nearly: a database returns the one entry whose key matches. Here each key matches to "
             "some degree, and the result mixes all values. “{0}” contributes most, {1}.",
             "V "
             "是数据库吗？差不多：数据库只返回键相符的那一条。这里每个键都有一定程度的匹配，结果是所有值的加权和。“{0}"
             "”占比最大，为 {1}。"},
            {words[static_cast<std::size_t>(best)], fixed(weights.at<double>(asks, best), 2)});
  }

  b.prose(hard ? Both{"What happens to the output? All {1} heads look up in this hard way. Their outputs are "
                      "concatenated, W_o mixes them, and the word has {0} numbers again, ready for the next layer. "
                      "Here are the first six.",
                      "输出去了哪里？{1} 个头都这样“硬查”，各头的输出拼接起来，由 W_o 混合，这个词又变回 {0} "
                      "个数，送入下一层。这里是前六个。"}
               : Both{"What happens to the output? The outputs of all {1} heads are concatenated, W_o mixes them, and "
                      "the word has {0} numbers again, ready for the next layer. Here are the first six.",
                      "输出去了哪里？{1} 个头的输出拼接起来，由 W_o 混合，这个词又变回 {0} "
                      "个数，送入下一层。这里是前六个。"},
          {whole(kEmbedding), whole(walk.heads)});
  b.add(b.numbers(b.say({"5. after W_o", "5. 经过 W_o"}),
                  out.view().select(0, 0).slice(0, asks, asks + 1).slice(1, 0, 6), {"y " + word}, places));
  b.prose({"After the last layer, the dot product of this vector with one vector per vocabulary word gives logits, and "
           "softmax turns them into probabilities. Here the vector of a word is the part of its embedding that encodes "
           "the word, {0} numbers, and is multiplied by the first {0} numbers of y. This model is not trained, so the "
           "probabilities mean nothing yet.",
           "最后一层之后，这个向量和词表里每个词的向量做点积得到 logits，再用 softmax 变成概率。这里用的是 y 的前 {0} "
           "个数，以及每个词的嵌入中编码词本身的那 {0} 个数。这个模型没有训练过，所以概率还没有意义。"},
          {whole(kWho)});
  show_vocabulary(b, walk, words, out.view().select(0, 0).select(0, asks));
}

// ---------------------------------------------------------------- need_weights

// What a layer writes for its caller, with and without weights: counted, not timed.
void show_cost(Builder& b) {
  constexpr std::int64_t kLong = 256, kLonger = 4096, kWidth = 64, kHeads = 8;
  const MultiHeadAttention layer({.embed_size = kWidth, .heads = kHeads, .batch_first = true}, 1);
  const Tensor x = noise({1, kLong, kWidth}, 63).to(DType::f32);
  Table table{b.say({"what the layer returns for {0} words", "{0} 个词时，这一层返回的数"}, {whole(kLong)}),
              {"need_weights", b.say({"output", "输出"}), b.say({"weights", "权重"}), b.say({"f32, KiB", "f32，KiB"})},
              {}};
  const auto returned = [&](const std::string& name, ReturnWeights weights) {
    const LayerResult result = layer.forward(x, {.weights = weights});
    const std::int64_t outputs = result.out.count();
    const std::int64_t extra = weights == ReturnWeights::none ? 0 : result.weights.count();
    table.rows.push_back({name, whole(outputs), whole(extra),
                          whole((outputs + extra) * static_cast<std::int64_t>(sizeof(float)) / 1024)});
    return static_cast<double>(outputs + extra) / static_cast<double>(outputs);
  };
  returned("False", ReturnWeights::none);
  const double mean = returned(b.say({"True, mean", "True，平均"}), ReturnWeights::mean);
  const double per_head = returned(b.say({"True, per head", "True，每个头"}), ReturnWeights::per_head);

  b.prose({"What do the weights cost? The output has L·E numbers, one table of weights L·L. Here L = {0}, E = {1}, and "
           "there are {2} heads:",
           "返回权重的代价是什么？输出有 L·E 个数，一张权重表有 L·L 个数。这里 L = {0}，E = {1}，共 {2} 个头："},
          {whole(kLong), whole(kWidth), whole(kHeads)});
  b.add(std::move(table));
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  b.prose({"With the mean the layer writes {0} times as many numbers as without weights, with a table per head {1} "
           "times. The output grows with L, the weights with L²: at {2} words, a table per head takes {3} MiB in f32, "
           "the output {4} MiB.",
           "返回平均权重时，这一层写出的数是不返回时的 {0} 倍；每个头各返回一张时是 {1} 倍。输出随 L 增长，权重随 L² "
           "增长：{2} 个词时，每个头一张表，f32 共占 {3} MiB，输出只占 {4} MiB。"},
          {fixed(mean, 0), fixed(per_head, 0), whole(kLonger),
           whole(kHeads * kLonger * kLonger * static_cast<std::int64_t>(sizeof(float)) / kMiB),
           whole(kLonger * kWidth * static_cast<std::int64_t>(sizeof(float)) / kMiB)});
  b.prose(
      {"Without weights, `rapt` never stores an L×L table. PyTorch's `nn.MultiheadAttention` can then use the fused "
       "kernels of `scaled_dot_product_attention`, which do not store one either. With weights, PyTorch stores the "
       "tables of all heads, even if it then returns only their mean.",
       "不返回权重时，`rapt` 从不存储 L×L 的表。PyTorch 的 `nn.MultiheadAttention` 此时可以使用 "
       "`scaled_dot_product_attention` 的融合内核，同样不存。要返回权重时，PyTorch "
       "会存下所有头的表，哪怕最后只返回它们的平均。"});
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
             "这不是 bug：dropout 开着。每个权重以 {0} 的概率变成 0，其余除以 {1}。一行之和只在平均意义上是 "
             "1。看权重之前先调用 `eval()`。"},
            {fixed(kRate, 2), fixed(1 - kRate, 2)});
  } else {
    b.right({"Without dropout every row sums to 1.", "没有 dropout，每行之和都是 1。"});
  }

  show_cost(b);
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
