// The steps of backward, each for one work item: see BackwardKernels.
#if defined(RAPT_CPU_BACKWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_BACKWARD_INL_H
#undef RAPT_CPU_BACKWARD_INL_H
#else
#define RAPT_CPU_BACKWARD_INL_H
#endif

#include <cmath>

#include "cpu/backward/gradient_tile-inl.h"
#include "cpu/backward/ordered_dq.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

HWY_INLINE KeyRange ChunkRange(const SequenceSpan& sequence, std::int64_t chunk) {
  return {chunk * kChunk, std::min((chunk + 1) * kChunk, sequence.key_count)};
}

// ---------------------------------------------------------------- the statistics of each row

// The maximum m and the sum l of each row, as in forward.
inline void SumTile(const BackwardProblem& problem, const TileRows& rows, const GradientScratch& scratch, float* m,
                    float* l) {
  const std::int64_t kv_head = rows.head[0] / problem.group;
  HWY_ALIGN float max[TileRows::kMax];
  HWY_ALIGN float sum[TileRows::kMax];
  std::fill_n(m, TileRows::kMax, -std::numeric_limits<float>::infinity());
  std::fill_n(l, TileRows::kMax, 0.0F);
  const ChunkList chunks = rows.any.chunks();
  for (std::int64_t n = 0; n < chunks.count(); ++n) {
    const KeyRange range = rows.any.within_chunk(chunks[n]);
    const TileKeys keys = VisibleTileKeys(problem, rows, range);
    if (keys.range.first >= keys.range.last) continue;
    const KeyRows key_rows = LoadKeys(problem, *rows.sequence, kv_head, range, scratch.keys.data());
    MaskedScores(problem, rows, keys, scratch.q.data(), key_rows, scratch.s.data(), max);
    Weights(rows.vectors, keys.range.last - keys.range.first, max, scratch.s.data(), sum);
    for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
      MergeSums(m + lane, l + lane, Load(max + lane), Load(sum + lane));
    }
  }
  const ConstTensorView& sinks = problem.sinks;
  if (!sinks.defined()) return;
  const auto sink = static_cast<float>(load(sinks.data(), sinks.dtype(), rows.head[0] * sinks.stride(0)));
  const float weight = std::isinf(sink) && sink < 0.0F ? 0.0F : 1.0F;
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
    MergeSums(m + lane, l + lane, Set(sink), Set(weight));
  }
}

// Whether the caller's tensors give the statistics of each row: forward's lse and, unless dout is absent, forward's
// output. Upstream gradients of weights require that each row is summed again.
HWY_INLINE bool IsKnown(const BackwardProblem& problem) {
  return problem.upstream.lse.defined() && problem.upstream.dweights.empty() &&
         (problem.upstream.out.defined() || !problem.upstream.dout.defined());
}

// Up to this magnitude, the caller's lse of a row is used as m, with a sum of 1; p is then as exact as f32 scores are.
// Beyond it, lse may have lost its log term (in f32, −1e9 + log n is −1e9), so the row is summed again.
constexpr float kLargestLse = 16.0F;

// delta = dout · out, in one chain with d ascending, like dout · v. For a row that sees one key, without a sink or
// dropout, out is v, so the two products are equal, and the gradient of the score is exactly 0.
inline void DeltaFromOut(const BackwardProblem& problem, const TileRows& rows, const GradientScratch& scratch,
                         TileStats& stats) {
  const std::int64_t size = problem.value_size;
  const std::int64_t quads = size / 4 * 4;
  for (std::int64_t v = 0; v < rows.vectors; ++v) {
    const float* out[kLanes];
    const float* dout[kLanes];
    float* memory = scratch.dout_rows.data();
    FindRows(problem.upstream.out, rows, v, size, memory, out);
    FindRows(problem.upstream.dout, rows, v, size, memory + kLanes * scratch.value_stride, dout);
    Vec sum = hn::Zero(kF32);
    for (std::int64_t d = 0; d < quads; d += 4) {
      Vec a[4], b[4];
      LoadFourColumns(out, d, a[0], a[1], a[2], a[3]);
      LoadFourColumns(dout, d, b[0], b[1], b[2], b[3]);
      for (int n = 0; n < 4; ++n) sum = hn::MulAdd(a[n], b[n], sum);
    }
    for (std::int64_t d = quads; d < size; ++d) {
      HWY_ALIGN float a[kLanes];
      HWY_ALIGN float b[kLanes];
      for (std::int64_t n = 0; n < kLanes; ++n) a[n] = out[n][d], b[n] = dout[n][d];
      sum = hn::MulAdd(Load(a), Load(b), sum);
    }
    Store(sum, stats.delta + v * kLanes);
  }
}

