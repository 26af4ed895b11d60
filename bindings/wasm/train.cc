// Small models: the built-in one, and training, one step at a time.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <emscripten/bind.h>

#include "array.h"
#include "errors.h"
#include "rapt/transformer.h"
#include "train/builtin.h"
#include "train/draw.h"
#include "train/induction.h"
#include "train/reverse.h"
#include "train/trainer.h"

namespace rapt::wasm {

namespace {

std::vector<std::int32_t> tokens_of(const val& list, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (const std::int64_t token : whole_numbers(list, "tokens")) {
    if (token < 0 || token >= vocabulary) throw Error("there is no token " + std::to_string(token));
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return tokens;
}

// The output of a model for a sequence: {logits, weights: one tensor per layer}.
val read(const Transformer& model, const val& sequence) {
  std::vector<Tensor> weights;
  Tensor logits = model.logits(tokens_of(sequence, model.config().vocabulary), 1, &weights);
  val result = val::object(), maps = val::array();
  for (Tensor& each : weights) push(maps, Array(std::move(each)));
  result.set("logits", Array(std::move(logits)));
  result.set("weights", maps);
  return result;
}

// The built-in induction model.
class Model {
 public:
  Model() : Model(SafetensorsFile(train::builtin_induction(), "the built-in model")) {}

  val config() const {
    const TransformerConfig& config = model_->config();
    val result = val::object();
    result.set("vocabulary", static_cast<double>(config.vocabulary));
    result.set("context", static_cast<double>(config.context));
    result.set("width", static_cast<double>(config.width));
    result.set("layers", static_cast<double>(config.layers));
    result.set("heads", static_cast<double>(config.heads));
    result.set("characters", card_.characters.all());
    return result;
  }
  val read(const val& tokens) const {
    return guarded([&] { return wasm::read(*model_, tokens); });
  }
  val parameters() const {
    return guarded([&] { return named_list(model_->parameters(), model_); });
  }

 private:
  explicit Model(const SafetensorsFile& file)
      : card_(train::model_card(file, "the built-in model")),
        model_(std::make_shared<Transformer>(Transformer::load(file, "the built-in model"))) {}

  train::ModelCard card_;
  std::shared_ptr<Transformer> model_;
};

std::shared_ptr<Model> builtin() {
  return guarded([] { return std::make_shared<Model>(); });
}

std::unique_ptr<train::Task> task_named(const std::string& name) {
  if (name == "induction") return std::make_unique<train::Induction>();
  if (name == "reverse") return std::make_unique<train::Reverse>();
  throw Error("unknown task \"" + name + "\"; it must be induction or reverse");
}

// A training run. `example` is a row for display that is in no batch.
class Training {
 public:
  Training(const std::string& task, double seed)
      : task_(task_named(task)), trainer_(*task_, static_cast<std::uint64_t>(seed)) {}

  bool step() { return trainer_.step(); }
  val state() const {
    val result = val::object();
    result.set("step", static_cast<double>(trainer_.steps()));
    result.set("steps", static_cast<double>(task_->recipe().steps));
    result.set("loss", trainer_.last_loss());
    result.set("done", trainer_.done());
    result.set("reached", trainer_.reached());
    result.set("rate", trainer_.rate());
    return result;
  }
  void set_rate(double rate) { trainer_.set_rate(rate); }
  void set_causal(bool causal) { trainer_.set_causal(causal); }
  // An evaluation of the current model: {loss, measures: [{key, words, value, goal}]}. `causal`: as in generation,
  // where there is no future to attend to.
  val evaluation(bool causal) {
    const train::Evaluation evaluation = causal ? trainer_.evaluate_causal() : trainer_.evaluate();
    val measures = val::array();
    for (const train::Measure& each : evaluation.measures) {
      val measure = val::object();
      measure.set("key", each.key);
      measure.set("words", each.words);
      measure.set("value", each.value);
      if (each.goal) measure.set("goal", *each.goal);
      push(measures, measure);
    }
    val result = val::object();
    result.set("loss", evaluation.loss);
    result.set("measures", measures);
    return result;
  }
  val example(double seed) const {
    const train::Batch batch = task_->batch(static_cast<std::uint64_t>(seed), -1);
    const std::size_t length = batch.tokens.size() / static_cast<std::size_t>(batch.rows);
    return val::array(std::vector<std::int32_t>(batch.tokens.data(), batch.tokens.data() + length));
  }
  val read(const val& tokens) const { return wasm::read(trainer_.model(), tokens); }
  std::string characters() const { return task_->characters().all(); }

 private:
  std::unique_ptr<train::Task> task_;
  train::Trainer trainer_;
};

std::shared_ptr<Training> begin(const std::string& task, double seed) {
  return guarded([&] { return std::make_shared<Training>(task, seed); });
}
bool step(Training& training) {
  return guarded([&] { return training.step(); });
}
val evaluation_of(Training& training, bool causal) {
  return guarded([&] { return training.evaluation(causal); });
}
void set_rate(Training& training, double rate) {
  guarded([&] { training.set_rate(rate); });
}
void set_causal(Training& training, bool causal) {
  guarded([&] { training.set_causal(causal); });
}
val example_of(const Training& training, double seed) {
  return guarded([&] { return training.example(seed); });
}
val read_by(const Training& training, const val& tokens) {
  return guarded([&] { return training.read(tokens); });
}

}  // namespace

EMSCRIPTEN_BINDINGS(rapt_train) {
  emscripten::class_<Model>("Model")
      .smart_ptr<std::shared_ptr<Model>>("Model")
      .class_function("builtin", &builtin)
      .property("config", &Model::config)
      .function("read", &Model::read)
      .function("parameters", &Model::parameters);
  emscripten::class_<Training>("Training")
      .smart_ptr<std::shared_ptr<Training>>("Training")
      .class_function("begin", &begin)
      .property("state", &Training::state)
      .property("characters", &Training::characters)
      .function("step", &step)
      .function("setRate", &set_rate)
      .function("setCausal", &set_causal)
      .function("evaluation", &evaluation_of)
      .function("example", &example_of)
      .function("read", &read_by);
}

}  // namespace rapt::wasm
