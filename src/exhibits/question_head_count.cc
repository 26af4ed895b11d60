// The possible numbers of heads, and the distribution of heads over several machines.
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "rapt/error.h"
#include "rapt/multi_head_attention.h"

namespace rapt::exhibits {
namespace {

// ---------------------------------------------------------------- E divisible by the heads

void build_divisible(Builder& b) {
  constexpr std::int64_t kSize = 24;
  const std::int64_t heads = b.number("heads");
  const bool divides = kSize % heads == 0;

  b.prose({"A token has E = {0} numbers, and {1} heads share them.", "一个词元有 E = {0} 个数，由 {1} 个头平分。"},
          {whole(kSize), whole(heads)});
  // The token's numbers, divided by E // H: the remainder belongs to no head.
  const std::int64_t size = kSize / heads;
  std::vector<int> groups;
  Texts legend;
  for (std::int64_t n = 0; n < kSize; ++n) groups.push_back(static_cast<int>(std::min(n / size, heads)));
  for (std::int64_t h = 0; h < heads; ++h) legend.push_back(b.head(h));
  if (!divides) legend.push_back(b.say({"left over", "多出来"}));
  const Tensor token = places({2, kSize / 2});
  Matrix matrix = b.places(b.say({"the numbers of one token, by head", "一个词元的数，按头着色"}), token, {"", ""},
                           counted(kSize / 2, "+"), groups, legend);
  matrix.rows = {"0 +", whole(kSize / 2) + " +"};
  matrix.reading = b.say({"number {value} of the token", "词元的第 {value} 个数"});
  matrix.mood = divides ? Mood::right : Mood::wrong;
  b.add(std::move(matrix));
  try {
    const MultiHeadAttention layer({.embed_size = kSize, .heads = heads, .batch_first = true}, 1);
    b.right({"{0} / {1} = {2}: every head has {2} numbers, and none are left over. The layer can be created.",
             "{0} / {1} = {2}：每个头 {2} 个数，正好分完，可以创建这一层。"},
            {whole(kSize), whole(heads), whole(layer.config().head_size)});
  } catch (const Error& error) {
    b.wrong({"{0} / {1} = {2}: with {3} numbers for each head, {4} would be left over, and the heads would no longer "
             "add up to {0}. The layer reports it at once:",
             "{0} / {1} = {2}：每个头 {3} 个数，会多出 {4} 个，各头拼起来也不再是 {0} 个。创建这一层时就会报错："},
            {whole(kSize), whole(heads), fixed(static_cast<double>(kSize) / static_cast<double>(heads), 2), whole(size),
             whole(kSize - size * heads)});
    b.code(error.what());
  }

  Table sizes{b.say({"head sizes for E = {0}", "E = {0} 时每头的维度"}, {whole(kSize)}),
              {b.say({"heads", "头数"}), "E / H", b.say({"works", "可以"})},
              {}};
  for (std::int64_t n = 1; n <= 8; ++n) {
    sizes.rows.push_back(
        {whole(n), fixed(static_cast<double>(kSize) / static_cast<double>(n), 2), b.yes_or_no(kSize % n == 0)});
  }
  b.add(std::move(sizes));

  constexpr std::int64_t kOdd = 5, kOwn = 4;
  const MultiHeadAttention own({.embed_size = kSize, .heads = kOdd, .head_size = kOwn, .batch_first = true}, 1);
  b.prose(
      {"This is a convention, not a law. The projections may change the width: {0} heads of {1} numbers are {2} "
       "numbers, and W_o maps them back to {3}. `rapt` has `head_size` for this; PyTorch's `nn.MultiheadAttention` "
       "has no such argument, and always requires that E is divisible by the number of heads.",
       "这只是惯例，不是硬性规定。投影可以改变宽度：{0} 个头，每个 {1} 个数，一共 {2} 个，W_o 再映射回 {3} "
       "个。`rapt` 用 `head_size` 指定；PyTorch 的 `nn.MultiheadAttention` 没有这个参数，始终要求 E 能被头数整除。"},
      {whole(kOdd), whole(kOwn), whole(kOdd * kOwn), whole(kSize)});
  Table shapes{b.say({"heads = {0}, head_size = {1}", "heads = {0}，head_size = {1}"}, {whole(kOdd), whole(kOwn)}),
               {b.say({"parameter", "参数"}), b.say({"shape", "形状"})},
               {}};
  for (const NamedTensor& each : own.parameters()) shapes.rows.push_back({each.name, to_string(each.value.shape())});
  b.add(std::move(shapes));
}

// ---------------------------------------------------------------- model parallel

void build_parallel(Builder& b) {
  constexpr std::int64_t kSize = 8, kHeads = 4;
  const std::int64_t ranks = b.number("ranks");
  const bool wrongly = b.is("bias", "every");
  const Texts words = b.tokens(kThreeWords);
  MultiHeadAttention layer({.embed_size = kSize, .heads = kHeads, .batch_first = true, .dtype = DType::f64}, 9);
  layer.set_parameter("out_proj.bias", noise({kSize}, 91, 0.5));
  const Tensor x = noise({1, std::ssize(words), kSize}, 92);
  const Tensor whole_out = layer.forward(x).out;

  b.prose({"`n_local_heads = n_heads // model_parallel_size`: {0} // {1} = {2}. Each rank holds the rows of W_q, W_k "
           "and W_v that compute its own heads, and the columns of W_o that read them. It never sees the heads of "
           "other ranks.",
           "`n_local_heads = n_heads // model_parallel_size`：{0} // {1} = {2}。每个 rank 只存 W_q、W_k、W_v "
           "中算出自己那几个头的行，以及 W_o 中读取这些头的列，看不到其他 rank 的头。"},
          {whole(kHeads), whole(ranks), whole(kHeads / ranks)});
  b.prose(kWeightAxes);
  Table dealt{b.say({"what each rank holds", "各 rank 持有的参数"}),
              {"rank", b.say({"heads", "头"}), "W_q, W_k, W_v", "W_o", b.say({"numbers", "参数个数"})},
              {}};
  Tensor partial({ranks + 2, kSize}, DType::f64);
  Texts rows;
  Tensor sum({kSize}, DType::f64);
  for (std::int64_t r = 0; r < ranks; ++r) {
    const MultiHeadAttention own = layer.slice(r, ranks);
    Tensor out = own.forward(x).out;
    std::int64_t count = 0;
    std::string input, output;
    for (const NamedTensor& each : own.parameters()) {
      if (r > 0 && !wrongly && each.name == "out_proj.bias") continue;  // only rank 0 adds it
      count += each.value.count();
      if (each.name == "in_proj_weight") input = to_string(each.value.shape());
      if (each.name == "out_proj.weight") output = to_string(each.value.shape());
    }
    std::string heads;
    for (std::int64_t h = r * kHeads / ranks; h < (r + 1) * kHeads / ranks; ++h)
      heads += (heads.empty() ? "" : ", ") + whole(h);
    dealt.rows.push_back({whole(r), heads, input, output, whole(count)});
    rows.push_back("rank " + whole(r));
    for (std::int64_t d = 0; d < kSize; ++d) {
      double& y = out.view().at<double>(0, 0, d);
      if (wrongly && r > 0) y += layer.parameters().back().value.at<double>(d);  // each adds the bias
      partial.view().at<double>(r, d) = y;
      sum.values<double>()[static_cast<std::size_t>(d)] += y;
    }
  }
  b.add(std::move(dealt));
  copy(sum, partial.view().select(0, ranks));
  copy(whole_out.view().select(0, 0).select(0, 0), partial.view().select(0, ranks + 1));
  rows.push_back(b.say({"sum", "和"}));
  rows.push_back(b.say({"whole layer", "整层"}));
  b.prose({"Each rank computes a full-width output from its own heads. The outputs are then added: one all-reduce. The "
           "output for “{0}”:",
           "每个 rank 只用自己的头，就能算出完整宽度的输出。最后相加即可：一次 all-reduce。“{0}”的输出："},
          {words[0]});
  Matrix matrix = b.numbers(b.say({"partial outputs, their sum, and the whole", "各部分的输出、它们的和，以及整层"}),
                            partial, rows, counted(kSize));
  const double difference = largest_difference(sum, whole_out.view().select(0, 0).select(0, 0));
  const bool agree = difference < 1e-12;
  matrix.mood = agree ? Mood::right : Mood::wrong;
  b.add(std::move(matrix));
  if (!agree) {
    b.wrong({"Every rank added the output bias, so it is counted {0} times. The sum is off by up to {1}.",
             "每个 rank 都加了输出偏置，偏置被加了 {0} 次。结果最多差 {1}。"},
            {whole(ranks), fixed(difference, 2)});
  } else if (ranks == 1) {
    b.right({"There is one rank: it holds the whole layer, adds the output bias once, and no sum is needed (off by at "
             "most {0}).",
             "只有一个 rank：它持有整层，输出偏置自然只加一次，也不需要求和（最多差 {0}）。"},
            {brief(difference)});
  } else {
    b.right({"The sum equals the output of the whole layer (off by at most {0}). It works because W_o times the "
             "concatenated heads is a sum over heads. Only rank 0 adds the output bias.",
             "它们的和等于整层的输出（最多差 {0}）。原因是：W_o 乘以拼接后的各头，本来就是对头求和。输出偏置只由 rank "
             "0 加一次。"},
            {brief(difference)});
  }
}

}  // namespace

Question question_divisible() {
  return {
      {"Must E be divisible by the number of heads?", "E 必须能被头数整除吗？"},
      {"If the head size is E / H, yes: otherwise numbers would be left over. If the head size is set separately, no.",
       "每头维度取 E / H 时必须整除，否则会多出几个数。如果另外指定每头维度，就不必。"},
      {{"heads",
        {"heads", "头数"},
        {{"4", {"4", "4"}}, {"5", {"5, does not divide", "5，除不尽"}}, {"7", {"7, does not divide", "7，除不尽"}}}}},
      build_divisible};
}

Question question_parallel() {
  return {{"What does the model parallel size do to the heads?", "model parallel size 对注意力头有什么影响？"},
          {"It distributes the heads: each rank computes some of them and a partial output, and the sum of the partial "
           "outputs is the output of the layer.",
           "它把头分给各个 rank：每个 rank 计算其中几个头，得到部分输出，相加就是整层的输出。"},
          {{"ranks", {"ranks", "rank 数"}, {{"2", {"2", "2"}}, {"4", {"4", "4"}}, {"1", {"1", "1"}}}},
           {"bias",
            {"output bias", "输出偏置"},
            {{"once", {"added only by rank 0", "只由 rank 0 加"}},
             {"every", {"added by every rank, the wrong way", "每个 rank 都加，错误的做法"}}}}},
          build_parallel};
}

}  // namespace rapt::exhibits
