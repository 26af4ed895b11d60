// The gradients of a layer: its steps in reverse order.
#include "nn/backward.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "attention/apart.h"
#include "attention/engines.h"
#include "attention/planned.h"
#include "attention/resolve.h"
#include "nn/added_keys.h"
#include "nn/output_dropout.h"

namespace rapt::nn {

namespace {

class Backward : LayerSteps {
 public:
  Backward(const BackwardCall& call, const LayerParts& layer, LayerWorkspace::Memory& memory)
      : LayerSteps(call.forward, layer, memory),
        backward_(call),
        kept_(call.forward, call.kept.memory().bytes.all()),
        d_(call.forward, memory.gradients.at_least(Activations::bytes(call.forward), call.forward.device())) {}

  void run() {
    find_dout();
    plan_attention();  // so that an invalid call is rejected before anything is written
    leave_output_projection();
    leave_attention();
    if (layer_.rotary) rotate(d_, /*back=*/true);
    if (call_.config.add_bias_kv) leave_added_keys();
    if (!backward_.gradients.parameters.empty()) add_input_projections();
    find_input_gradients();
  }

 private:
  // The gradient with respect to the output before its dropout, in the type of the activations.
  void find_dout() {
    dout_ = backward_.dout;
    const bool drops = call_.options.training && call_.config.output_dropout > 0.0;
    const DType type = type_between_steps(call_.config);
    if (!drops && dout_.dtype() == type) return;
    const auto bytes = static_cast<std::size_t>(dout_.count()) * size_of(type);
    const TensorView copied(memory_.upstream.at_least(bytes, call_.device()).data(), type, dout_.shape(),
                            call_.device());
    ops_.copy(dout_, copied, workers_);
    if (drops) drop_output(call_, copied, workers_);
    dout_ = copied;
  }

  // out = combined · W_oᵀ + b_o
  void leave_output_projection() {
    add_product("out_proj.weight", {}, dout_, kept_.combined);
    if (call_.config.slice.index == 0) add_bias("out_proj.bias", {}, dout_);
    multiply_back(Projection::out, dout_, d_.combined, /*add=*/false);
  }

  void plan_attention() {
    const AttentionOptions& options = attention_options();
    AttentionUpstream& upstream = memory_.attention_upstream;
    upstream.dout = split_heads(ConstTensorView(d_.combined), call_.heads);
    upstream.out = split_heads(ConstTensorView(kept_.combined), call_.heads);
    upstream.lse = kept_.lse;
    upstream.dweights.resize(backward_.dweights.defined() ? 1 : 0);
    if (backward_.dweights.defined()) {
      WeightsGradient& weights = upstream.dweights[0];
      weights.stage = Stage::dropped_weights;
      weights.of.mean_over_heads = call_.options.weights == ReturnWeights::mean;
      weights.from = backward_.dweights;
      if (call_.added_keys > 0) {
        added_first_ = Tensor(weights.from.shape(), weights.from.dtype(), call_.device());
        put_added_keys_first(call_.added_keys, weights.from, added_first_, workers_);
        weights.from = std::as_const(added_first_).view();
      }
    }
    AttentionGradients& gradients = memory_.attention_gradients;
    gradients.dquery = split_heads(d_.q, call_.heads);
    gradients.dkey = split_heads(d_.k, call_.kv_heads);
    gradients.dvalue = split_heads(d_.v, call_.kv_heads);
    gradients.dsinks = backward_.gradients.dsinks;
    gradients.dmasks = backward_.gradients.dmasks;
    const ConstTensorView q = split_heads(ConstTensorView(kept_.q), call_.heads);
    const ConstTensorView k = split_heads(ConstTensorView(kept_.k), call_.kv_heads);
    const ConstTensorView v = split_heads(ConstTensorView(kept_.v), call_.kv_heads);
    Arena arena(memory_.lists.at_least(problem_bytes(q, options)));
    attention_.emplace(plan_backward(kBackward, gradients, upstream, q, k, v, options, arena));
  }

  void leave_attention() { attention_->run(memory_.scratch.at_least(attention_->plan.sizes, call_.device())); }

  // All batch rows read the same bias_k and bias_v, so these gradients are sums over the batch.
  void leave_added_keys() {
    add_bias("bias_k", {}, d_.k.slice(1, 0, 1));
    add_bias("bias_v", {}, d_.v.slice(1, 0, 1));
  }

