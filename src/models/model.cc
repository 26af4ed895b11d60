#include "models/model.h"

#include <utility>

#include "models/files.h"
#include "models/network/pass.h"

namespace rapt::models {

Model Model::read(const ModelFiles& files) { return Model(std::make_unique<const Parts>(files)); }
Model::Model(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelConfig& Model::config() const { return parts_->config; }

Predicts Model::predicts() const {
  if (!parts_->predictor) return Predicts::nothing;
  return config().causal() ? Predicts::next : Predicts::masked;
}

Run Model::run(std::span<const std::int32_t> tokens, const RunOptions& options) const {
  const ModelConfig& config = parts_->config;
  check_tokens(config, tokens);
  const SwitchedOff off(config, options.off);
  Pass pass(*parts_, tokens, off);
  const std::int64_t count = pass.count();
  if (options.hidden) pass.hidden = Tensor({config.layers + 1, count, config.width}, DType::f32);
  if (options.weights) pass.weights = Tensor({config.layers, config.heads, count, count}, DType::f32);
  const Tensor last = run_layers(pass);
  Run run{std::move(pass.hidden), std::move(pass.weights), {}};
  if (options.logits && parts_->predictor) run.logits = parts_->predictor->logits(last);
  return run;
}

}  // namespace rapt::models
