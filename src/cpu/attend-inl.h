// Attention for one block of rows: the algorithm, top to bottom.
#if defined(RAPT_CPU_ATTEND_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ATTEND_INL_H
#undef RAPT_CPU_ATTEND_INL_H
#else
#define RAPT_CPU_ATTEND_INL_H
#endif

#include <limits>

#include "cpu/masked_scores-inl.h"
#include "cpu/narrow-inl.h"
#include "cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// From one panel of packed values to the next. The gap keeps panels from falling on the same cache lines.
constexpr std::int64_t kPanel = kChunk * kBroadcasts + 16;

// Everything one worker writes on the way, carved from its part of the workspace.
struct Scratch {
  Scratch(Arena& arena, const ForwardProblem& problem, std::int64_t rows)
      : tiles((rows + kTileRows - 1) / kTileRows),
        padded_value_size(RoundUp(problem.value_size, kBroadcasts)),
        q(arena.take<float>(tiles * problem.head_size * kTileRows)),
        o(arena.take<float>(tiles * padded_value_size * kTileRows)),
        m(arena.take<float>(tiles * kTileRows)),
        l(arena.take<float>(tiles * kTileRows)),
        s(arena.take<float>((kChunk + std::max(kBroadcasts, kNarrowKeys)) * kTileRows)),
        mask(arena.take<float>(problem.masks.empty() ? 0 : kChunk * kTileRows)),
        values(arena.take<float>(kPanel * padded_value_size / kBroadcasts)),
        keys(arena.take<float>(reads_in_place(problem.key) ? 0 : kChunk * problem.head_size)),
        rows_in(arena.take<float>(kNarrowKeys * RoundUp(std::max(problem.head_size, problem.value_size), 16))),
        row_states(arena.take<float>(2 * kNarrowRows * RowState::floats(problem.value_size))) {}

  TileState state(std::int64_t tile) const {
    return {m.data() + tile * kTileRows, l.data() + tile * kTileRows, o.data() + tile * padded_value_size * kTileRows};
  }

  std::int64_t tiles;
  std::int64_t padded_value_size;
  std::span<float> q;           // for each tile (D, kTileRows): scaled queries
  std::span<float> o, m, l;     // for each tile its state
  std::span<float> s;           // (kChunk, kTileRows): scores, then weights
  std::span<float> mask;        // (kChunk, kTileRows): a mask's part
  std::span<float> values;      // a chunk of v: for each group of kBroadcasts columns a panel (keys, kBroadcasts)
  std::span<float> keys;        // a chunk of k as f32, where it cannot be read in place
  std::span<float> rows_in;     // (kNarrowKeys, D or Dv): rows on their way into lanes, or out
  std::span<float> row_states;  // of few rows: their states, and those of the chunk at hand
};

// Values [range) of a chunk, packed for WeightedSum: for each group of kBroadcasts columns (kChunk, kBroadcasts).
inline void PackValues(const ForwardProblem& problem, const RowBlock& block, KeyRange range, const Scratch& scratch) {
  const ConstTensorView& view = problem.value;
  const std::int64_t size = problem.value_size;
  const std::int64_t base = row_offset(view, block.sequence->batch, block.kv_head, block.sequence->key_begin);
  const bool in_place = reads_in_place(view);
  const hn::CappedTag<float, kBroadcasts> group;
  const auto step = static_cast<std::int64_t>(hn::Lanes(group));
  for (std::int64_t j = range.first; j < range.last; ++j) {
    const float* row = scratch.rows_in.data();
    if (in_place) {
      row = static_cast<const float*>(view.data()) + base + j * view.stride(2);
    } else {
      LoadRow(view, base + j * view.stride(2), view.stride(3), size, scratch.rows_in.data());
    }
    float* to = scratch.values.data() + (j - range.first) * kBroadcasts;
    std::int64_t d = 0;
    for (; d + kBroadcasts <= size; d += kBroadcasts, to += kPanel) {
      for (std::int64_t n = 0; n < kBroadcasts; n += step) hn::StoreU(hn::LoadU(group, row + d + n), group, to + n);
    }
    for (; d < scratch.padded_value_size; ++d) *to++ = d < size ? row[d] : 0.0F;
  }
}

