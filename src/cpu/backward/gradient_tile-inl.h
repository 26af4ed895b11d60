// Backward for one tile of rows and some keys: from scores to the gradient of scores, rows in lanes as in forward.
#if defined(RAPT_CPU_GRADIENT_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_GRADIENT_TILE_INL_H
#undef RAPT_CPU_GRADIENT_TILE_INL_H
#else
#define RAPT_CPU_GRADIENT_TILE_INL_H
#endif

#include <cmath>

#include "core/selection.h"
#include "cpu/masked_scores-inl.h"
#include "cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// The scratch memory of one worker, carved from its part of the workspace.
struct GradientScratch {
  GradientScratch(Arena& arena, const BackwardProblem& problem, std::int64_t chunks)
      : most_keys(chunks * kChunk),
        key_stride(RoundUp(problem.head_size, kLanes)),
        value_stride(RoundUp(problem.value_size, kLanes)),
        q(arena.take<float>(problem.head_size * kTileRows)),
        dout(arena.take<float>(problem.value_size * kTileRows)),
        q_rows(arena.take<float>(kTileRows * key_stride)),
        dout_rows(arena.take<float>(kTileRows * value_stride)),
        s(arena.take<float>((kChunk + kMR) * kTileRows)),
        g(arena.take<float>((kChunk + kMR) * kTileRows)),
        arriving(arena.take<float>(problem.upstream.dweights.empty() ? 0 : kTile)),
        keep(arena.take<float>(problem.dropout.on ? kTile : 0)),
        slope(arena.take<float>(problem.softcap != 0.0 ? kTile : 0)),
        keys(arena.take<float>(most_keys * key_stride)),
        clean_keys(arena.take<float>(most_keys * key_stride)),
        values(arena.take<float>(reads_in_place(problem.value) ? 0 : most_keys * value_stride)),
        dkeys(arena.take<float>(most_keys * key_stride)),
        dvalues(arena.take<float>(most_keys * value_stride)),
        sums(arena.take<float>(problem.gradients.dmasks.empty() ? 0 : 3 * kTile)) {}

  static constexpr std::int64_t kTile = kChunk * kTileRows;

  std::int64_t most_keys;  // processed at once
  std::int64_t key_stride, value_stride;
  std::span<float> q, dout;  // (D, kTileRows), scaled, and (Dv, kTileRows)
  std::span<float> q_rows,
      dout_rows;       // (kTileRows, key_stride) and (kTileRows, value_stride): one row for each lane, after CleanRows
  std::span<float> s;  // (kChunk, kTileRows): scores, then weights
  std::span<float> g;  // (kChunk, kTileRows): the gradient of weights, then of scores
  std::span<float> arriving;          // (kChunk, kTileRows): the upstream gradient of the weights
  std::span<float> keep;              // (kChunk, kTileRows): the factors of dropout, 0 or 1 / (1 − rate)
  std::span<float> slope;             // (kChunk, kTileRows): 1 − tanh², where there is a softcap
  std::span<float> keys, clean_keys;  // (most_keys, key_stride): k as it is, and with 0 in place of non-finite numbers
  std::span<float> values;            // (most_keys, value_stride): v as f32, if it cannot be read in place
  std::span<float> dkeys, dvalues;    // (most_keys, key_stride) and (most_keys, value_stride)
  std::span<float> sums;              // three of (kChunk, kTileRows): sums of a mask's gradient
};

// ---------------------------------------------------------------- loading

// Replaces non-finite numbers with 0 in q, k and dout, the factors of the products for dk, dq and dv. Where q or k is
// not finite, the factor beside it, the gradient of the score, is already NaN, or is 0 because the key is masked or the
// score is capped; in the second case 0 · NaN must not leak. What dv then lacks, AddNotFinite adds.
HWY_INLINE Vec CleanVec(Vec x) { return hn::IfThenElseZero(hn::IsFinite(x), x); }

inline void LoadPaddedRow(const ConstTensorView& view, std::int64_t offset, std::int64_t size, std::int64_t padded,
                          float* HWY_RESTRICT to) {
  LoadRow(view, offset, view.stride(3), size, to);
  std::fill(to + size, to + padded, 0.0F);
}

