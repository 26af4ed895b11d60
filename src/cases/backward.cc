#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cases/case.h"

namespace rapt::cases {

namespace {

constexpr std::uint32_t kDout = 20, kDlse = 21, kDweights = 22;

Tensor random_tensor(const CaseSpec& spec, std::uint32_t number, const Dims& shape, DType dtype) {
  Stream stream(spec.seed, number);
  Tensor numbers(shape, DType::f64);
  for (double& number_at : numbers.values<double>()) number_at = 2.0 * stream.uniform() - 1.0;
  return numbers.to(dtype);
}

bool holds_weights(Stage stage) { return stage == Stage::weights || stage == Stage::dropped_weights; }

// Upstream gradients: always of out, and of lse and weights if the case requests them.
struct Upstream {
  explicit Upstream(const CaseSpec& spec) {
    const DType sums = spec.query_type == DType::f64 ? DType::f64 : DType::f32;
    const Dims rows{spec.batch, spec.query_heads, spec.queries};
    dout = random_tensor(spec, kDout, {spec.batch, spec.query_heads, spec.queries, spec.value_size}, spec.query_type);
    if (spec.lse) dlse = random_tensor(spec, kDlse, rows, sums);
    for (const auto& [stage, of] : spec.captures) {
      if (!holds_weights(stage)) continue;
      const auto number = kDweights + static_cast<std::uint32_t>(dweights.size());
      dweights.push_back({stage, of, random_tensor(spec, number, capture_shape(spec, of), spec.type_of(stage))});
    }
  }

  struct Weights {
    Stage stage;
    Selection of;
    Tensor values;
  };
  Tensor dout, dlse;
  std::vector<Weights> dweights;
};

Gradients call(const CaseSpec& spec, const Upstream& arriving, const AttentionUpstream& known,
               const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
               const AttentionOptions& given, Placed& placed, bool* untouched) {
  AttentionUpstream upstream = known;
  const auto fits = [&](const Tensor& tensor, DType dtype) { return tensor.to(dtype); };
  const DType sums = query.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Buffer dout = make_buffer(spec.layout, arriving.dout.shape(), query.dtype());
  copy(arriving.dout, dout.view);
  upstream.dout = placed.input(dout.memory, dout.view);
  const Tensor dlse = spec.lse ? fits(arriving.dlse, sums) : Tensor();
  if (spec.lse) upstream.dlse = placed.input(dlse, dlse);
  std::vector<Tensor> dweights;
  for (const Upstream::Weights& weights : arriving.dweights) {
    dweights.push_back(sums == DType::f64 ? fits(weights.values, sums) : weights.values.clone());
    const Tensor& from = dweights.back();
    upstream.dweights.push_back({weights.stage, placed.input(from, from), weights.of});
  }

  Buffer dquery = make_buffer(spec.layout, query.shape(), query.dtype());
  Buffer dkey = make_buffer(spec.layout, key.shape(), key.dtype());
  Buffer dvalue = make_buffer(spec.layout, value.shape(), value.dtype());
  AttentionGradients gradients{.dquery = placed.output(dquery.memory, dquery.view),
                               .dkey = placed.output(dkey.memory, dkey.view),
                               .dvalue = placed.output(dvalue.memory, dvalue.view)};
  AttentionOptions options = given;
  Tensor dsinks;
  if (options.sinks.defined()) {
    dsinks = Tensor(options.sinks.shape(), options.sinks.dtype());
    gradients.dsinks = placed.output(dsinks, dsinks);
  }
  std::deque<Tensor> dmasks;
  for (std::size_t n = 0; n < options.masks.size(); ++n) {
    const Mask& mask = options.masks[n];
    if (mask.kind != Mask::Kind::add) continue;
    Tensor& dmask = dmasks.emplace_back(mask.view.shape(), mask.view.dtype());
    gradients.dmasks.push_back({n, placed.output(dmask, dmask)});
  }
  GuardedWorkspace workspace(placed.device());
  if (!placed.on_cpu()) {
    options.workspace =
        workspace.of_bytes(attention_backward_workspace_bytes(gradients, upstream, query, key, value, options));
  }
  attention_backward(gradients, upstream, query, key, value, options);
  placed.bring_back();

  Gradients answer;
  const auto add = [&](const char* name, const ConstTensorView& view) {
    answer.push_back({name, view.dtype(), Tensor::copy_of(view, DType::f64)});
  };
  add("dquery", dquery.view), add("dkey", dkey.view), add("dvalue", dvalue.view);
  if (options.sinks.defined()) add("dsinks", dsinks.view());
  for (const Tensor& dmask : dmasks) add("dmask", dmask.view());
  if (untouched != nullptr) {
    *untouched = dquery.is_untouched() && dkey.is_untouched() && dvalue.is_untouched() && workspace.is_untouched();
  }
  return answer;
}

}  // namespace

bool has_backward(const CaseSpec& spec) { return spec.page_size == 0 && spec.kv_type != DType::i8; }

Handed handed_to_backward(const CaseSpec& spec) {
  return spec.seed % 3 == 0 ? Handed::nothing : spec.seed % 3 == 1 ? Handed::lse : Handed::out_and_lse;
}

Gradients run_backward(const Case& test, bool* untouched) {
  const CaseSpec& spec = test.spec;
  const DType sums = spec.query_type == DType::f64 ? DType::f64 : DType::f32;
  Placed placed(test.device);
  const Case::Inputs inputs = test.inputs(placed);
  AttentionUpstream known;
  Tensor out({spec.batch, spec.query_heads, spec.queries, spec.value_size}, spec.query_type);
  Tensor lse({spec.batch, spec.query_heads, spec.queries}, sums);
  if (const Handed handed = handed_to_backward(spec); handed != Handed::nothing) {
    AttentionOptions options = inputs.options;
    options.workspace = {};
    const AttentionOutputs outputs{.out = placed.output(out, out), .lse = placed.output(lse, lse)};
    attention(outputs, inputs.query, inputs.key, inputs.value, options);
    known.lse = outputs.lse;
    if (handed == Handed::out_and_lse) known.out = outputs.out;
  }
  return call(spec, Upstream(spec), known, inputs.query, inputs.key, inputs.value, inputs.options, placed, untouched);
}

Gradients true_gradients(const Case& test) {
  AttentionOptions options = test.options;
  options.engine = Engine::reference;
  options.workspace = {}, options.stream = {};
  Placed here(Device{});
  const Upstream arriving(test.spec);
  if (test.spec.sums_swallow()) {
    return call(test.spec, arriving, {}, test.query, test.key, test.value, options, here, nullptr);
  }
  std::deque<Tensor> memory;
  const auto exact = [&](const ConstTensorView& view) {
    return memory.emplace_back(Tensor::copy_of(view, DType::f64)).view();
  };
  for (Mask& mask : options.masks) {
    if (mask.kind == Mask::Kind::add) mask.view = exact(mask.view);
  }
  if (options.sinks.defined()) options.sinks = exact(options.sinks);
  return call(test.spec, arriving, {}, exact(test.query), exact(test.key), exact(test.value), options, here, nullptr);
}

}  // namespace rapt::cases
