// Attention backward: the steps of forward.cc in reverse, for one row at a time.
//
// g is a gradient, p the weights before dropout and p' those after it; "upstream" is the caller's gradient, if given:
//
//   8.  dv_j += p'_j · dout            g'_j = dout · v_j + upstream of p'_j
//   7.  g_j  = g'_j · keep / (1 − rate) + upstream of p_j
//   6.  ds_j = p_j · (g_j − Σ_k p_k g_k + dlse)       the sink: the same with g = 0
//   5.  a hidden key has p_j = 0 and so ds_j = 0
//   4.  a filled score has ds_j = 0
//   3.  every additive mask receives ds_j
//   2.  ds_j = ds_j · (1 − tanh²)
//   1.  dq += scale · ds_j · k_j       dk_j += scale · ds_j · q
#include <algorithm>

#include "core/copy.h"
#include "core/elements.h"
#include "reference/captures.h"
#include "reference/passes.h"

namespace rapt::reference {

namespace {

// The gradient of one additive mask: an array in the shape of the mask, and the strides that map (b, h, i, j) to an
// index of it.
struct MaskSum {
  MaskSum(Arena& arena, const BackwardProblem& problem, const MaskGradient& gradient)
      : values(arena.take<double>(gradient.to.count())),
        strides(Layout::contiguous(gradient.to.shape())
                    .expand({problem.query.size(0), problem.query_heads, problem.query.size(2), problem.key_length})
                    .strides) {}

  double& at(const Row& row, std::size_t j) const {
    return values[static_cast<std::size_t>(row.batch() * strides[0] + row.head * strides[1] + row.query() * strides[2] +
                                           row.key(j) * strides[3])];
  }

  std::span<double> values;
  Dims strides;
};

struct Workspace {
  Workspace(Arena& arena, const BackwardProblem& problem)
      : inputs(arena, problem),
        dquery(arena, problem.query.shape()),
        dkey(arena, problem.key.shape()),
        dvalue(arena, problem.value.shape()),
        dsinks(arena.take<double>(problem.query_heads)),
        dout(arena.take<double>(problem.value_size)),
        capped(arena.take<double>(problem.key_length)),
        p(arena.take<double>(problem.key_length)),
        dropped(arena.take<double>(problem.key_length)),
        g(arena.take<double>(problem.key_length)),
        seen(arena.take<bool>(problem.key_length)) {
    for (const MaskGradient& gradient : problem.gradients.dmasks) dmasks.emplace_back(arena, problem, gradient);
  }

  void clear() const {
    for (const std::span<double> sums : {dquery.values, dkey.values, dvalue.values, dsinks}) {
      std::fill(sums.begin(), sums.end(), 0.0);
    }
    for (const MaskSum& sum : dmasks) std::fill(sum.values.begin(), sum.values.end(), 0.0);
  }