// A tile's rows of q or dout: row-major in `memory`, and transposed in `lanes`.
inline void LoadTileRows(const ConstTensorView& view, const TileRows& rows, std::int64_t size, std::int64_t padded,
                         float scale, float* HWY_RESTRICT memory, float* HWY_RESTRICT lanes) {
  for (std::int64_t v = 0; v < rows.vectors; ++v) {
    const float* from[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) {
      const std::int64_t lane = v * kLanes + n;
      const std::int64_t head = rows.head[static_cast<std::size_t>(lane)];
      float* row = memory + lane * padded;
      LoadPaddedRow(view, row_offset(view, rows.sequence->batch, head, rows.query(lane)), size, padded, row);
      from[n] = row;
    }
    IntoLanes(from, size, scale, lanes + v * kLanes);
  }
}

// Puts 0 in place of the non-finite numbers in a tile's rows; returns whether all were finite.
HWY_INLINE bool CleanRows(const TileRows& rows, std::int64_t stride, float* memory) {
  const std::int64_t count = rows.count * stride;
  Vec check = hn::Zero(kF32);
  for (std::int64_t n = 0; n < count; n += kLanes) check = NotFinite(Load(memory + n), check);
  if (AllFinite(check)) return true;
  for (std::int64_t n = 0; n < count; n += kLanes) Store(CleanVec(Load(memory + n)), memory + n);
  return false;
}

// Loads a tile's rows of q and dout. Returns whether these rows of dout are finite.
inline bool LoadTile(const BackwardProblem& problem, const TileRows& rows, const GradientScratch& scratch) {
  LoadTileRows(problem.query, rows, problem.head_size, scratch.key_stride, static_cast<float>(problem.scale),
               scratch.q_rows.data(), scratch.q.data());
  CleanRows(rows, scratch.key_stride, scratch.q_rows.data());
  if (!problem.upstream.dout.defined()) return true;
  LoadTileRows(problem.upstream.dout, rows, problem.value_size, scratch.value_stride, 1.0F, scratch.dout_rows.data(),
               scratch.dout.data());
  return CleanRows(rows, scratch.value_stride, scratch.dout_rows.data());
}

// The keys and values of one or more consecutive chunks, in f32.
struct ChunkRows {
  KeyRows keys, values;
  const float* clean_keys = nullptr;  // key_stride apart
};

inline ChunkRows LoadChunks(const BackwardProblem& problem, const SequenceSpan& sequence, std::int64_t kv_head,
                            KeyRange range, const GradientScratch& scratch) {
  const KvRows key_rows = KvRows::keys(problem, sequence, kv_head);
  const KvRows value_rows = KvRows::values(problem, sequence, kv_head);
  const std::int64_t stride = scratch.key_stride;
  ChunkRows rows;
  Vec unclean = hn::Zero(kF32);
  for (std::int64_t j = range.first; j < range.last; ++j) {
    float* row = scratch.keys.data() + (j - range.first) * stride;
    LoadPaddedRow(problem.key, key_rows.offset(j), problem.head_size, stride, row);
    for (std::int64_t d = 0; d < stride; d += kLanes) {
      unclean = hn::IfThenElse(hn::IsFinite(Load(row + d)), unclean, Set(1.0F));
    }
  }
  rows.keys.data = rows.clean_keys = scratch.keys.data();
  rows.keys.stride = stride, rows.keys.first = range.first;
  if (!hn::AllTrue(kF32, hn::Eq(unclean, hn::Zero(kF32)))) {
    for (std::int64_t n = 0; n < (range.last - range.first) * stride; n += kLanes) {
      Store(CleanVec(Load(scratch.keys.data() + n)), scratch.clean_keys.data() + n);
    }
    rows.clean_keys = scratch.clean_keys.data();
  }
  rows.values.first = range.first;
  if (reads_in_place(problem.value)) {
    rows.values.data = static_cast<const float*>(problem.value.data()) + value_rows.offset(range.first);
    rows.values.stride = problem.value.stride(2);
  } else {
    rows.values.data = scratch.values.data(), rows.values.stride = scratch.value_stride;
    for (std::int64_t j = range.first; j < range.last; ++j) {
      LoadRow(value_rows, j, problem.value_size, scratch.values.data() + (j - range.first) * scratch.value_stride);
    }
  }
  return rows;
}