// One tile against one chunk of keys.
template <int kV>
void AttendChunk(const ForwardProblem& problem, const TileRows& rows, KeyRange chunk, const float* q,
                 const KeyRows& key_rows, const Scratch& scratch, const TileState& state) {
  const TileKeys keys = VisibleTileKeys(problem, rows, chunk);
  if (keys.range.first >= keys.range.last) return;
  const std::int64_t count = keys.range.last - keys.range.first;
  HWY_ALIGN float max[TileRows::kMax];
  HWY_ALIGN float sum[TileRows::kMax];

  MaskedScores(problem, rows, keys, q, key_rows, scratch.mask.data(), scratch.s.data(), max);
  Weights<kV>(count, max, scratch.s.data(), sum);
  if (problem.dropout.on) DropWeights(problem.dropout, rows, keys.range.first, count, scratch.s.data());
  WeightedSum<kV>(scratch.s.data(), Stretches(rows, keys.range, kLanes),
                  scratch.values.data() + (keys.range.first - chunk.first) * kBroadcasts, kPanel,
                  scratch.padded_value_size / kBroadcasts, max, sum, state);
}

inline void AttendChunk(const ForwardProblem& problem, const TileRows& rows, KeyRange chunk, const float* q,
                        const KeyRows& key_rows, const Scratch& scratch, const TileState& state) {
  if (rows.vectors == 1) return AttendChunk<1>(problem, rows, chunk, q, key_rows, scratch, state);
  if (rows.vectors == 2) return AttendChunk<2>(problem, rows, chunk, q, key_rows, scratch, state);
  AttendChunk<kVectors>(problem, rows, chunk, q, key_rows, scratch, state);
}

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

// lse = m + log l, and what a later pass needs of a row.
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

// out = o / l. A row that saw nothing has l = 0 and gives 0.
inline void StoreRows(const ForwardProblem& problem, const TileRows& rows, const TileState& state,
                      const Scratch& scratch, const RowSums& sums) {
  const TensorView& out = problem.outputs.out;
  const std::int64_t size = problem.value_size;
  const std::int64_t padded = RoundUp(size, 4);
  const Vec keep = Set(static_cast<float>(problem.dropout.keep_scale));
  const bool in_place = reads_in_place(out) && size % 4 == 0;
  for (std::int64_t v = 0; v < rows.vectors; ++v) {
    const std::int64_t lane = v * kLanes;
    const std::int64_t count = std::min(kLanes, rows.count - lane);
    float* to[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) {
      const bool direct = in_place && n < count;
      const std::int64_t offset =
          row_offset(out, rows.sequence->batch, rows.head[static_cast<std::size_t>(lane + n)], rows.query(lane + n));
      to[n] = direct ? static_cast<float*>(out.data()) + offset : scratch.rows_in.data() + n * padded;
    }
    const Vec l = Load(state.l + lane);
    const Vec factor = hn::IfThenElse(hn::Eq(l, hn::Zero(kF32)), hn::Zero(kF32), hn::Div(keep, l));
    const auto column = [&](std::int64_t d) HWY_ATTR {
      // Adding 0 turns −0 into 0: see RowState::normalise.
      return d < size ? hn::MulAdd(Load(state.o + d * kTileRows + lane), factor, hn::Zero(kF32)) : hn::Zero(kF32);
    };
    for (std::int64_t d = 0; d < padded; d += 4) {
      StoreFourColumns(column(d), column(d + 1), column(d + 2), column(d + 3), to, d);
    }
    for (std::int64_t n = 0; n < count; ++n) {
      if (!in_place) {
        const std::int64_t offset =
            row_offset(out, rows.sequence->batch, rows.head[static_cast<std::size_t>(lane + n)], rows.query(lane + n));
        StoreRow(to[n], size, out, offset, out.stride(3));
      }
      StoreSums(problem, rows, lane + n, state.m[lane + n], state.l[lane + n], sums);
    }
  }
}

// ---------------------------------------------------------------- few rows