// delta += Σ_j p_j g_j, keys ascending, each chunk a chain of its own.
inline void SumDelta(const BackwardProblem& problem, const TileRows& rows, const GradientScratch& scratch,
                     TileStats& stats) {
  const ChunkList chunks = rows.any.chunks();
  for (std::int64_t n = 0; n < chunks.count(); ++n) {
    const KeyRange range = rows.any.within_chunk(chunks[n]);
    const ChunkRows chunk_rows = LoadChunks(problem, *rows.sequence, rows.head[0] / problem.group, range, scratch);
    const TileKeys keys = ScoreTile(problem, rows, range, chunk_rows, scratch);
    if (keys.range.first >= keys.range.last) continue;
    WeightsAndTheirGradient(problem, rows, keys, stats, scratch);
    for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
      Vec sum = hn::Zero(kF32);
      for (std::int64_t key = 0; key < keys.range.last - keys.range.first; ++key) {
        const Vec p = Load(scratch.s.data() + key * kTileRows + lane);
        const Vec product = hn::Mul(p, Load(scratch.g.data() + key * kTileRows + lane));
        sum = hn::Add(sum, hn::IfThenZeroElse(hn::Eq(p, hn::Zero(kF32)), product));
      }
      Store(hn::Add(Load(stats.delta + lane), sum), stats.delta + lane);
    }
  }
}

// m, 1 / l and Σ_j p_j g_j of a tile's rows: from the caller's tensors, or recomputed from all keys.
inline void KnownRows(const BackwardProblem& problem, const TileRows& rows, const GradientScratch& scratch,
                      TileStats& stats) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  HWY_ALIGN float l[TileRows::kMax];
  bool summed[TileRows::kMax];
  bool any = false;
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; ++lane) {
    summed[lane] = true;
    if (IsKnown(problem)) {
      const ConstTensorView& lse = problem.upstream.lse;
      const std::int64_t head = rows.head[static_cast<std::size_t>(lane)];
      stats.m[lane] =
          static_cast<const float*>(lse.data())[row_offset(lse, rows.sequence->batch, head, rows.query(lane))];
      l[lane] = 1.0F;
      summed[lane] = !(std::abs(stats.m[lane]) <= kLargestLse) && stats.m[lane] != -kInfinity;
    }
    any = any || summed[lane];
    stats.delta[lane] = 0.0F;
  }
  if (any) {
    LoadTile(problem, rows, scratch);
    TileStats all;
    HWY_ALIGN float all_l[TileRows::kMax];
    SumTile(problem, rows, scratch, all.m, all_l);
    for (std::int64_t lane = 0; lane < rows.vectors * kLanes; ++lane) {
      if (summed[lane]) stats.m[lane] = all.m[lane], l[lane] = all_l[lane];
    }
  }
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; ++lane) {
    // A fully masked row has m = −inf, and a row with a NaN may have any m. An m that is not finite becomes 0, so that
    // e^(s − m) is 0 where s is −inf. The sum of a row with a NaN is NaN.
    const float m = stats.m[lane];
    stats.inverse[lane] = m == -kInfinity && !std::isnan(l[lane]) ? 0.0F
                          : std::isfinite(m)                      ? 1.0F / l[lane]
                                                                  : l[lane] * (m - m);
    if (!std::isfinite(m)) stats.m[lane] = 0.0F;
  }
  if (IsKnown(problem) && problem.upstream.dout.defined()) {
    DeltaFromOut(problem, rows, scratch, stats);
    // If dout is not finite and out is 0, as in a fully masked row, their product is NaN: such rows are recomputed.
    bool again = false;
    for (std::int64_t lane = 0; lane < rows.vectors * kLanes; ++lane) {
      if (!std::isfinite(stats.delta[lane])) summed[lane] = again = true;
    }
    if (again && !any) LoadTile(problem, rows, scratch);
    any = any || again;
  }
  if (!any || (!problem.upstream.dout.defined() && problem.upstream.dweights.empty())) return;
  TileStats all = stats;
  std::fill_n(all.delta, TileRows::kMax, 0.0F);
  SumDelta(problem, rows, scratch, all);
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; ++lane) {
    if (summed[lane]) stats.delta[lane] = all.delta[lane];
  }
}

