// Attention for one block of rows: the algorithm, top to bottom.
#if defined(RAPT_CPU_ATTEND_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ATTEND_INL_H
#undef RAPT_CPU_ATTEND_INL_H
#else
#define RAPT_CPU_ATTEND_INL_H
#endif

#include <cmath>
#include <limits>

#include "cpu/masked_scores-inl.h"
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
        s(arena.take<float>((kChunk + kBroadcasts) * kTileRows)),
        mask(arena.take<float>(problem.masks.empty() ? 0 : kChunk * kTileRows)),
        values(arena.take<float>(kPanel * padded_value_size / kBroadcasts)),
        keys(arena.take<float>(reads_in_place(problem.key) ? 0 : kChunk * problem.head_size)),
        rows_in(arena.take<float>(kLanes * RoundUp(std::max(problem.head_size, problem.value_size), 4))) {}

  TileState state(std::int64_t tile) const {
    return {m.data() + tile * kTileRows, l.data() + tile * kTileRows, o.data() + tile * padded_value_size * kTileRows};
  }

  std::int64_t tiles;
  std::int64_t padded_value_size;
  std::span<float> q;        // for each tile (D, kTileRows): scaled queries
  std::span<float> o, m, l;  // for each tile its state
  std::span<float> s;        // (kChunk, kTileRows): scores, then weights
  std::span<float> mask;     // (kChunk, kTileRows): a mask's part
  std::span<float> values;   // a chunk of v: for each group of kBroadcasts columns a panel (keys, kBroadcasts)
  std::span<float> keys;     // a chunk of k as f32, where it cannot be read in place
  std::span<float> rows_in;  // (kLanes, D or Dv): rows on their way into lanes, or out
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

// out = o / l, and lse = m + log l. A row that saw nothing has l = 0 and gives 0 and −inf.
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
      return d < size ? hn::Mul(Load(state.o + d * kTileRows + lane), factor) : hn::Zero(kF32);
    };
    for (std::int64_t d = 0; d < padded; d += 4) {
      StoreFourColumns(column(d), column(d + 1), column(d + 2), column(d + 3), to, d);
    }
    for (std::int64_t n = 0; n < count; ++n) {
      const auto row = static_cast<std::size_t>(lane + n);
      const std::int64_t b = rows.sequence->batch;
      if (!in_place) {
        StoreRow(to[n], size, out, row_offset(out, b, rows.head[row], rows.query(lane + n)), out.stride(3));
      }
      if (sums.wanted()) {
        const std::size_t place = sums.place(b, rows.head[row], rows.query(lane + n));
        sums.m[place] = state.m[lane + n];
        sums.l[place] = state.l[lane + n];
      }
      if (const TensorView& lse = problem.outputs.lse; lse.defined()) {
        const double sum = state.l[lane + n];
        const double value = sum == 0.0 ? -std::numeric_limits<double>::infinity() : state.m[lane + n] + std::log(sum);
        static_cast<float*>(lse.data())[row_offset(lse, b, rows.head[row], rows.query(lane + n))] =
            static_cast<float>(value);
      }
    }
  }
}

inline void Attend(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                   std::span<std::byte> memory) {
  Arena arena(memory);
  const Scratch scratch(arena, problem, block.row_count);

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
