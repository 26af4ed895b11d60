#include "attention/resolve.h"

#include <vector>

#include "attention/apart.h"
#include "attention/options.h"
#include "attention/storage.h"
#include "core/selection.h"

namespace rapt {

namespace {

// The shape of the selected weights or scores, and its notation in messages.
struct SelectedShape {
  Dims shape;
  const char* meaning;
};

SelectedShape selected_shape(const Checks& checks, std::string_view name, const Selection& of,
                             const AttentionProblem& problem) {
  const auto check_indices = [&](std::string_view list, const std::vector<std::int64_t>& indices, std::int64_t size) {
    for (const std::int64_t index : indices) {
      checks.require(index >= 0 && index < size, name, ".of.", list, " contains ", index, "; valid indices are 0 to ",
                     size - 1);
    }
  };
  check_indices("heads", of.heads, problem.query_heads);
  check_indices("queries", of.queries, problem.query.size(2));
  const std::int64_t batch = problem.query.size(0);
  const std::int64_t queries = chosen_count(of.queries, problem.query.size(2));
  const std::int64_t keys = problem.key_length;
  if (of.mean_over_heads) return {{batch, queries, keys}, "(B, queries, Lk)"};
  return {{batch, chosen_count(of.heads, problem.query_heads), queries, keys}, "(B, heads, queries, Lk)"};
}

// The accumulation type. lse has this type; captured weights and scores may have it.
DType sum_type(const AttentionProblem& problem) { return problem.sums_in_f64() ? DType::f64 : DType::f32; }

Dims out_shape(const AttentionProblem& problem) {
  return {problem.query.size(0), problem.query_heads, problem.query.size(2), problem.value_size};
}

Dims row_shape(const AttentionProblem& problem) {
  return {problem.query.size(0), problem.query_heads, problem.query.size(2)};
}

// The inputs that forward and backward share.
Apart inputs_of(const Checks& checks, const AttentionProblem& problem) {
  Apart tensors(checks);
  tensors.add_input("query", problem.query);
  tensors.add_input("key", problem.key);
  tensors.add_input("value", problem.value);
  tensors.add_input("key_scales", problem.key_scales);
  tensors.add_input("value_scales", problem.value_scales);
  for (std::size_t n = 0; n < problem.masks.size(); ++n) tensors.add_input(Name("masks", n), problem.masks[n].view);
  tensors.add_input("sinks", problem.sinks);
  return tensors;
}

void check_outputs(const Checks& checks, const ForwardProblem& problem) {
  const ForwardProblem::Outputs& outputs = problem.outputs;
  Apart tensors = inputs_of(checks, problem);

  checks.shaped("out", outputs.out, out_shape(problem), "(B, Hq, Lq, Dv)");
  checks.typed("out", outputs.out, {problem.query.dtype()});
  tensors.add_output("out", outputs.out);
  if (outputs.lse.defined()) {
    checks.shaped("lse", outputs.lse, row_shape(problem), "(B, Hq, Lq)");
    checks.typed("lse", outputs.lse, {sum_type(problem)});
    tensors.add_output("lse", outputs.lse);
  }
  for (std::size_t n = 0; n < outputs.captures.size(); ++n) {
    const Capture& capture = outputs.captures[n];
    const Name name("captures", n, ".to");
    const SelectedShape selected = selected_shape(checks, Name("captures", n), capture.of, problem);
    checks.shaped(name, capture.to, selected.shape, selected.meaning);
    if (problem.query.dtype() == sum_type(problem)) {
      checks.typed(name, capture.to, {sum_type(problem)});
    } else {
      checks.typed(name, capture.to, {problem.query.dtype(), sum_type(problem)});
    }
    tensors.add_output(name, capture.to);
  }
}

// The remaining check of outputs that a layer has already checked: the selected heads and queries.
void check_selections(const Checks& checks, const ForwardProblem& problem) {
  for (std::size_t n = 0; n < problem.outputs.captures.size(); ++n) {
    (void)selected_shape(checks, Name("captures", n), problem.outputs.captures[n].of, problem);
  }
}

void check_upstream(const Checks& checks, const BackwardProblem& problem) {
  const BackwardProblem::Upstream& upstream = problem.upstream;
  checks.require(upstream.dout.defined() || upstream.dlse.defined() || !upstream.dweights.empty(),
                 "no upstream gradient; give dout, dlse or dweights");
  const auto check_out = [&](std::string_view name, const ConstTensorView& tensor) {
    if (!tensor.defined()) return;
    checks.shaped(name, tensor, out_shape(problem), "(B, Hq, Lq, Dv)");
    checks.typed(name, tensor, {problem.query.dtype()});
  };
  const auto check_lse = [&](std::string_view name, const ConstTensorView& tensor) {
    if (!tensor.defined()) return;
    checks.shaped(name, tensor, row_shape(problem), "(B, Hq, Lq)");
    checks.typed(name, tensor, {sum_type(problem)});
  };
  check_out("dout", upstream.dout);
  check_out("out", upstream.out);
  check_lse("dlse", upstream.dlse);
  check_lse("lse", upstream.lse);
  for (std::size_t n = 0; n < upstream.dweights.size(); ++n) {
    const WeightsGradient& gradient = upstream.dweights[n];
    const Name name("dweights", n);
    checks.require(
        is_weights(gradient.stage), name,
        " is a gradient of scores; only gradients at Stage::weights and Stage::dropped_weights are supported");
    const SelectedShape selected = selected_shape(checks, name, gradient.of, problem);
    checks.shaped(Name("dweights", n, ".from"), gradient.from, selected.shape, selected.meaning);
    checks.require(is_float(gradient.from.dtype()), name, ".from is ", gradient.from.dtype(),
                   "; it must be a float type");
  }
}

void check_gradients(const Checks& checks, const BackwardProblem& problem, const AttentionOptions& options) {
  const BackwardProblem::Gradients& gradients = problem.gradients;
  Apart tensors = inputs_of(checks, problem);
  tensors.add_input("dout", problem.upstream.dout);
  tensors.add_input("dlse", problem.upstream.dlse);
  tensors.add_input("out", problem.upstream.out);
  tensors.add_input("lse", problem.upstream.lse);
  for (std::size_t n = 0; n < problem.upstream.dweights.size(); ++n) {
    tensors.add_input(Name("dweights", n, ".from"), problem.upstream.dweights[n].from);
  }
  const auto check_like = [&](const Name& name, const TensorView& tensor, const ConstTensorView& like,
                              std::string_view of) {
    checks.shaped(name, tensor, like.shape(), of);
    checks.typed(name, tensor, {like.dtype()});
    tensors.add_output(name, tensor);
  };
  if (gradients.dquery.defined()) check_like("dquery", gradients.dquery, problem.query, "the query's");
  if (gradients.dkey.defined()) check_like("dkey", gradients.dkey, problem.key, "the key's");
  if (gradients.dvalue.defined()) check_like("dvalue", gradients.dvalue, problem.value, "the value's");
  if (gradients.dsinks.defined()) {
    checks.require(problem.sinks.defined(), "dsinks is requested, but the call has no sinks");
    check_like("dsinks", gradients.dsinks, problem.sinks, "the sinks'");
  }
  for (std::size_t n = 0; n < gradients.dmasks.size(); ++n) {
    const MaskGradient& gradient = gradients.dmasks[n];
    const Name name("dmasks", n);
    checks.require(gradient.mask < options.masks.size(), name, " belongs to masks[", gradient.mask,
                   "], but the call has ", options.masks.size(), " masks");
    checks.require(options.masks[gradient.mask].kind == Mask::Kind::add, name, " belongs to masks[", gradient.mask,
                   "], which is not a Mask::add and has no gradient");
    check_like(Name("dmasks", n, ".to"), gradient.to, options.masks[gradient.mask].view, "the mask's");
  }
}

}  // namespace

std::size_t problem_bytes(const ConstTensorView& query, const AttentionOptions& options) {
  Arena counter;
  const ProblemLists lists(counter, query, options);
  return counter.used();
}

ForwardProblem resolve_forward(std::string_view function, const AttentionOutputs& outputs, const ConstTensorView& query,
                               const ConstTensorView& key, const ConstTensorView& value,
                               const AttentionOptions& options, Arena& arena, Outputs checked) {
  const Checks checks(function, query.device());
  ForwardProblem problem;
  resolve_options(checks, query, key, value, options, ProblemLists(arena, query, options), problem);
  problem.outputs = {outputs.out, outputs.lse, outputs.captures};
  if (checked == Outputs::unchecked) {
    check_outputs(checks, problem);
  } else {
    check_selections(checks, problem);
  }
  return problem;
}

BackwardProblem resolve_backward(std::string_view function, const AttentionGradients& gradients,
                                 const AttentionUpstream& upstream, const ConstTensorView& query,
                                 const ConstTensorView& key, const ConstTensorView& value,
                                 const AttentionOptions& options, Arena& arena) {
  const Checks checks(function, query.device());
  BackwardProblem problem;
  require_plain_storage(checks, key, value, options);
  resolve_options(checks, query, key, value, options, ProblemLists(arena, query, options), problem);
  problem.upstream = {upstream.dout, upstream.dlse, upstream.dweights, upstream.out, upstream.lse};
  problem.gradients = {gradients.dquery, gradients.dkey, gradients.dvalue, gradients.dsinks, gradients.dmasks};
  check_upstream(checks, problem);
  check_gradients(checks, problem, options);
  return problem;
}

}  // namespace rapt
