// Training: all positions at once, and what is trained and what is not.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "exhibits/tokens.h"
#include "exhibits/walk.h"
#include "rapt/error.h"
#include "rapt/layers.h"
#include "rapt/multi_head_attention.h"
#include "rapt/random.h"
#include "rapt/transformer.h"

namespace rapt::exhibits {
namespace {

// ---------------------------------------------------------------- every position at once

constexpr std::int64_t kVocabulary = 8, kLength = 8, kRows = 16;
constexpr std::int64_t kSteps = 80, kEvery = 4;

// Each token is the previous one plus 1 or plus 2, at random. Without seeing the future, no model can do better than
// log 2 = 0.69.
struct Batch {
  std::vector<std::int32_t> tokens, targets;
};

Batch batch_of(std::uint64_t seed) {
  Batch batch;
  std::uint32_t count = 0;
  const auto draw = [&](std::uint32_t below) {
    return static_cast<std::int32_t>(philox4x32_10({count++, 0, 0, 0x636f696eU}, philox_key(seed))[0] % below);
  };
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::int32_t token = draw(kVocabulary);
    for (std::int64_t i = 0; i < kLength; ++i) {
      batch.tokens.push_back(token);
      token = (token + 1 + draw(2)) % static_cast<std::int32_t>(kVocabulary);
      batch.targets.push_back(token);
    }
  }
  return batch;
}

// The loss as in generation, where later tokens do not exist yet: with the mask, on rows that were not trained on.
double honest_loss(Transformer& model) {
  const bool was = model.config().causal;
  model.set_causal(true);
  const Batch batch = batch_of(1U << 20U);
  const Tensor logits = model.logits(batch.tokens, kRows);
  model.set_causal(was);
  return cross_entropy({}, logits.view().reshape({kRows * kLength, kVocabulary}), batch.targets);
}

struct Course {
  std::vector<double> steps, training, honest;
};

Course train(bool causal) {
  Transformer model(
      {.vocabulary = kVocabulary, .context = kLength, .width = 16, .layers = 1, .heads = 1, .causal = causal}, 1);
  Course course;
  double sum = 0;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const Batch batch = batch_of(static_cast<std::uint64_t>(step));
    sum += model.add_gradients(batch.tokens, batch.targets, kRows);
    model.step({.rate = 0.03, .beta2 = 0.99}, 1.0);
    if (step % kEvery != 0) continue;
    course.steps.push_back(static_cast<double>(step));
    course.training.push_back(sum / static_cast<double>(kEvery));
    course.honest.push_back(honest_loss(model));
    sum = 0;
  }
  return course;
}

void build_all_positions(Builder& b) {
  const bool causal = b.is("mask", "on");
  const Texts words = b.tokens(kFiveWords);
  const std::string end = b.say({".", "。"});
  b.prose({"One sentence is five training examples. In one pass, each position predicts the next word:",
           "一句话就是五个训练样本。一次前向计算，每个位置都预测下一个词："});
  Table examples{b.say({"examples in one sentence", "一句话里的样本"}),
                 {b.say({"position", "位置"}), b.say({"it sees", "看到"}), b.say({"it should predict", "应该预测"})},
                 {}};
  std::string seen;
  for (std::size_t i = 0; i < words.size(); ++i) {
    seen += (seen.empty() ? "" : " ") + words[i];
    examples.rows.push_back({whole(static_cast<std::int64_t>(i)), seen, i + 1 < words.size() ? words[i + 1] : end});
  }
  b.add(std::move(examples));

  const Walk walk = take_walk(tokenize(kFiveWords.en), 4, causal);
  Matrix matrix = b.weights(causal ? b.say({"weights with the causal mask", "有因果掩码的权重"})
                                   : b.say({"weights without a mask", "没有掩码的权重"}),
                            of_head(walk.weights, 3), words, words);
  matrix.mood = causal ? Mood::right : Mood::wrong;
  b.add(std::move(matrix));
  if (causal) {
    b.right(
        {"The triangle prevents cheating: row i has weight only on words 0 to i. All five can be computed in parallel, "
         "and none can see its answer.",
         "三角掩码防止作弊：第 i 行只在词 0 到 i 上有权重。所以五个样本可以并行计算，谁也看不到自己的答案。"});
  } else {
    b.wrong({"Without the triangle each position looks straight at the next word, which is the answer.",
             "没有三角掩码，每个位置都能直接看到下一个词，也就是答案。"});
  }

  b.prose({"Now a real training run: a model with one layer, {0} steps, trained just now. Each token is the previous "
           "one plus 1 or plus 2, at random, so a model that does not cheat cannot get below log 2 = {1} on average.",
           "现在真的训练一下：一层的模型，刚刚训练了 {0} 步。每个词元等于前一个加 1 或加 "
           "2，随机决定，所以不作弊的模型，平均损失不会低于 log 2 = {1}。"},
          {whole(kSteps), fixed(std::log(2.0), 2)});
  const Course honest = train(true);
  Chart chart{b.say({"loss", "损失"}), b.say({"step", "步"}), honest.steps, false, false, {}};
  chart.series.push_back({b.say({"lower bound", "理论下限"}), std::vector<double>(honest.steps.size(), std::log(2.0))});
  chart.series.push_back({b.say({"training, with the mask", "训练，有掩码"}), honest.training});
  if (causal) {
    chart.series.push_back({b.say({"in generation", "生成时"}), honest.honest});
    b.add(std::move(chart));
    b.right({"Training loss {0}, loss in generation {1}: the model can use what it learned.",
             "训练损失 {0}，生成时的损失 {1}：学到的东西生成时同样有效。"},
            {fixed(honest.training.back(), 2), fixed(honest.honest.back(), 2)});
    return;
  }
  const Course cheater = train(false);
  chart.series.push_back({b.say({"training, without the mask", "训练，没有掩码"}), cheater.training});
  chart.series.push_back({b.say({"in generation, trained without the mask", "生成时，训练没有掩码"}), cheater.honest});
  b.add(std::move(chart));
  b.wrong({"Without the mask, the training loss falls to {0}, below the lower bound: the model copies the answer. In "
           "generation there is no future to copy from, and its loss is {1}; with the mask it is {2}.",
           "没有掩码时，训练损失降到 {0}，低于理论下限：模型在抄答案。生成时看不到未来，它的损失是 {1}；有掩码的模型是 "
           "{2}。"},
          {fixed(cheater.training.back(), 2), fixed(cheater.honest.back(), 2), fixed(honest.honest.back(), 2)});
}