// With tiles narrower than that (one lane), there is nothing to gain.
inline bool IsNarrow(const RowBlock& block) { return kTileRows >= kNarrowRows && block.row_count <= kNarrowRows; }

// One chunk of keys for few rows: their states after this chunk alone.
inline void AttendNarrowChunk(const ForwardProblem& problem, const RowBlock& block, const TileRows& rows,
                              KeyRange chunk, const Scratch& scratch, const RowState* states) {
  for (std::int64_t r = 0; r < rows.count; ++r) states[r].clear();
  const TileKeys keys = VisibleTileKeys(problem, rows, chunk);
  if (keys.range.first >= keys.range.last) return;
  const std::int64_t count = keys.range.last - keys.range.first;
  float* s = scratch.s.data();
  const CacheRows key_rows(problem.key, block, scratch.rows_in.data());
  const CacheRows value_rows(problem.value, block, scratch.rows_in.data());
  HWY_ALIGN float max[TileRows::kMax];
  HWY_ALIGN float sum[TileRows::kMax];

  for (std::int64_t j = keys.range.first; j < keys.range.last; j += kNarrowKeys) {
    const std::int64_t some = std::min(kNarrowKeys, keys.range.last - j);
    const float* from[kNarrowKeys];
    key_rows.load(j, some, from);
    for (std::int64_t n = some; n < kNarrowKeys; ++n) from[n] = from[some - 1];
    const CacheRows::Ahead ahead = key_rows.ahead(j + some, std::min(j + some + kNarrowKeys, keys.range.last));
    float* to = s + (j - keys.range.first) * kTileRows;
    if (rows.count <= 4) {
      NarrowScores<4>(scratch.q.data(), problem.head_size, from, ahead, to);
    } else {
      NarrowScores<8>(scratch.q.data(), problem.head_size, from, ahead, to);
    }
  }
  if (HasTerms(problem) || IsEdge(rows, keys.range)) {
    MaskScores(problem, rows, keys, scratch.mask.data(), s, max);
  } else {
    ResetMax(rows, max);
    FindMax(rows.vectors, count, s, max);
  }
  Weights(rows.vectors, count, max, s, sum);
  if (problem.dropout.on) DropWeights(problem.dropout, rows, keys.range.first, count, s);

  float* o[kNarrowRows];
  for (std::int64_t r = 0; r < rows.count; ++r) {
    states[r].m() = max[r];
    states[r].l() = sum[r];
    o[r] = states[r].o();
  }
  for (std::int64_t j = 0; j < count; j += kNarrowKeys) {
    const std::int64_t some = std::min(kNarrowKeys, count - j);
    const float* from[kNarrowKeys];
    value_rows.load(keys.range.first + j, some, from);
    const CacheRows::Ahead ahead =
        value_rows.ahead(keys.range.first + j + some, keys.range.first + std::min(j + some + kNarrowKeys, count));
    const float* p = s + j * kTileRows;
    std::int64_t r = 0;
    for (; r + 4 <= rows.count; r += 4) NarrowWeightedSum<4>(p + r, from, some, problem.value_size, ahead, o + r);
    for (; r + 2 <= rows.count; r += 2) NarrowWeightedSum<2>(p + r, from, some, problem.value_size, ahead, o + r);
    for (; r < rows.count; ++r) NarrowWeightedSum<1>(p + r, from, some, problem.value_size, ahead, o + r);
  }
}

// The end of one row: sink, division, and writing.
inline void FinishRow(const ForwardProblem& problem, const TileRows& rows, std::int64_t lane, const RowState& state,
                      const RowSums& sums) {
  const TensorView& out = problem.outputs.out;
  const std::int64_t head = rows.head[static_cast<std::size_t>(lane)];
  if (const ConstTensorView& sinks = problem.sinks; sinks.defined()) {
    state.add_sink(static_cast<float>(load(sinks.data(), sinks.dtype(), head * sinks.stride(0))));
  }
  StoreSums(problem, rows, lane, state.m(), state.l(), sums);
  state.normalise(static_cast<float>(problem.dropout.keep_scale));
  StoreRow(state.o(), problem.value_size, out, row_offset(out, rows.sequence->batch, head, rows.query(lane)),
           out.stride(3));
}

