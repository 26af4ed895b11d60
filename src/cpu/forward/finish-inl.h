// Finishing a row: its sink, the division by its sum, and writing it.
#if defined(RAPT_CPU_FINISH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_FINISH_INL_H
#undef RAPT_CPU_FINISH_INL_H
#else
#define RAPT_CPU_FINISH_INL_H
#endif

#include "cpu/forward/scratch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// The sink joins the sum last, as a chunk of one key without a value.
inline void AddSinks(const ForwardProblem& problem, const TileRows& rows, const TileState& state,
                     std::int64_t padded_value_size) {
  const ConstTensorView& sinks = problem.sinks;
  HWY_ALIGN float sink[TileRows::kMax];
  for (std::int64_t n = 0; n < rows.vectors * kLanes; ++n) {
    const std::int64_t head = rows.head[static_cast<std::size_t>(n)];
    sink[n] = static_cast<float>(load(sinks.data(), sinks.dtype(), head * sinks.stride(0)));
  }
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
    const Vec value = Load(sink + lane);
    const Vec weight = hn::IfThenElse(hn::Eq(value, NegativeInfinity()), hn::Zero(kF32), Set(1.0F));
    const Merge merge = MergeSums(state.m + lane, state.l + lane, value, weight);
    for (std::int64_t d = 0; d < padded_value_size; ++d) {
      float* place = state.o + d * kTileRows + lane;
      Store(hn::Mul(Load(place), merge.keep_old), place);
    }
  }
}

// Stores lse = m + log l, and the row statistics that a later pass needs.
inline void StoreSums(const ForwardProblem& problem, const TileRows& rows, std::int64_t lane, float m, float l,
                      const RowSums& sums) {
  const std::int64_t b = rows.sequence->batch;
  const std::int64_t head = rows.head[static_cast<std::size_t>(lane)];
  if (sums.wanted()) {
    const std::size_t place = sums.place(b, head, rows.query(lane));
    sums.m[place] = m;
    sums.l[place] = l;
  }
  if (const TensorView& lse = problem.outputs.lse; lse.defined()) {
    static_cast<float*>(lse.data())[row_offset(lse, b, head, rows.query(lane))] = LogSumExp(m, l);
  }
}

// o times a factor for each row, transposed from lanes to rows, padded to RoundUp(size, 4) numbers. Adding 0 turns −0
// into 0: see RowState::normalise. Returns the check that AllFinite needs.
HWY_INLINE Vec StoreOutputs(const float* HWY_RESTRICT o, Vec factor, std::int64_t size, float* const* to) {
  Vec check = hn::Zero(kF32);
  const auto column = [&](std::int64_t d) HWY_ATTR {
    const Vec x = hn::MulAdd(Load(o + d * kTileRows), factor, hn::Zero(kF32));
    check = NotFinite(x, check);
    return x;
  };
  const std::int64_t d = StoreColumns(column, size, to);
  if (d == size) return check;
  const auto or_zero = [&](std::int64_t n) HWY_ATTR { return n < size ? column(n) : hn::Zero(kF32); };
  StoreFourColumns(or_zero(d), or_zero(d + 1), or_zero(d + 2), or_zero(d + 3), to, d);
  return check;
}

// out = o / l. A fully masked row has l = 0 and gives 0. Returns whether everything written is finite; if not, masked
// values may have entered the products: see RepeatRows.
inline bool StoreRows(const ForwardProblem& problem, const TileRows& rows, const TileState& state,
                      const Scratch& scratch, const RowSums& sums) {
  const TensorView& out = problem.outputs.out;
  const std::int64_t size = problem.value_size;
  const Vec keep = Set(static_cast<float>(problem.dropout.keep_scale));
  const bool in_place = reads_in_place(out) && size % 4 == 0;
  const bool any_sums = sums.wanted() || problem.outputs.lse.defined();
  Vec check = hn::Zero(kF32);
  const auto offset = [&](std::int64_t lane) {
    return row_offset(out, rows.sequence->batch, rows.head[static_cast<std::size_t>(lane)], rows.query(lane));
  };
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
    const std::int64_t count = std::min(kLanes, rows.count - lane);
    float* to[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) {
      to[n] = in_place && n < count ? static_cast<float*>(out.data()) + offset(lane + n)
                                    : scratch.rows_in.data() + n * RoundUp(size, 4);
    }
    const Vec l = Load(state.l + lane);
    const Vec factor = hn::IfThenElse(hn::Eq(l, hn::Zero(kF32)), hn::Zero(kF32), hn::Div(keep, l));
    check = hn::Add(check, StoreOutputs(state.o + lane, factor, size, to));
    for (std::int64_t n = 0; n < count && !in_place; ++n) {
      StoreRow(to[n], size, out, offset(lane + n), out.stride(3));
    }
    for (std::int64_t n = 0; n < count && any_sums; ++n) {
      StoreSums(problem, rows, lane + n, state.m[lane + n], state.l[lane + n], sums);
    }
  }
  return AllFinite(check);
}

// Stores a tile's state as one partial for each row; `to(r)` is the destination of row r.
template <class To>
void StorePartials(const TileRows& rows, const TileState& state, std::int64_t size, float* spare, const To& to) {
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
    float* o[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) {
      o[n] = spare;
      if (lane + n >= rows.count) continue;
      const RowState row = to(lane + n);
      row.clear();  // also past the last column
      row.m() = state.m[lane + n];
      row.l() = state.l[lane + n];
      o[n] = row.o();
    }
    StoreOutputs(state.o + lane, Set(1.0F), size, o);
  }
}

// The end of one row: sink, division, and writing. Returns whether the row is finite, as StoreRows does.
inline bool FinishRow(const ForwardProblem& problem, const TileRows& rows, std::int64_t lane, const RowState& state,
                      const RowSums& sums) {
  const TensorView& out = problem.outputs.out;
  const std::int64_t head = rows.head[static_cast<std::size_t>(lane)];
  if (const ConstTensorView& sinks = problem.sinks; sinks.defined()) {
    state.add_sink(static_cast<float>(load(sinks.data(), sinks.dtype(), head * sinks.stride(0))));
  }
  StoreSums(problem, rows, lane, state.m(), state.l(), sums);
  const bool finite = state.normalise(static_cast<float>(problem.dropout.keep_scale));
  StoreRow(state.o(), problem.value_size, out, row_offset(out, rows.sequence->batch, head, rows.query(lane)),
           out.stride(3));
  return finite;
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