  void add_input_projections() {
    if (d_.qkv.defined()) {
      add_projection(Projection::qkv, d_.given(d_.qkv), call_.query);
    } else {
      add_projection(Projection::q, d_.q, call_.query);
      add_projection(Projection::k, d_.given(d_.k), call_.key);
      add_projection(Projection::v, d_.given(d_.v), call_.value);
    }
  }

  void find_input_gradients() {
    const TensorView& dquery = backward_.dquery;
    const TensorView& dkey = backward_.key_given ? backward_.dkey : dquery;
    const TensorView& dvalue = backward_.value_given ? backward_.dvalue : dkey;
    if (d_.qkv.defined() && !backward_.key_given && dquery.defined()) {
      return multiply_back(Projection::qkv, d_.given(d_.qkv), dquery, /*add=*/false);
    }
    multiply_back(Projection::q, d_.q, dquery, /*add=*/false);
    multiply_back(Projection::k, d_.given(d_.k), dkey, /*add=*/!backward_.key_given);
    multiply_back(Projection::v, d_.given(d_.v), dvalue, /*add=*/!backward_.value_given);
  }

  // For y = x · Wᵀ: dx = dy · W, or dx += dy · W if `add`.
  void multiply_back(Projection which, const ConstTensorView& dy, const TensorView& dx, bool add) {
    if (!dx.defined()) return;
    const EngineMatrix& matrix = layer_.projections.transposed(which, call_.options.attention.engine, workers_);
    if (add) return products_.add_tokens(matrix, dy, dx);
    products_.multiply_tokens(matrix, dy, dx, {});
  }

  void add_projection(Projection which, const ConstTensorView& dy, const ConstTensorView& x) {
    const ParameterRows weight = layer_.projections.weight_rows(which), bias = layer_.projections.bias_rows(which);
    add_product(weight.name, weight.rows, dy, x);
    if (call_.config.bias) add_bias(bias.name, bias.rows, dy);
  }

  // For y = x · Wᵀ: dW += dyᵀ · x, with batch rows and tokens in ascending order. `rows` are rows of the parameter;
  // absent: all of them.
  void add_product(std::string_view name, const std::optional<Rows>& rows, const ConstTensorView& dy,
                   const ConstTensorView& x) {
    const TensorView dw = gradient(name, rows);
    if (!dw.defined()) return;
    const EngineRow& engine = choose_engine(Checks(kBackward), call_.options.attention.engine, x.dtype(), x.device());
    for_each_in_order(dy, x, [&](const ConstTensorView& dy_rows, const ConstTensorView& x_rows) {
      const EngineMatrix across(engine, x_rows.transpose(0, 1), x.dtype(), workers_);
      products_.multiply(across, dy_rows.transpose(0, 1), dw, {}, dw);
    });
  }

  void add_bias(std::string_view name, const std::optional<Rows>& rows, const ConstTensorView& dy) {
    TensorView db = gradient(name, rows);
    if (!db.defined()) return;
    for (std::int64_t b = 0; b < dy.size(0); ++b) ops_.add_row_sums(dy.select(0, b), db, workers_);  // dy is (B, L, N)
  }

  // Rows of a parameter's gradient; undefined if there is no such parameter, or if its gradient is not requested.
  TensorView gradient(std::string_view name, const std::optional<Rows>& rows) const {
    const std::vector<Parameter>& list = layer_.parameters.list();
    for (std::size_t n = 0; n < backward_.gradients.parameters.size(); ++n) {
      if (list[n].name != name) continue;
      const TensorView all = backward_.gradients.parameters[n].view();
      return rows ? all.slice(0, rows->begin, rows->end) : all;
    }
    return {};
  }

