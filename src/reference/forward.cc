// Attention forward, one row at a time.
#include <algorithm>

#include "core/elements.h"
#include "reference/captures.h"
#include "reference/engine.h"
#include "reference/passes.h"

namespace rapt::reference {

namespace {

// The scratch memory of one worker, for the current row.
struct RowScratch {
  RowScratch(Arena& arena, const ForwardProblem& problem)
      : s(arena.take<double>(problem.key_length)),
        seen(arena.take<bool>(problem.key_length)),
        out(arena.take<double>(problem.value_size)),
        captures(arena, problem) {}

  std::span<double> s;    // (Lk): scores, then weights
  std::span<bool> seen;   // (Lk)
  std::span<double> out;  // (Dv)
  CaptureWriter captures;
};

struct Workspace {
  Workspace(Arena& arena, const ForwardProblem& problem) : inputs(arena, problem) {
    std::int64_t queries = 0;  // never more workers than there are queries
    for (const SequenceSpan& sequence : problem.sequences) queries += sequence.query_count;
    const std::int64_t workers = std::clamp<std::int64_t>(queries, 1, problem.threads);
    for (std::int64_t worker = 0; worker < workers; ++worker) scratch.emplace_back(arena, problem);
  }

  Inputs inputs;
  std::vector<RowScratch> scratch;
};

void attend(const ForwardProblem& problem, const Row& row, const Inputs& inputs, RowScratch& scratch) {
  const auto keys = static_cast<std::size_t>(row.sequence.key_count);
  const std::span<double> s = scratch.s.first(keys);
  const std::span<bool> seen = scratch.seen.first(keys);

  scores(row, inputs, s);
  scratch.captures.row(row, Stage::raw, s);
  cap(row, s);
  scratch.captures.row(row, Stage::capped, s);
  apply_mask(row, s);
  find_seen(s, seen);
  scratch.captures.row(row, Stage::masked, s);
  const double lse = softmax(row, s).lse;
  scratch.captures.row(row, Stage::weights, s);
  dropout(row, s);
  scratch.captures.row(row, Stage::dropped_weights, s);
  weighted_sum(row, inputs, seen, s, scratch.out);

  const TensorView& out = problem.outputs.out;
  const std::int64_t place = row.batch() * out.stride(0) + row.head * out.stride(1) + row.query() * out.stride(2);
  for (std::size_t d = 0; d < scratch.out.size(); ++d) {
    store(out.data(), out.dtype(), place + static_cast<std::int64_t>(d) * out.stride(3), scratch.out[d]);
  }
  if (const TensorView& to = problem.outputs.lse; to.defined()) {
    store(to.data(), to.dtype(), row.batch() * to.stride(0) + row.head * to.stride(1) + row.query() * to.stride(2),
          lse);
  }
}

}  // namespace

Plan plan_forward(const ForwardProblem& problem) {
  Arena counter;
  const Workspace sizes(counter, problem);
  return Plan({.host = counter.used()});
}

void forward(const ForwardProblem& problem, const Plan& /*plan*/, const Buffers& buffers) {
  Arena arena(buffers.host);
  Workspace workspace(arena, problem);
  workspace.inputs.read(problem);

  // Worker w takes the queries whose number is w modulo the number of workers. Rows are independent, so any division
  // gives the same bits.
  const auto workers = static_cast<std::int64_t>(workspace.scratch.size());
  (*problem.parallel_for)(workers, [&](std::int64_t worker) {
    RowScratch& scratch = workspace.scratch[static_cast<std::size_t>(worker)];
    std::int64_t number = 0;
    for (const SequenceSpan& sequence : problem.sequences) {
      for (std::int64_t i = 0; i < sequence.query_count; ++i) {
        if (number++ % workers != worker) continue;
        scratch.captures.start_query();
        for (std::int64_t head = 0; head < problem.query_heads; ++head) {
          attend(problem, {problem, sequence, head, i}, workspace.inputs, scratch);
        }
        scratch.captures.finish_query({problem, sequence, 0, i});
      }
    }
  });
}

}  // namespace rapt::reference