inline void Prepare(const BackwardProblem& problem, const HeadRows& where, std::int64_t tile,
                    const BackwardState& state, std::span<std::byte> memory) {
  Arena arena(memory);
  const GradientScratch scratch(arena, problem, 1);
  const TileRows rows(problem, where, kLanes);
  const std::int64_t b = where.sequence->batch;
  if (state.dquery != nullptr) {
    for (std::int64_t lane = 0; lane < rows.count; ++lane) {
      std::fill_n(state.dquery + b * state.dquery_strides[0] + where.head * state.dquery_strides[1] +
                      rows.query(lane) * state.dquery_strides[2],
                  state.dquery_in_place ? problem.head_size : scratch.key_stride, 0.0F);
    }
    state.next_chunks[tile].store(0, std::memory_order_relaxed);
  }

  TileStats stats;
  KnownRows(problem, rows, scratch, stats);
  for (std::int64_t lane = 0; lane < rows.count; ++lane) {
    const ConstTensorView& dlse = problem.upstream.dlse;
    float delta = stats.delta[lane];
    if (dlse.defined()) {
      delta -= static_cast<const float*>(dlse.data())[row_offset(dlse, b, where.head, rows.query(lane))];
    }
    const std::size_t place = state.sums.place(b, where.head, rows.query(lane));
    state.sums.m[place] = stats.m[lane];
    state.sums.l[place] = stats.inverse[lane];
    state.delta[place] = delta;
  }
}

// ---------------------------------------------------------------- the products that sum over rows and keys

// to[r] += Σ_k a[r · kRowStep + k · kStep] · b[k], for `count` rows of `to` and kV vectors of columns: each sum is one
// chain, k ascending, that starts at 0 and is then added to `to`. A chain covers only a tile of rows or a chunk of
// keys, because the rounding error of a chain grows with its length. There is at least one step.
template <int kV, std::int64_t kRowStep, std::int64_t kStep>
HWY_NOINLINE void AddOuter(const float* HWY_RESTRICT a, KeyRange steps, const float* HWY_RESTRICT b,
                           std::int64_t b_stride, float* HWY_RESTRICT to, std::int64_t to_stride, std::int64_t count) {
  Columns<kV> sums[kMR];
  SetZero<kV>(sums);
  a += steps.first * kStep;
  b += steps.first * b_stride;
  // A loop that may be skipped, or a conditional choice of sums, would make compilers spill the sums to memory.
  std::int64_t k = steps.first;
  do {
    Columns<kV> columns;
    for (int v = 0; v < kV; ++v) columns[v] = Load(b + v * kLanes);
    for (int r = 0; r < kMR; ++r) {
      const Vec factor = Set(a[r * kRowStep]);
      for (int v = 0; v < kV; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
    a += kStep;
    b += b_stride;
  } while (++k < steps.last);

  if (count >= kMR) {
    for (int r = 0; r < kMR; ++r) {
      for (int v = 0; v < kV; ++v) {
        float* place = to + r * to_stride + v * kLanes;
        hn::StoreU(hn::Add(hn::LoadU(kF32, place), sums[r][v]), kF32, place);
      }
    }
    return;
  }
  constexpr std::int64_t kWidth = kV * kLanes;
  HWY_ALIGN float finished[static_cast<std::size_t>(kMR * kWidth)];
  for (int r = 0; r < kMR; ++r) {
    for (int v = 0; v < kV; ++v) Store(sums[r][v], finished + r * kWidth + v * kLanes);
  }
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t n = 0; n < kWidth; ++n) to[r * to_stride + n] += finished[r * kWidth + n];
  }
}

// Like AddOuter, but for all columns, in parts of nearly equal width.
template <std::int64_t kRowStep, std::int64_t kStep>
void AddOuterRows(const float* a, KeyRange steps, const float* b, std::int64_t b_stride, float* to,
                  std::int64_t to_stride, std::int64_t count) {
  const std::int64_t vectors = b_stride / kLanes;
  const std::int64_t pieces = (vectors + kNR - 1) / kNR;
  for (std::int64_t piece = 0, first = 0; piece < pieces; ++piece) {
    const std::int64_t width = vectors / pieces + (piece < vectors % pieces ? 1 : 0);
    WithVectors(width, [&](auto count_of) {
      AddOuter<count_of(), kRowStep, kStep>(a, steps, b + first, b_stride, to + first, to_stride, count);
    });
    first += width * kLanes;
  }
}