// The statistics of a tile's rows.
struct TileStats {
  TileStats() = default;
  TileStats(const TileRows& rows, const BackwardState& state) {
    for (std::int64_t n = 0; n < rows.vectors * kLanes; ++n) {
      const std::size_t place =
          state.sums.place(rows.sequence->batch, rows.head[static_cast<std::size_t>(n)], rows.query(n));
      m[n] = state.sums.m[place];
      inverse[n] = state.sums.l[place];
      delta[n] = state.delta[place];
      finite = finite && std::isfinite(inverse[n]);
    }
  }

  HWY_ALIGN float m[TileRows::kMax];
  HWY_ALIGN float inverse[TileRows::kMax];  // 1 / l
  HWY_ALIGN float delta[TileRows::kMax];
  bool finite = true;       // every 1 / l is finite
  bool finite_dout = true;  // as returned by LoadTile
};

// ---------------------------------------------------------------- scores and the upstream gradient of weights

// dout · v for the keys that each vector of rows sees; arbitrary for others.
inline void RaggedProducts(const TileRows& rows, KeyRange range, const float* lanes, std::int64_t size,
                           const KeyRows& key_rows, float* to) {
  const Stretches keys(rows, range, kLanes);
  const std::int64_t last = rows.vectors - 1;
  HWY_ALIGN float unused[TileRows::kMax] = {};
  const auto multiply = [&](std::int64_t v0, std::int64_t v1, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    Scores(v1 - v0, lanes + v0 * kLanes, size, key_rows, {range.first + begin, range.first + end},
           to + begin * kTileRows + v0 * kLanes, unused + v0 * kLanes);
  };
  for (std::int64_t v = 0; v < last; ++v) multiply(0, v + 1, keys.begin[v], keys.begin[v + 1]);
  multiply(0, last + 1, keys.begin[last], keys.end[0]);
  for (std::int64_t v = 0; v < last; ++v) multiply(v + 1, last + 1, keys.end[v], keys.end[v + 1]);
}

// s: scores after step 5, −inf if a row does not see a key. g: dout · v, arbitrary for such keys.
inline TileKeys ScoreTile(const BackwardProblem& problem, const TileRows& rows, KeyRange range, const ChunkRows& chunk,
                          const GradientScratch& scratch) {
  const TileKeys keys = VisibleTileKeys(problem, rows, range);
  if (keys.range.first >= keys.range.last) return keys;
  const std::int64_t count = keys.range.last - keys.range.first;
  float* s = scratch.s.data();
  HWY_ALIGN float unused[TileRows::kMax] = {};
  if (problem.softcap == 0.0) {
    MaskedScores(problem, rows, keys, scratch.q.data(), chunk.keys, s, unused);
  } else {
    Scores(rows.vectors, scratch.q.data(), problem.head_size, chunk.keys, keys.range, s, unused);
    Softcap(problem.softcap, rows.vectors, count, s);
    const Vec inverse = Set(static_cast<float>(1.0 / problem.softcap));
    ForEachVector(rows.vectors, count, scratch.slope.data(), [&](Vec, std::int64_t key, std::int64_t lane) HWY_ATTR {
      const Vec tanh = hn::Mul(Load(s + key * kTileRows + lane), inverse);
      return hn::NegMulAdd(tanh, tanh, Set(1.0F));
    });
    ApplyMasks(problem, rows, keys, s);
  }
  float* g = scratch.g.data();
  if (!problem.upstream.dout.defined()) {
    std::fill_n(g, count * kTileRows, 0.0F);
  } else if (IsEdge(rows, keys.range)) {
    RaggedProducts(rows, keys.range, scratch.dout.data(), problem.value_size, chunk.values, g);
  } else {
    Scores(rows.vectors, scratch.dout.data(), problem.value_size, chunk.values, keys.range, g, unused);
  }
  return keys;
}