// A block of few rows, from its first key to its last.
inline void AttendNarrow(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                         const Scratch& scratch) {
  const TileRows rows(problem, block, block.first_row, block.row_count, kLanes);
  LoadQueries(problem, rows, scratch.rows_in.data(), scratch.q.data());
  RowState whole[kNarrowRows];
  RowState part[kNarrowRows];  // of the chunk at hand
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t floats = RowState::floats(problem.value_size);
    whole[r] = RowState(scratch.row_states.data() + r * floats, problem.value_size);
    part[r] = RowState(scratch.row_states.data() + (kNarrowRows + r) * floats, problem.value_size);
    whole[r].clear();
  }
  // Lanes without a row take part in the softmax, for nothing: they need some number.
  std::fill(scratch.s.begin(), scratch.s.end(), 0.0F);
  for (std::int64_t start = rows.any.first / kChunk * kChunk; start < rows.any.last; start += kChunk) {
    AttendNarrowChunk(problem, block, rows, {start, std::min(start + kChunk, rows.any.last)}, scratch, part);
    for (std::int64_t r = 0; r < rows.count; ++r) whole[r].merge(part[r]);
  }
  for (std::int64_t r = 0; r < rows.count; ++r) FinishRow(problem, rows, r, whole[r], sums);
}

// ---------------------------------------------------------------- a block

inline void Attend(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                   std::span<std::byte> memory) {
  Arena arena(memory);
  const Scratch scratch(arena, problem, block.row_count);
  if (IsNarrow(block)) return AttendNarrow(problem, block, sums, scratch);

  // Tiles of even width: a last tile of one vector would leave the multipliers waiting.
  const std::int64_t vectors = (block.row_count + kLanes - 1) / kLanes;
  const std::int64_t tiles = (vectors + kVectors - 1) / kVectors;
  TileRows rows[kTilesPerBlock];
  KeyRange any = {AttentionProblem::kOpen, 0};
  for (std::int64_t t = 0, first = 0; t < tiles; ++t) {
    const std::int64_t width = (vectors / tiles + (t < vectors % tiles ? 1 : 0)) * kLanes;
    const std::int64_t count = std::min(width, block.row_count - first);
    rows[t] = TileRows(problem, block, block.first_row + first, count, kLanes);
    first += count;
    if (rows[t].any.first < rows[t].any.last) {
      any = {std::min(any.first, rows[t].any.first), std::max(any.last, rows[t].any.last)};
    }
    LoadQueries(problem, rows[t], scratch.rows_in.data(), scratch.q.data() + t * problem.head_size * kTileRows);
    const TileState state = scratch.state(t);
    std::fill_n(state.m, kTileRows, -std::numeric_limits<float>::infinity());
    std::fill_n(state.l, kTileRows, 0.0F);
    std::fill_n(state.o, scratch.padded_value_size * kTileRows, 0.0F);
  }

  for (std::int64_t start = any.first / kChunk * kChunk; start < any.last; start += kChunk) {
    const KeyRange chunk = {std::max(start, any.first), std::min(start + kChunk, any.last)};
    const KeyRows keys = LoadKeys(problem, *block.sequence, block.kv_head, chunk, scratch.keys.data());
    PackValues(problem, block, chunk, scratch);
    for (std::int64_t t = 0; t < tiles; ++t) {
      AttendChunk(problem, rows[t], chunk, scratch.q.data() + t * problem.head_size * kTileRows, keys, scratch,
                  scratch.state(t));
    }
  }

  for (std::int64_t t = 0; t < tiles; ++t) {
    if (problem.sinks.defined()) AddSinks(problem, rows[t], scratch.state(t), scratch.padded_value_size);
    StoreRows(problem, rows[t], scratch.state(t), scratch, sums);
  }
}

inline std::size_t ScratchBytes(const ForwardProblem& problem, std::int64_t rows) {
  Arena counter;
  const Scratch sizes(counter, problem, rows);
  return counter.used();
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