  Inputs inputs;
  Rows dquery, dkey, dvalue;
  std::span<double> dsinks;
  std::span<double> dout;                   // (Dv), of the current row
  std::span<double> capped, p, dropped, g;  // (Lk), of the current row
  std::span<bool> seen;                     // (Lk), of the current row
  std::vector<MaskSum> dmasks;
};

double load_at_row(const Row& row, const ConstTensorView& view, std::int64_t rest) {
  return load(view.data(), view.dtype(),
              row.batch() * view.stride(0) + row.head * view.stride(1) + row.query() * view.stride(2) + rest);
}

// g += the upstream gradient of this row's weights at that stage.
void add_weights_gradient(const BackwardProblem& problem, const Row& row, Stage stage, std::span<double> g) {
  for (const WeightsGradient& gradient : problem.upstream.dweights) {
    if (gradient.stage != stage) continue;
    const ConstTensorView& from = gradient.from;
    const double heads =
        gradient.of.mean_over_heads ? static_cast<double>(chosen_count(gradient.of.heads, problem.query_heads)) : 1.0;
    for_each_row_of(from, gradient.of, row, [&](std::int64_t place) {
      for (std::size_t j = 0; j < g.size(); ++j) {
        g[j] += load(from.data(), from.dtype(), place + row.key(j) * from.stride(from.rank() - 1)) / heads;
      }
    });
  }
}

void attend_backward(const BackwardProblem& problem, const Row& row, const Workspace& work) {
  const auto keys = static_cast<std::size_t>(row.sequence.key_count);
  const std::span<double> capped = work.capped.first(keys);
  const std::span<double> p = work.p.first(keys);
  const std::span<double> dropped = work.dropped.first(keys);
  const std::span<double> g = work.g.first(keys);
  const std::span<bool> seen = work.seen.first(keys);
  const auto key_row = [&](const Rows& rows, std::size_t j) { return rows(row.batch(), row.kv_head(), row.key(j)); };

  // Repeats forward for its intermediate results.
  scores(row, work.inputs, capped);
  cap(row, capped);
  std::copy(capped.begin(), capped.end(), p.begin());
  apply_mask(row, p);
  find_seen(p, seen);
  const Softmax state = softmax(row, p);
  std::copy(p.begin(), p.end(), dropped.begin());
  dropout(row, dropped);

  const ConstTensorView& dout = problem.upstream.dout;
  for (std::size_t d = 0; d < work.dout.size(); ++d) {
    work.dout[d] = dout.defined() ? load_at_row(row, dout, static_cast<std::int64_t>(d) * dout.stride(3)) : 0.0;
  }
  const double dlse = problem.upstream.dlse.defined() ? load_at_row(row, problem.upstream.dlse, 0) : 0.0;

  for (std::size_t j = 0; j < keys; ++j) {  // 8
    g[j] = 0.0;
    if (!seen[j]) continue;  // skipped, because a masked value may be NaN or infinite
    const std::span<double> dv = key_row(work.dvalue, j);
    for (std::size_t d = 0; d < dv.size() && dropped[j] != 0.0; ++d) dv[d] += dropped[j] * work.dout[d];
    g[j] = dot(work.dout, key_row(work.inputs.value, j));
  }
  add_weights_gradient(problem, row, Stage::dropped_weights, g);
  dropout(row, g);  // 7: the same factors
  add_weights_gradient(problem, row, Stage::weights, g);

  double mean = 0.0;  // 6
  for (std::size_t j = 0; j < keys; ++j) {
    if (seen[j] && p[j] != 0.0) mean += p[j] * g[j];
  }
  work.dsinks[static_cast<std::size_t>(row.head)] += state.sink * (dlse - mean);
  for (std::size_t j = 0; j < keys; ++j) {
    // 5 and 4. A weight of 0 passes on no gradient either.
    if (!seen[j] || p[j] == 0.0 || is_filled(row, j)) continue;
    double ds = p[j] * (g[j] - mean + dlse);
    for (const MaskSum& sum : work.dmasks) sum.at(row, j) += ds;  // 3
    if (problem.softcap != 0.0) {                                 // 2
      const double tanh = capped[j] / problem.softcap;
      ds *= 1.0 - tanh * tanh;
      if (ds == 0.0) continue;  // capped, so no gradient passes, even if k is infinite
    }
    const std::span<double> dq = work.dquery(row.batch(), row.head, row.query());  // 1
    const std::span<const double> q = work.inputs.query(row.batch(), row.head, row.query());
    const std::span<double> dk = key_row(work.dkey, j);
    const std::span<const double> k = key_row(work.inputs.key, j);
    for (std::size_t d = 0; d < dq.size(); ++d) {
      dq[d] += problem.scale * ds * k[d];
      dk[d] += problem.scale * ds * q[d];
    }
  }
}

void write_gradients(const BackwardProblem::Gradients& gradients, const Workspace& work) {
  if (gradients.dquery.defined()) write(work.dquery, gradients.dquery);
  if (gradients.dkey.defined()) write(work.dkey, gradients.dkey);
  if (gradients.dvalue.defined()) write(work.dvalue, gradients.dvalue);
  const auto copy_sums = [](std::span<const double> sums, const TensorView& to) {
    core::copy_elements(ConstTensorView(sums.data(), to.shape()), to);
  };
  if (gradients.dsinks.defined()) copy_sums(work.dsinks, gradients.dsinks);
  for (std::size_t n = 0; n < work.dmasks.size(); ++n) copy_sums(work.dmasks[n].values, gradients.dmasks[n].to);
}

}  // namespace

Plan plan_backward(const BackwardProblem& problem) {
  Arena counter;
  const Workspace sizes(counter, problem);
  return Plan({.host = counter.used()});
}

void backward(const BackwardProblem& problem, const Plan& /*plan*/, const Buffers& buffers) {
  Arena arena(buffers.host);
  const Workspace work(arena, problem);
  work.inputs.read(problem);
  work.clear();

  // One thread does all the work: sums over b, h and i are added in ascending order, so that the result is unique.
  for (const SequenceSpan& sequence : problem.sequences) {
    for (std::int64_t head = 0; head < problem.query_heads; ++head) {
      for (std::int64_t i = 0; i < sequence.query_count; ++i) {
        attend_backward(problem, {problem, sequence, head, i}, work);
      }
    }
  }
  write_gradients(problem.gradients, work);
}

}  // namespace rapt::reference