// Loads the upstream gradient of the weights of chosen heads and queries into `tile`.
inline void LoadChosenWeights(const WeightsGradient& gradient, const TileRows& rows, std::int64_t first,
                              std::int64_t count, float* HWY_RESTRICT tile) {
  const ConstTensorView& from = gradient.from;
  const bool mean = gradient.of.mean_over_heads;
  const std::int64_t stride = from.stride(from.rank() - 1);
  std::fill_n(tile, count * kTileRows, 0.0F);
  for (std::int64_t lane = 0; lane < rows.count; ++lane) {
    for_each_place(gradient.of.heads, rows.head[static_cast<std::size_t>(lane)], [&](std::int64_t head) {
      for_each_place(gradient.of.queries, rows.query(lane), [&](std::int64_t query) {
        const std::int64_t row = rows.sequence->batch * from.stride(0) + (mean ? 0 : head * from.stride(1)) +
                                 query * from.stride(mean ? 1 : 2) + (rows.sequence->key_begin + first) * stride;
        for (std::int64_t key = 0; key < count; ++key) {
          tile[key * kTileRows + lane] += static_cast<float>(load(from.data(), from.dtype(), row + key * stride));
        }
      });
    });
  }
}

// g += the upstream gradient of the weights of that stage.
inline void AddWeightsGradients(const BackwardProblem& problem, const TileRows& rows, Stage stage, KeyRange range,
                                const GradientScratch& scratch) {
  const std::int64_t count = range.last - range.first;
  const float* tile = scratch.arriving.data();
  for (const WeightsGradient& gradient : problem.upstream.dweights) {
    if (gradient.stage != stage) continue;
    const Selection& of = gradient.of;
    if (of.heads.empty() && of.queries.empty()) {
      const Dims all{problem.query.size(0), problem.query_heads, problem.query.size(2), problem.key_length};
      const ConstTensorView view = of.mean_over_heads ? gradient.from.unsqueeze(1).expand(all) : gradient.from;
      LoadMaskTile({Mask::Kind::add, view, 0.0}, rows, range.first, count, scratch.arriving.data());
    } else {
      LoadChosenWeights(gradient, rows, range.first, count, scratch.arriving.data());
    }
    const std::int64_t heads = of.mean_over_heads ? chosen_count(of.heads, problem.query_heads) : 1;
    const Vec share = Set(1.0F / static_cast<float>(heads));
    ForEachVector(rows.vectors, count, scratch.g.data(), [&](Vec g, std::int64_t key, std::int64_t lane) HWY_ATTR {
      return hn::MulAdd(Load(tile + key * kTileRows + lane), share, g);
    });
  }
}

// ---------------------------------------------------------------- softmax and its gradient

// x, but 0 where w is +0, even if x is NaN.
HWY_INLINE Vec ZeroWhereZero(Vec w, Vec x) {
  const U32 u32;  // Ne of floats is false for NaN on some machines
  return hn::IfThenElseZero(hn::RebindMask(kF32, hn::Ne(hn::BitCast(u32, w), hn::Zero(u32))), x);
}

// e^(s − m) · 1/l, and exactly 0 for masked keys, whatever the row's sum is. kFinite: 1/l is finite.
template <bool kFinite>
HWY_INLINE Vec WeightOf(Vec s, Vec m, Vec inverse) {
  const Vec e = Exp(hn::Sub(s, m));
  return kFinite ? hn::Mul(e, inverse) : ZeroWhereZero(e, hn::Mul(e, inverse));
}

// p · (g − delta), and exactly 0 where p is 0, even if g is NaN.
HWY_INLINE Vec ScoreGradient(Vec p, Vec g, Vec delta) { return ZeroWhereZero(p, hn::Mul(p, hn::Sub(g, delta))); }

// If there is only softmax between g and the scores: s becomes p, g becomes scale · p · (g − delta).
template <int kV, bool kFinite>
HWY_NOINLINE void SoftmaxGradient(std::int64_t count, const TileStats& stats, float scale, float* HWY_RESTRICT s,
                                  float* HWY_RESTRICT g) {
  const Vec factor = Set(scale);
  for (std::int64_t key = 0; key < count; ++key, s += kTileRows, g += kTileRows) {
    for (int v = 0; v < kV; ++v) {
      const std::int64_t lane = v * kLanes;
      const Vec p = WeightOf<kFinite>(Load(s + lane), Load(stats.m + lane), Load(stats.inverse + lane));
      Store(p, s + lane);
      Store(hn::Mul(factor, ScoreGradient(p, Load(g + lane), Load(stats.delta + lane))), g + lane);
    }
  }
}