// ---------------------------------------------------------------- register_buffer

constexpr std::int64_t kContext = 4, kSize = 4, kMaskSteps = 20;

// One step of plain gradient descent on every parameter.
void take_step(MultiHeadAttention& layer, const Tensor& x) {
  LayerActivations kept;
  const LayerOptions keeps{.keep = &kept};
  const Tensor out = layer.forward(x, keeps).out;
  std::vector<Tensor> gradients = layer.zero_gradients();
  layer.backward({.parameters = gradients}, {.dout = out.view()}, kept, x, {}, {}, {});
  layer.change_parameters([&](std::size_t n, const TensorView& value) {
    Tensor changed = Tensor::copy_of(value);
    for (std::size_t i = 0; i < changed.values<double>().size(); ++i) {
      changed.values<double>()[i] -= 0.1 * gradients[n].values<double>()[i];
    }
    copy(changed, value);
  });
}

// The mask as a parameter: added to the scores, and updated by Adam like any parameter.
Tensor trained_mask(const Tensor& start) {
  const Tensor q = noise({1, 1, kContext, kSize}, 101), k = noise({1, 1, kContext, kSize}, 102),
               v = noise({1, 1, kContext, kSize}, 103), dout = noise({1, 1, kContext, kSize}, 104);
  Tensor mask = start.clone(), gradient(start.shape(), DType::f64);
  Adam adam(start.shape(), DType::f64);
  for (std::int64_t step = 0; step < kMaskSteps; ++step) {
    attention_backward({.dmasks = {{.mask = 0, .to = gradient.view()}}}, {.dout = dout.view()}, q, k, v,
                       {.masks = {Mask::add(mask)}});
    adam.step(mask, gradient, {.rate = 0.05});
  }
  return mask;
}

