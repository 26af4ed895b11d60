#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/number_words.h"
#include "rapt/error.h"
#include "train/draw.h"
#include "train/numbers.h"

namespace rapt::train {

namespace {

constexpr const char *kTask = "rapt.task", *kCharacters = "rapt.characters", *kStep = "rapt.step",
                     *kCurve = "rapt.curve", *kLossSum = "rapt.loss_sum", *kLastLoss = "rapt.last_loss",
                     *kMask = "mask";

std::string setting_key(const std::string& name) { return "rapt.setting." + name; }

const std::string& found(const std::map<std::string, std::string>& metadata, const std::string& key,
                         const std::string& path) {
  const auto at = metadata.find(key);
  if (at == metadata.end()) {
    throw Error(path + " was not written by rapt train: its metadata has no \"" + key + "\"");
  }
  return at->second;
}

}  // namespace

Trainer::Trainer(const Task& task, std::uint64_t seed)
    : task_(task), seed_(seed), model_(task.recipe().model, seed), rate_(task.recipe().rate) {}

Trainer::Trainer(const Task& task, std::uint64_t seed, const std::string& checkpoint)
    : task_(task), seed_(seed), model_(task.recipe().model, seed), rate_(task.recipe().rate) {
  read(checkpoint);
}

void Trainer::set_rate(double rate) {
  if (!std::isfinite(rate) || rate < 0.0) {
    throw Error("the learning rate is " + words_of(rate) + "; it must be finite and at least 0");
  }
  rate_ = rate;
}

Evaluation Trainer::evaluate_causal() {
  const bool was = model_.config().causal;
  model_.set_causal(true);
  Evaluation result = task_.evaluate(model_);
  model_.set_causal(was);
  return result;
}

bool Trainer::step() {
  const Recipe& recipe = task_.recipe();
  const Batch batch = task_.batch(seed_, steps_);
  // Layers use consecutive dropout seeds, so the seeds of steps are spaced further apart.
  const std::uint64_t dropout_seed = (seed_ << 32U) ^ (static_cast<std::uint64_t>(steps_) * 4096U);
  last_loss_ = model_.add_gradients(batch.tokens, batch.targets, batch.rows, 1.0, dropout_seed);
  if (!std::isfinite(last_loss_)) {
    throw Error("loss is not finite at step " + std::to_string(steps_ + 1) + "; lower --rate");
  }
  const double warmth = std::min(1.0, static_cast<double>(steps_ + 1) / static_cast<double>(recipe.warm_up));
  model_.step({.rate = rate_ * warmth, .beta2 = recipe.beta2, .weight_decay = recipe.weight_decay}, recipe.clip);
  loss_sum_ += last_loss_;
  ++steps_;
  if (steps_ % recipe.every != 0) return false;
  record();
  return true;
}

std::map<std::string, std::string> Trainer::settings() const {
  const Recipe& recipe = task_.recipe();
  std::map<std::string, std::string> settings = task_.settings();
  settings["seed"] = std::to_string(seed_);
  settings["layers"] = std::to_string(recipe.model.layers);
  settings["heads"] = std::to_string(recipe.model.heads);
  settings["width"] = std::to_string(recipe.model.width);
  settings["context"] = std::to_string(recipe.model.context);
  settings["dropout"] = words_of(recipe.model.dropout);
  settings["batch"] = std::to_string(recipe.batch);
  settings["rate"] = words_of(rate_);
  settings["beta2"] = words_of(recipe.beta2);
  settings["weight_decay"] = words_of(recipe.weight_decay);
  settings["clip"] = words_of(recipe.clip);
  settings["warm_up"] = std::to_string(recipe.warm_up);
  settings["every"] = std::to_string(recipe.every);
  if (!model_.config().causal) settings[kMask] = "off";
  return settings;
}

void Trainer::record() {
  const Evaluation now = evaluate();
  Point point{.step = steps_,
              .training_loss = loss_sum_ / static_cast<double>(task_.recipe().every),
              .loss = now.loss,
              .measures = {}};
  for (const Measure& measure : now.measures) point.measures.push_back(measure.value);
  curve_.push_back(std::move(point));
  loss_sum_ = 0.0;
  reached_ = all_reached(now);
}

bool Trainer::all_reached(const Evaluation& evaluation) {
  const auto& all = evaluation.measures;
  return std::any_of(all.begin(), all.end(), [](const Measure& m) { return m.goal.has_value(); }) &&
         std::all_of(all.begin(), all.end(), [](const Measure& m) { return m.reached(); });
}

std::map<std::string, std::string> Trainer::metadata() const {
  std::map<std::string, std::string> all{{kTask, task_.name()},
                                         {kCharacters, task_.characters().all()},
                                         {kStep, std::to_string(steps_)},
                                         {kCurve, curve_words(curve_)}};
  for (const auto& [name, value] : settings()) all[setting_key(name)] = value;
  return all;
}

void Trainer::save(const std::string& path) const {
  std::map<std::string, std::string> all = metadata();
  all[kLossSum] = words_of(loss_sum_);
  all[kLastLoss] = words_of(last_loss_);
  model_.save(path, /*training=*/true, all);
}

void Trainer::save_model(const std::string& path) const { model_.save(path, /*training=*/false, metadata()); }

void Trainer::read(const std::string& path) {
  const SafetensorsFile file(path);
  const std::map<std::string, std::string>& metadata = file.metadata();
  const auto require_same = [&](const std::string& what, const std::string& in_file, const std::string& asked) {
    if (in_file == asked) return;
    throw Error(path + " was trained with " + what + " " + in_file + ", this run has " + asked +
                "; only a run with the same settings can be resumed");
  };
  require_same("task", found(metadata, kTask, path), task_.name());
  for (const auto& [name, value] : settings()) {
    if (name != kMask) require_same(name, found(metadata, setting_key(name), path), value);
  }
  // Files record the causal mask only if it is off.
  const auto mask = metadata.find(setting_key(kMask));
  require_same(kMask, mask == metadata.end() ? "on" : mask->second, model_.config().causal ? "on" : "off");
  steps_ = whole_of(found(metadata, kStep, path), path);
  loss_sum_ = real_of(found(metadata, kLossSum, path), path);
  last_loss_ = real_of(found(metadata, kLastLoss, path), path);
  curve_ = curve_of(found(metadata, kCurve, path), path);
  model_ = Transformer::load(file, path);
  if (found(metadata, "steps", path) != std::to_string(steps_)) {
    throw Error(path + " is at step " + std::to_string(steps_) + ", and its optimizer at step " +
                found(metadata, "steps", path) + ": the checkpoint is incomplete");
  }
  // If the run ended because it reached its goals, the loaded model reaches them too, so evaluating it restores
  // `reached_`.
  if (!curve_.empty() && curve_.back().step == steps_) reached_ = all_reached(evaluate());
}

ModelCard model_card(const SafetensorsFile& file, const std::string& name) {
  const std::map<std::string, std::string>& metadata = file.metadata();
  return {found(metadata, kTask, name), Characters(found(metadata, kCharacters, name), name + ": " + kCharacters),
          whole_of(found(metadata, kStep, name), name)};
}

}  // namespace rapt::train