// s becomes p, before dropout, and g the gradient of p.
inline void WeightsAndTheirGradient(const BackwardProblem& problem, const TileRows& rows, const TileKeys& keys,
                                    const TileStats& stats, const GradientScratch& scratch) {
  const std::int64_t first = keys.range.first;
  const std::int64_t count = keys.range.last - first;
  ForEachVector(rows.vectors, count, scratch.s.data(), [&](Vec s, std::int64_t, std::int64_t lane) HWY_ATTR {
    return WeightOf<false>(s, Load(stats.m + lane), Load(stats.inverse + lane));
  });
  AddWeightsGradients(problem, rows, Stage::dropped_weights, keys.range, scratch);
  if (problem.dropout.on) {
    const float* keep = scratch.keep.data();
    std::fill_n(scratch.keep.data(), count * kTileRows, static_cast<float>(problem.dropout.keep_scale));
    DropWeights(problem.dropout, rows, first, count, scratch.keep.data());
    ForEachVector(rows.vectors, count, scratch.g.data(), [&](Vec g, std::int64_t key, std::int64_t lane) HWY_ATTR {
      return hn::Mul(g, Load(keep + key * kTileRows + lane));
    });
  }
  AddWeightsGradients(problem, rows, Stage::weights, keys.range, scratch);
}

// Sets g to 0 where a score was filled, because a filled score has no gradient.
inline void DropFilled(const BackwardProblem& problem, const TileRows& rows, KeyRange range,
                       const GradientScratch& scratch) {
  for (const Mask& mask : problem.masks) {
    if (mask.kind != Mask::Kind::fill) continue;
    ChangeByMask(mask, rows, range.first, range.last - range.first, scratch.g.data(),
                 [](Vec g, Vec filled) HWY_ATTR { return hn::IfThenElseZero(hn::Eq(filled, hn::Zero(kF32)), g); });
  }
}

// Turns scores and dout · v into the weights after dropout, in s, and the gradient of the masked scores times `scale`,
// in g; with `uncap`, g is the gradient of the raw scores instead.
inline void TileGradient(const BackwardProblem& problem, const TileRows& rows, const TileKeys& keys,
                         const TileStats& stats, float scale, bool uncap, const GradientScratch& scratch) {
  const std::int64_t count = keys.range.last - keys.range.first;
  uncap = uncap && problem.softcap != 0.0;
  if (!problem.dropout.on && problem.upstream.dweights.empty() && !uncap) {
    float* s = scratch.s.data();
    float* g = scratch.g.data();
    WithVectors(rows.vectors, [&](auto count_of) {
      if (stats.finite) return SoftmaxGradient<count_of(), true>(count, stats, scale, s, g);
      SoftmaxGradient<count_of(), false>(count, stats, scale, s, g);
    });
    return DropFilled(problem, rows, keys.range, scratch);
  }
  WeightsAndTheirGradient(problem, rows, keys, stats, scratch);
  const Vec factor = Set(scale);
  const float* s = scratch.s.data();
  const float* slope = scratch.slope.data();
  ForEachVector(rows.vectors, count, scratch.g.data(), [&](Vec g, std::int64_t key, std::int64_t lane) HWY_ATTR {
    const std::int64_t place = key * kTileRows + lane;
    const Vec p = Load(s + place);
    const Vec ds = hn::Mul(factor, ScoreGradient(p, g, Load(stats.delta + lane)));
    if (!uncap) return ds;
    return hn::IfThenZeroElse(hn::Eq(p, hn::Zero(kF32)), hn::Mul(ds, Load(slope + place)));
  });
  DropFilled(problem, rows, keys.range, scratch);
  if (!problem.dropout.on) return;
  const float* keep = scratch.keep.data();
  ForEachVector(rows.vectors, count, scratch.s.data(), [&](Vec p, std::int64_t key, std::int64_t lane) HWY_ATTR {
    return hn::Mul(p, Load(keep + key * kTileRows + lane));
  });
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