// to[j] += Σ over rows of w[j][row] · b[row], for keys [range): dk and dv. Rows that see none of kMR adjacent keys are
// skipped for these.
inline void AddToKeys(const TileRows& rows, KeyRange range, const float* w, const float* b, std::int64_t stride,
                      float* to) {
  const std::int64_t count = range.last - range.first;
  SeeingRows seeing(rows);
  for (std::int64_t j = 0; j < count; j += kMR) {
    const std::int64_t keys = std::min(kMR, count - j);
    const KeyRange some = seeing({range.first + j, range.first + j + keys});
    if (some.first >= some.last) continue;
    AddOuterRows<kTileRows, 1>(w + j * kTileRows, some, b, stride, to + j * stride, stride, keys);
  }
}

// Adds what AddToKeys omits from dv because it uses dout with 0 in place of non-finite numbers: w · dout for rows with
// a nonzero weight. Multiplied by a weight of 0, a non-finite dout would put NaN into keys that the row does not see.
HWY_NOINLINE inline void AddNotFinite(const TileRows& rows, KeyRange range, const GradientScratch& scratch,
                                      std::int64_t size, float* to) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t d = 0; d < size; ++d) {
      const float x = scratch.dout[static_cast<std::size_t>(d * kTileRows + row)];
      if (std::isfinite(x)) continue;
      for (std::int64_t j = 0; j < range.last - range.first; ++j) {
        const float w = scratch.s[static_cast<std::size_t>(j * kTileRows + row)];
        if (w != 0.0F) to[j * scratch.value_stride + d] += w * x;
      }
    }
  }
}

// to[row] += Σ over keys of w[j][row] · b[j]: dq. b begins with the first key of `range`.
inline void AddToQueries(const TileRows& rows, KeyRange range, const float* w, const float* b, std::int64_t stride,
                         float* to, std::int64_t to_stride) {
  for (std::int64_t r = 0; r < rows.count; r += kMR) {
    const std::int64_t count = std::min(kMR, rows.count - r);
    const KeyRange seen = rows.seen_by(r, r + count - 1, range);
    if (seen.first >= seen.last) continue;
    AddOuterRows<1, kTileRows>(w + r, {seen.first - range.first, seen.last - range.first}, b, stride,
                               to + r * to_stride, to_stride, count);
  }
}

// ---------------------------------------------------------------- dk, dv and dq

// Processes one loaded tile against one chunk of keys. `part` says where the chunk's part of dq is added; its
// next_chunk is null if dq is not requested.
inline void DifferentiateTile(const BackwardProblem& problem, const TileRows& rows, KeyRange range,
                              const ChunkRows& chunks, const TileStats& stats, const DqPart& part, PendingDq& pending,
                              const GradientScratch& scratch) {
  const TileKeys keys = ScoreTile(problem, rows, range, chunks, scratch);
  const bool sees = keys.range.first < keys.range.last;
  const std::int64_t begin = keys.range.first - chunks.keys.first;
  if (sees) {
    TileGradient(problem, rows, keys, stats, static_cast<float>(problem.scale), true, scratch);
    if (problem.gradients.dvalue.defined() && problem.upstream.dout.defined()) {
      float* dvalues = scratch.dvalues.data() + begin * scratch.value_stride;
      AddToKeys(rows, keys.range, scratch.s.data(), scratch.dout_rows.data(), scratch.value_stride, dvalues);
      if (!stats.finite_dout) AddNotFinite(rows, keys.range, scratch, problem.value_size, dvalues);
    }
    if (problem.gradients.dkey.defined()) {
      AddToKeys(rows, keys.range, scratch.g.data(), scratch.q_rows.data(), scratch.key_stride,
                scratch.dkeys.data() + begin * scratch.key_stride);
    }
  }
  if (part.next_chunk == nullptr) return;
  pending.add(part, [&](float* to, std::int64_t stride) HWY_ATTR {
    if (!sees) return;
    AddToQueries(rows, keys.range, scratch.g.data(), chunks.clean_keys + begin * scratch.key_stride, scratch.key_stride,
                 to, stride);
  });
}

inline void StoreKeys(const TensorView& to, const SequenceSpan& sequence, std::int64_t kv_head, KeyRange range,
                      const float* from, std::int64_t stride) {
  if (!to.defined()) return;
  for (std::int64_t j = range.first; j < range.last; ++j) {
    StoreRow(from + (j - range.first) * stride, to.size(3), to,
             row_offset(to, sequence.batch, kv_head, sequence.key_begin + j), to.stride(3));
  }
}

