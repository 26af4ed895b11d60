#include "nn/projections.h"

#include <algorithm>
#include <cstddef>

#include "attention/engines.h"
#include "core/call_counts.h"

namespace rapt::nn {

namespace {

// The rows of in_proj_weight and in_proj_bias that a projection uses.
Rows rows_of(const MultiHeadAttentionConfig& config, Projection which) {
  const Widths own(config, config.slice.count);
  switch (which) {
    case Projection::q: return {0, own.query};
    case Projection::kv: return {own.query, own.all()};
    case Projection::k: return {own.query, own.query + own.key};
    case Projection::v: return {own.query + own.key, own.all()};
    default: return {0, own.all()};
  }
}

// Calls visit(x, y) with matrices of as many tokens as possible.
template <class Visit>
void for_each_matrix(const ConstTensorView& x, const TensorView& y, const Visit& visit) {
  if (lies_evenly(x) && lies_evenly(y)) return visit(x.merge(0), y.merge(0));
  const ConstTensorView x_tokens = x.transpose(0, 1);
  const TensorView y_tokens = y.transpose(0, 1);
  if (lies_evenly(x_tokens) && lies_evenly(y_tokens)) return visit(x_tokens.merge(0), y_tokens.merge(0));
  for (std::int64_t b = 0; b < x.size(0); ++b) visit(x.select(0, b), y.select(0, b));
}

}  // namespace

Projections::Packed::Packed() : plain(engines().size()), transposed(engines().size()) {}

const EngineMatrix& Projections::filled(std::vector<Slots>& slots, Projection which, bool transposed, Engine wanted,
                                        const Workers& workers) const {
  const Device device = parameters_.list().front().value.device();
  const EngineRow& engine = choose_engine(Checks("MultiHeadAttention"), wanted, config_.dtype, device);
  const auto place =
      static_cast<std::size_t>(std::find(engines().begin(), engines().end(), &engine) - engines().begin());
  Slot& slot = slots[place][static_cast<std::size_t>(which)];
  if (!slot.full.load(std::memory_order_acquire)) {
    const std::lock_guard lock(slot.filling);
    if (!slot.full.load(std::memory_order_relaxed)) {
      const ConstTensorView given = weight(which);
      slot.matrix.emplace(engine, transposed ? given.transpose(0, 1) : given, config_.dtype, workers);
      slot.full.store(true, std::memory_order_release);
    }
  }
  return *slot.matrix;
}

const EngineMatrix& Projections::matrix(Projection which, Engine engine, const Workers& workers) const {
  return filled(packed_->plain, which, /*transposed=*/false, engine, workers);
}

const EngineMatrix& Projections::transposed(Projection which, Engine engine, const Workers& workers) const {
  return filled(packed_->transposed, which, /*transposed=*/true, engine, workers);
}

ParameterRows Projections::weight_rows(Projection which) const {
  if (which == Projection::out) return {"out_proj.weight", {}};
  if (!config_.separate_projections) return {"in_proj_weight", rows_of(config_, which)};
  return {which == Projection::q ? "q_proj_weight" : which == Projection::k ? "k_proj_weight" : "v_proj_weight", {}};
}

ParameterRows Projections::bias_rows(Projection which) const {
  if (which == Projection::out) return {"out_proj.bias", {}};
  return {"in_proj_bias", rows_of(config_, which)};
}

ConstTensorView Projections::weight(Projection which) const {
  const auto [name, rows] = weight_rows(which);
  return rows ? parameters_[name].slice(0, rows->begin, rows->end) : parameters_[name];
}

void Projections::find_biases() {
  for (std::size_t n = 0; n < biases_.size(); ++n) {
    const auto which = static_cast<Projection>(n);
    // The outputs of the slices are added up, so only slice 0 adds the output bias.
    const bool given = which == Projection::out ? config_.slice.index == 0 : config_.bias;
    const auto [name, rows] = bias_rows(which);
    const ConstTensorView all = given ? parameters_[name] : ConstTensorView();
    biases_[n] = rows && all.defined() ? all.slice(0, rows->begin, rows->end) : all;
  }
}

void LayerProducts::multiply(const EngineMatrix& matrix, const ConstTensorView& x, const TensorView& y,
                             const ConstTensorView& bias, const ConstTensorView& start) const {
  const ProductOps& product = matrix.engine().product;
  const ProductProblem problem{matrix.weights(), x, bias, start, y, workers};
  core::count_call(&core::CallCounts::product_plans);
  const Plan plan = product.plan(problem);
  product.run(problem, plan, scratch.at_least(plan.sizes, y.device()));
}

void LayerProducts::multiply_tokens(const EngineMatrix& matrix, const ConstTensorView& x, const TensorView& y,
                                    const ConstTensorView& bias) const {
  for_each_matrix(x, y,
                  [&](const ConstTensorView& rows, const TensorView& to) { multiply(matrix, rows, to, bias, {}); });
}

void LayerProducts::add_tokens(const EngineMatrix& matrix, const ConstTensorView& x, const TensorView& y) const {
  for_each_matrix(x, y, [&](const ConstTensorView& rows, const TensorView& to) { multiply(matrix, rows, to, {}, to); });
}

}  // namespace rapt::nn