  const BackwardCall& backward_;
  const Activations kept_;
  Activations d_;  // gradients, in the layout of the activations
  ConstTensorView dout_;
  Tensor added_first_;  // dweights in attention's order, with the added keys first
  std::optional<PlannedBackward> attention_;
};

}  // namespace

BackwardCall::BackwardCall(const MultiHeadAttentionConfig& config, const Parameters& parameters,
                           const LayerGradients& given, const LayerUpstream& upstream,
                           const LayerActivations& given_kept, const ConstTensorView& query, const ConstTensorView& key,
                           const ConstTensorView& value, const LayerOptions& options)
    : forward(config, parameters.list().front().value.device(), query, key, value, options, kBackward),
      gradients(given),
      kept(given_kept),
      key_given(key.defined()),
      value_given(value.defined()) {
  const Checks checks(kBackward, query.device());
  const DType type = type_between_steps(config);
  checks.require(options.cache == nullptr, "a cache is given; backward does not support cached keys and values");
  const LayerActivations::Memory& memory = kept.memory();
  checks.require(memory.filled, "kept is empty; pass it to forward as options.keep first");
  checks.require(memory.bytes.device() == forward.device(), "kept is on ", memory.bytes.device(), ", the layer on ",
                 forward.device(), "; they must be on one device");
  checks.require(memory.query == forward.query.shape() && memory.key == forward.key.shape() &&
                     memory.one_input == forward.one_input,
                 "kept is from another call: its query was ", memory.query, " and its key ", memory.key,
                 " as (B, L, E), here they are ", forward.query.shape(), " and ", forward.key.shape());

  const LayerShapes shapes = forward.shapes();
  checks.usable("dout", upstream.dout);
  checks.shaped("dout", upstream.dout, shapes.out, "that of forward's output");
  if (type == DType::f64) {
    checks.typed("dout", upstream.dout, {DType::f64});
  } else {
    checks.typed("dout", upstream.dout, {DType::f32, DType::bf16, DType::f16});
  }
  dout = canonical(upstream.dout, config.batch_first);
  if (upstream.dweights.defined()) {
    checks.require(options.weights != ReturnWeights::none,
                   "dweights is given, but options.weights is none; set it as in forward");
    checks.shaped("dweights", upstream.dweights, shapes.weights, "that of forward's weights");
    checks.typed("dweights", upstream.dweights, {type});
    dweights = forward.batched ? upstream.dweights : upstream.dweights.unsqueeze(0);
  }

  Apart tensors(checks);
  tensors.add_input("query", forward.query);
  tensors.add_input("key", forward.key);
  tensors.add_input("value", forward.value);
  for (std::size_t n = 0; n < options.attention.masks.size(); ++n) {
    tensors.add_input(Name("attention.masks", n), options.attention.masks[n].view);
  }
  tensors.add_input("attention.sinks", options.attention.sinks);
  tensors.add_input("dout", upstream.dout);
  tensors.add_input("dweights", upstream.dweights);
  const auto input = [&](const char* name, const TensorView& to, const ConstTensorView& of) -> TensorView {
    if (!to.defined()) return {};
    checks.shaped(name, to, of.shape(), "that of its input");
    checks.typed(name, to, {type});
    tensors.add_output(name, to);
    return canonical(to, config.batch_first);
  };
  checks.require(key_given || !gradients.dkey.defined(),
                 "dkey is given, but key is not; the gradient of the key is part of dquery");
  checks.require(value_given || !gradients.dvalue.defined(),
                 "dvalue is given, but value is not; the gradient of the value is part of ",
                 key_given ? "dkey" : "dquery");
  dquery = input("dquery", gradients.dquery, query);
  dkey = input("dkey", gradients.dkey, key);
  dvalue = input("dvalue", gradients.dvalue, value);
  tensors.add_output("dsinks", gradients.dsinks);
  for (std::size_t n = 0; n < gradients.dmasks.size(); ++n) {
    tensors.add_output(Name("dmasks", n, ".to"), gradients.dmasks[n].to);
  }

  const std::vector<Parameter>& list = parameters.list();
  checks.require(gradients.parameters.empty() || gradients.parameters.size() == list.size(), "parameters has ",
                 gradients.parameters.size(), " tensors, the layer has ", list.size(),
                 " parameters; zero_gradients() creates them");
  std::vector<TensorView> parameter_gradients(gradients.parameters.size());
  for (std::size_t n = 0; n < gradients.parameters.size(); ++n) {
    parameter_gradients[n] = gradients.parameters[n].view();
    tensors.add_output(Name("parameters", n), parameter_gradients[n]);
    const Tensor& to = gradients.parameters[n];
    checks.require(to.shape() == list[n].value.shape() && to.dtype() == type, "the gradient of ", list[n].name,
                   " has shape ", to.shape(), " of ", to.dtype(), "; it must be ", list[n].value.shape(), " of ", type,
                   ", as zero_gradients() creates it");
  }
  checks.require(gradients.dmasks.empty() || forward.added_keys == 0,
                 "dmasks cannot be combined with add_bias_kv and add_zero_attention: the added keys get mask columns "
                 "of their own");
}

void backward(const BackwardCall& call, const LayerParts& layer, LayerWorkspace::Memory& memory) {
  Backward(call, layer, memory).run();
}

}  // namespace rapt::nn