inline void Differentiate(const BackwardProblem& problem, const KeyBlock& block, const BackwardState& state,
                          PendingDq& pending, std::span<std::byte> memory) {
  Arena arena(memory);
  const GradientScratch scratch(arena, problem, block.chunks.last - block.chunks.first);
  const SequenceSpan& sequence = *block.sequence;
  const KeyRange range = {ChunkRange(sequence, block.chunks.first).first,
                          ChunkRange(sequence, block.chunks.last - 1).last};
  const ChunkRows chunks = LoadChunks(problem, sequence, block.kv_head, range, scratch);
  std::fill_n(scratch.dkeys.begin(), (range.last - range.first) * scratch.key_stride, 0.0F);
  std::fill_n(scratch.dvalues.begin(), (range.last - range.first) * scratch.value_stride, 0.0F);

  const HeadTiles tiles(sequence.query_count, kTileRows, kLanes);
  const std::int64_t heads = problem.query_heads > 0 ? problem.group : 0;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
      const HeadRows where = tiles(sequence, block.kv_head * problem.group + head, tile);
      const ChunkList seen = chunks_of(problem, where);
      std::int64_t next = block.chunks.first;
      while (next < block.chunks.last && !seen.contains(next)) ++next;
      if (next == block.chunks.last) continue;
      const TileRows rows(problem, where, kLanes);
      TileStats stats(rows, state);
      stats.finite_dout = LoadTile(problem, rows, scratch);
      DqPart part{.stride = state.dquery_strides[2], .rows = rows.count};
      if (state.dquery != nullptr) {
        part.next_chunk = state.next_chunks + block.first_tile + head * tiles.count + tile;
        part.to = state.dquery + sequence.batch * state.dquery_strides[0] + where.head * state.dquery_strides[1] +
                  rows.query(0) * state.dquery_strides[2];
      }
      for (; next < block.chunks.last && seen.contains(next); ++next) {
        part.chunk = seen.place_of(next);
        DifferentiateTile(problem, rows, ChunkRange(sequence, next), chunks, stats, part, pending, scratch);
      }
    }
  }
  StoreKeys(problem.gradients.dkey, sequence, block.kv_head, range, scratch.dkeys.data(), scratch.key_stride);
  StoreKeys(problem.gradients.dvalue, sequence, block.kv_head, range, scratch.dvalues.data(), scratch.value_stride);
}

// Stores dq from the workspace in its tensor, rounded once.
inline void StoreQueries(const BackwardProblem& problem, const HeadRows& where, const BackwardState& state) {
  const TensorView& to = problem.gradients.dquery;
  const std::int64_t b = where.sequence->batch;
  for (std::int64_t n = 0; n < where.count; ++n) {
    const std::int64_t query = where.sequence->query_begin + where.first + n;
    StoreRow(state.dquery + b * state.dquery_strides[0] + where.head * state.dquery_strides[1] +
                 query * state.dquery_strides[2],
             problem.head_size, to, row_offset(to, b, where.head, query), to.stride(3));
  }
}

// ---------------------------------------------------------------- the gradient of a mask

// Sums over b, over h within b, and over i within h, each started at 0 and added in ascending order, so the result of a
// batch is the sum of the results of its rows.
class MaskSums {
 public:
  MaskSums(const BackwardProblem& problem, const MaskBlock& block, const BackwardState& state,
           const GradientScratch& scratch)
      : problem_(problem),
        block_(block),
        state_(state),
        scratch_(scratch),
        to_(problem.gradients.dmasks[block.gradient].to),
        one_query_(to_.size(to_.rank() - 2) == 1),
        one_key_(to_.size(to_.rank() - 1) == 1) {
    for (const SequenceSpan& sequence : block.sequences) key_count_ = std::max(key_count_, sequence.key_count);
  }

  void run() const {
    if (one_key_) return sum({0, (key_count_ + kChunk - 1) / kChunk});
    for (std::int64_t chunk = block_.chunks.first; chunk < block_.chunks.last; ++chunk) sum({chunk, chunk + 1});
  }

