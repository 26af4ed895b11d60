// Attention for some queries and all heads, with the mean of their weights over heads. The weights that the output
// needs anyway are kept until their row's sum is known, instead of being recomputed as in capture-inl.h. The bits are
// the same.
#if defined(RAPT_CPU_ATTEND_MEANS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ATTEND_MEANS_INL_H
#undef RAPT_CPU_ATTEND_MEANS_INL_H
#else
#define RAPT_CPU_ATTEND_MEANS_INL_H
#endif

#include "cpu/forward/attend-inl.h"
#include "cpu/forward/capture-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// The weights of the current head, and the mean over the heads so far, for each tile of a block.
struct KeptWeights {
  KeptWeights(Arena& arena, const ForwardProblem& problem, std::int64_t queries)
      : tiles((queries + kTileRows - 1) / kTileRows),
        chunks((MostKeys(problem) + kChunk - 1) / kChunk),
        weights(arena.take<TileWeights>(tiles * chunks)),
        max(arena.take<float>(tiles * chunks * kTileRows)),
        p(arena.take<float>(tiles * floats())),
        means(arena.take<float>(tiles * floats())) {}

  TileWeights& of(std::int64_t tile, std::int64_t chunk) const {
    return weights[static_cast<std::size_t>(tile * chunks + chunk)];
  }
  float* mean(std::int64_t tile, std::int64_t key) const { return means.data() + tile * floats() + key * kTileRows; }

  void clear() const {
    for (std::int64_t t = 0; t < tiles; ++t) {
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        // The last scores of a chunk are written in whole register tiles. The excess is in the memory of the next
        // chunk, which is written later.
        of(t, chunk) = {.p = p.data() + t * floats() + chunk * kChunk * kTileRows,
                        .max = max.data() + (t * chunks + chunk) * kTileRows};
      }
    }
    std::fill(means.begin(), means.end(), 0.0F);
  }

  std::int64_t tiles, chunks;
  std::span<TileWeights> weights;  // (tiles, chunks)
  std::span<float> max;            // (tiles, chunks, kTileRows)
  std::span<float> p, means;       // for each tile (keys, kTileRows)

 private:
  std::int64_t floats() const { return (chunks * kChunk + kMR) * kTileRows; }

  static std::int64_t MostKeys(const ForwardProblem& problem) {
    std::int64_t most = 0;
    for (const SequenceSpan& sequence : problem.sequences) most = std::max(most, sequence.key_count);
    return most;
  }
};

// mean += (p · factor) · share. The same as in Emit, except that weights are non-negative, so the sum needs no lower
// bound.
template <int kV>
HWY_NOINLINE void AddToMean(std::int64_t count, const float* HWY_RESTRICT p, const float* factor, float share,
                            float* HWY_RESTRICT mean) {
  Columns<kV> factors;
  for (int v = 0; v < kV; ++v) factors[v] = Load(factor + v * kLanes);
  const Vec part = Set(share);
  for (std::int64_t key = 0; key < count; ++key, p += kTileRows, mean += kTileRows) {
    for (int v = 0; v < kV; ++v) {
      const Vec weight = hn::Mul(Load(p + v * kLanes), factors[v]);
      Store(hn::MulAdd(weight, part, Load(mean + v * kLanes)), mean + v * kLanes);
    }
  }
}

// A row with a NaN or +inf score is NaN at every key, including those that it does not see.
inline void SpoilMean(const TileRows& rows, const float* l, std::int64_t count, float* mean) {
  bool spoilt = false;
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
    spoilt = spoilt || !hn::AllFalse(kF32, hn::IsNaN(Load(l + lane)));
  }
  if (!spoilt) return;
  ForEachVector(rows.vectors, count, mean, [&](Vec sum, std::int64_t, std::int64_t lane) HWY_ATTR {
    const Vec sum_of_row = Load(l + lane);
    return hn::IfThenElse(hn::IsNaN(sum_of_row), sum_of_row, sum);
  });
}

// Adds the weights of the current head, whose sums are now known, to the mean of a tile.
inline void AddHead(const TileRows& rows, const TileState& state, std::int64_t tile, float share,
                    const KeptWeights& kept) {
  const ChunkList chunks = rows.any.chunks();
  for (std::int64_t n = 0; n < chunks.count(); ++n) {
    const TileWeights& weights = kept.of(tile, chunks[n]);
    if (weights.keys.first >= weights.keys.last) continue;
    HWY_ALIGN float factor[TileRows::kMax];
    for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
      Store(WeightFactor(Load(weights.max + lane), Load(state.m + lane), Load(state.l + lane)), factor + lane);
    }
    WithVectors(rows.vectors, [&](auto count_of) {
      AddToMean<count_of()>(weights.keys.last - weights.keys.first, weights.p, factor, share,
                            kept.mean(tile, weights.keys.first));
    });
  }
  SpoilMean(rows, state.l, rows.sequence->key_count, kept.mean(tile, 0));
}

inline void WriteMean(const Capture& capture, const TileRows& rows, const float* mean, float* memory) {
  const CaptureRows to(capture, rows);
  const std::int64_t keys = rows.sequence->key_count;
  for (std::int64_t start = 0; start < keys; start += kChunk) {
    to.write(0, {start, std::min(start + kChunk, keys)}, mean + start * kTileRows, memory);
  }
  to.write_absent(0);
}

inline void AttendMeans(const ForwardProblem& problem, const QueryBlock& block, std::span<std::byte> memory) {
  const auto queries = static_cast<std::int64_t>(block.queries.size());
  Arena arena(memory);
  const Scratch scratch(arena, problem, queries);
  const KeptWeights kept(arena, problem, queries);
  const std::span<float> rows_out = arena.take<float>(kLanes * kChunk);
  const Capture& capture = problem.outputs.captures[0];
  const float share = 1.0F / static_cast<float>(chosen_count(capture.of.heads, problem.query_heads));
  kept.clear();

  for (std::int64_t head = 0; head < problem.query_heads; ++head) {
    const Tiles tiles(problem, block, head, scratch);
    const RowBlock rows{block.sequence, head / problem.group};
    for (std::int64_t t = 0; t < tiles.count; ++t) scratch.clear(t);
    const ChunkList chunks = tiles.any.chunks();
    for (std::int64_t n = 0; n < chunks.count(); ++n) {
      AttendTiles(problem, rows, tiles, chunks[n], scratch,
                  [&](std::int64_t t) -> TileWeights& { return kept.of(t, chunks[n]); });
    }
    StoreTiles(problem, tiles, scratch, {});
    for_each_place(capture.of.heads, head, [&](std::int64_t) {
      for (std::int64_t t = 0; t < tiles.count; ++t) AddHead(tiles.rows[t], scratch.state(t), t, share, kept);
    });
    if (head + 1 < problem.query_heads) continue;
    for (std::int64_t t = 0; t < tiles.count; ++t) {
      WriteMean(capture, tiles.rows[t], kept.mean(t, 0), rows_out.data());
    }
  }
}

inline std::size_t MeansScratchBytes(const ForwardProblem& problem, std::int64_t queries) {
  Arena counter;
  const Scratch sizes(counter, problem, queries);
  const KeptWeights kept(counter, problem, queries);
  counter.take<float>(kLanes * kChunk);
  return counter.used();
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