void build_buffer(Builder& b) {
  const bool wrongly = b.is("mask", "parameter");
  const Texts words = b.tokens(kFourWords);
  b.prose({"A layer stores a causal mask for {0} tokens. Its state is saved, one training step is run, and the states "
           "before and after are compared:",
           "这一层存有 {0} 个词元的因果掩码。先保存它的状态，训练一步，再比较前后的状态："},
          {whole(kContext)});
  MultiHeadAttention layer(
      {.embed_size = kSize, .heads = 2, .batch_first = true, .context_length = kContext, .dtype = DType::f64}, 3);
  const Tensor x = noise({1, kContext, kSize}, 105);
  const StateDict first = layer.state_dict();
  std::vector<Tensor> before;
  for (const NamedTensor& each : first.tensors) before.push_back(Tensor::copy_of(each.value, DType::f64));
  take_step(layer, x);
  const StateDict after = layer.state_dict();
  Table table{b.say({"the file, before and after a step", "文件，训练一步前后"}),
              {b.say({"name in the file", "文件里的名字"}), b.say({"shape", "形状"}), b.say({"parameter", "参数"}),
               b.say({"change", "变化"})},
              {}};
  for (std::size_t n = 0; n < after.tensors.size(); ++n) {
    const NamedTensor& each = after.tensors[n];
    bool parameter = false;
    for (const NamedTensor& own : layer.parameters()) parameter = parameter || own.name == each.name;
    table.rows.push_back({each.name, to_string(each.value.shape()), b.yes_or_no(parameter),
                          fixed(largest_difference(before[n], Tensor::copy_of(each.value, DType::f64)), 3)});
  }
  b.add(std::move(table));
  b.prose(
      {"The mask is in the file, and it moves with the layer to another device. But it is not a parameter: it has no "
       "gradient, and the optimizer does not change it. In PyTorch, `register_buffer(name, mask, persistent=False)` "
       "keeps it out of the file; a plain attribute is not in the file and does not move with `to(device)` either.",
       "掩码会存入文件，也会随层一起移到别的设备。但它不是参数：没有梯度，优化器不会更新它。在 PyTorch "
       "里，`register_buffer(name, mask, persistent=False)` 可以不存入文件；普通属性既不存入文件，也不会随 "
       "`to(device)` "
       "迁移。"});

  if (wrongly) {
    b.prose({"Now the same mask as `nn.Parameter`: it is added to the scores, and Adam takes {0} steps.",
             "现在把同一个掩码存成 `nn.Parameter`：加到分数上，用 Adam 训练 {0} 步。"},
            {whole(kMaskSteps)});
  }
  Tensor mask({kContext, kContext}, DType::f64);
  for (std::int64_t i = 0; i < kContext; ++i) {
    for (std::int64_t j = i + 1; j < kContext; ++j) mask.view().at<double>(i, j) = -INFINITY;
  }
  const Tensor now = wrongly ? trained_mask(mask) : mask.clone();
  double moved = 0;  // of the zeros; −inf has a gradient of 0 and stays
  for (const double value : now.values<double>())
    moved = std::isfinite(value) ? std::max(moved, std::abs(value)) : moved;
  Matrix matrix =
      b.scores(wrongly ? b.say({"as a parameter, after {0} steps", "存成参数，训练 {0} 步后"}, {whole(kMaskSteps)})
                       : b.say({"as a buffer, after any steps", "存成 buffer，训练多少步都一样"}),
               now, words, words);
  matrix.reading = b.say(
      {"the mask adds {value} to the score of “{row}” and “{column}”", "掩码给“{row}”和“{column}”的分数加 {value}"});
  matrix.mood = wrongly ? Mood::wrong : Mood::right;
  b.add(std::move(matrix));
  if (wrongly) {
    b.wrong({"As a parameter the mask is trained too: values that should be 0 have changed by up to {0}. It has become "
             "a positional bias, and weight decay or a reset would treat it as any other parameter.",
             "存成参数，掩码也会被训练：本该是 0 的地方最多变了 "
             "{0}。它变成了一种位置偏置，权重衰减和重新初始化也会把它当作普通参数。"},
            {fixed(moved, 2)});
  } else {
    b.right({"The mask is 0 where a word may attend, −inf where it may not; training never changes it.",
             "掩码在能看的地方是 0，不能看的地方是 −inf，训练不会改变它。"});
  }

  b.prose({"A shorter sentence uses the top-left corner of the mask, `mask[:L, :L]`. A longer sentence is an error:",
           "短句子取掩码的左上角，`mask[:L, :L]`。更长的句子则会报错："});
  try {
    (void)layer.forward(noise({1, kContext + 1, kSize}, 106));
  } catch (const Error& error) {
    b.code(error.what());
  }
}

}  // namespace

Question question_all_positions() {
  return {
      {"How can a decoder train on every position at once?", "解码器怎么能同时训练所有位置？"},
      {"The triangle hides later words from each position, so one pass contains as many valid training examples as "
       "there are words. Without it, the model copies the answer.",
       "三角掩码把每个位置后面的词都遮住，所以一次前向计算里，有多少个词就有多少个有效样本。没有它，模型就会抄答案。"},
      {{"mask",
        {"causal mask", "因果掩码"},
        {{"on", {"on", "开"}}, {"off", {"off, the wrong way", "关，错误的做法"}}}}},
      build_all_positions};
}

Question question_buffer() {
  return {{"What does `register_buffer` do for the mask?", "掩码用 `register_buffer` 有什么好处？"},
          {"The mask is saved and moved with the layer, like a parameter, but the optimizer never changes it.",
           "掩码和参数一样随层保存、随层迁移，但优化器不会更新它。"},
          {{"mask",
            {"the mask is", "掩码存成"},
            {{"buffer", {"a buffer", "buffer"}}, {"parameter", {"a parameter, the wrong way", "参数，错误的做法"}}}}},
          build_buffer};
}

}  // namespace rapt::exhibits