 private:
  // The sum of what these chunks contribute to one part of the gradient: (keys, kTileRows), of which only the first key
  // is used if keys are summed over, and only the first lane if queries are.
  void sum(KeyRange chunks) const {
    const KeyRange range = {chunks.first * kChunk, std::min(chunks.last * kChunk, key_count_)};
    const std::int64_t keys = one_key_ ? 1 : range.last - range.first;
    if (range.first >= range.last) return;
    float* total = scratch_.sums.data();
    float* of_batch = total + GradientScratch::kTile;
    float* of_head = of_batch + GradientScratch::kTile;
    const auto clear = [&](float* sums) { std::fill_n(sums, keys * kTileRows, 0.0F); };
    const auto add = [&](const float* from, float* sums) {
      for (std::int64_t n = 0; n < keys * kTileRows; ++n) sums[n] += from[n];
    };
    clear(total);
    for (const SequenceSpan& sequence : block_.sequences) {
      clear(of_batch);
      for (std::int64_t head = block_.first_head; head < block_.first_head + block_.head_count; ++head) {
        clear(of_head);
        const std::int64_t last = std::min(sequence.query_count, block_.first_query + block_.query_count);
        for (std::int64_t first = block_.first_query; first < last; first += kTileRows) {
          sum_tile({&sequence, head, first, std::min(kTileRows, last - first)}, chunks, of_head);
        }
        add(of_head, of_batch);
      }
      add(of_batch, total);
    }
    store(range, keys, total);
  }

  void sum_tile(const HeadRows& where, KeyRange chunks, float* sums) const {
    const TileRows rows(problem_, where, kLanes);
    const TileStats stats(rows, state_);
    LoadTile(problem_, rows, scratch_);
    HWY_ALIGN float of_rows[TileRows::kMax] = {};
    for (std::int64_t number = chunks.first; number < chunks.last; ++number) {
      const KeyRange range = ChunkRange(*where.sequence, number);
      if (range.first >= range.last) break;
      const ChunkRows chunk = LoadChunks(problem_, *where.sequence, where.head / problem_.group, range, scratch_);
      const TileKeys keys = ScoreTile(problem_, rows, range, chunk, scratch_);
      if (keys.range.first >= keys.range.last) continue;
      TileGradient(problem_, rows, keys, stats, 1.0F, false, scratch_);
      const std::int64_t count = keys.range.last - keys.range.first;
      const std::int64_t begin = keys.range.first - range.first;
      const float* g = scratch_.g.data();
      for (std::int64_t key = 0; key < count; ++key, g += kTileRows) {
        if (one_key_) {
          for (std::int64_t lane = 0; lane < rows.count; ++lane) of_rows[lane] += g[lane];
        } else if (one_query_) {
          for (std::int64_t lane = 0; lane < rows.count; ++lane) sums[(begin + key) * kTileRows] += g[lane];
        } else {
          std::copy_n(g, rows.count, sums + (begin + key) * kTileRows);
        }
      }
    }
    for (std::int64_t lane = 0; one_key_ && lane < rows.count; ++lane) sums[one_query_ ? 0 : lane] += of_rows[lane];
  }

  void store(KeyRange range, std::int64_t keys, const float* sums) const {
    const SequenceSpan& sequence = block_.sequences.front();
    const int rank = to_.rank();
    const auto at = [&](int dim, std::int64_t index) {  // dim 1 is the last dimension
      return dim > rank || to_.size(rank - dim) == 1 ? 0 : index * to_.stride(rank - dim);
    };
    const std::int64_t rows = one_query_ ? 1 : std::min(block_.query_count, sequence.query_count - block_.first_query);
    float* row = scratch_.g.data();
    for (std::int64_t lane = 0; lane < rows; ++lane) {
      for (std::int64_t key = 0; key < keys; ++key) row[key] = sums[key * kTileRows + lane];
      StoreRow(row, keys, to_,
               at(4, sequence.batch) + at(3, block_.first_head) +
                   at(2, sequence.query_begin + block_.first_query + lane) + at(1, sequence.key_begin + range.first),
               to_.stride(rank - 1));
    }
  }

  const BackwardProblem& problem_;
  const MaskBlock& block_;
  const BackwardState& state_;
  const GradientScratch& scratch_;
  const TensorView& to_;
  bool one_query_, one_key_;
  std::int64_t key_count_ = 0;
};

inline void DifferentiateMask(const BackwardProblem& problem, const MaskBlock& block, const BackwardState& state,
                              std::span<std::byte> memory) {
  Arena arena(memory);
  const GradientScratch scratch(arena, problem, 1);
  MaskSums(problem, block, state, scratch).run();
}

inline std::size_t GradientScratchBytes(const BackwardProblem& problem, std::int64_t chunks) {
  Arena counter;
  const GradientScratch sizes(counter, problem, chunks);
  return counter.used();
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
