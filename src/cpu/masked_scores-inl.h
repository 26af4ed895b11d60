// From tensors to the masked scores of one tile: loading q and k, and steps 1 to 5 in order.
#if defined(RAPT_CPU_MASKED_SCORES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_MASKED_SCORES_INL_H
#undef RAPT_CPU_MASKED_SCORES_INL_H
#else
#define RAPT_CPU_MASKED_SCORES_INL_H
#endif

#include "cpu/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// The rows of a tensor that belong to the lanes of vector v of a tile, as f32: in place if possible, otherwise in
// `memory`, RoundUp(size, 4) apart.
inline void FindRows(const ConstTensorView& view, const TileRows& rows, std::int64_t v, std::int64_t size,
                     float* memory, const float* (&found)[kLanes]) {
  for (std::int64_t n = 0; n < kLanes; ++n) {
    const std::int64_t lane = v * kLanes + n;
    const std::int64_t head = rows.head[static_cast<std::size_t>(lane)];
    const std::int64_t offset = row_offset(view, rows.sequence->batch, head, rows.query(lane));
    if (reads_in_place(view)) {
      found[n] = static_cast<const float*>(view.data()) + offset;
    } else {
      float* row = memory + n * RoundUp(size, 4);
      LoadRow(view, offset, view.stride(3), size, row);
      found[n] = row;
    }
  }
}

// Rows of numbers times `scale`, transposed: row r in lane r, (size, kTileRows).
HWY_INLINE void IntoLanes(const float* const (&from)[kLanes], std::int64_t size, float scale, float* HWY_RESTRICT to) {
  const Vec factor = Set(scale);
  std::int64_t d = LoadColumns(
      from, size, [&](std::int64_t n, Vec column) HWY_ATTR { Store(hn::Mul(column, factor), to + n * kTileRows); });
  for (; d < size; ++d) {
    for (std::int64_t n = 0; n < kLanes; ++n) to[d * kTileRows + n] = from[n][d] * scale;
  }
}

// Rows of q times scale, transposed into lanes: (D, kTileRows).
inline void LoadQueries(const AttentionProblem& problem, const TileRows& rows, float* row_memory,
                        float* HWY_RESTRICT q) {
  for (std::int64_t v = 0; v < rows.vectors; ++v) {
    const float* from[kLanes];
    FindRows(problem.query, rows, v, problem.head_size, row_memory, from);
    IntoLanes(from, problem.head_size, static_cast<float>(problem.scale), q + v * kLanes);
  }
}

// Keys [range) of a chunk as rows of f32, in place if possible.
inline KeyRows LoadKeys(const AttentionProblem& problem, const SequenceSpan& sequence, std::int64_t kv_head,
                        KeyRange range, float* memory) {
  const KvRows rows = KvRows::keys(problem, sequence, kv_head);
  KeyRows keys;
  if (!reads_in_place(rows.view())) {
    for (std::int64_t j = range.first; j < range.last; ++j) {
      LoadRow(rows, j, problem.head_size, memory + (j - range.first) * problem.head_size);
    }
    keys.data = memory, keys.stride = problem.head_size, keys.first = range.first;
    return keys;
  }
  const auto row = [&](std::int64_t j) { return static_cast<const float*>(rows.view().data()) + rows.offset(j); };
  keys.data = row(range.first), keys.stride = rows.view().stride(2), keys.first = range.first;
  const std::int64_t count = range.last - range.first;
  if (rows.run(range.first, count) == count) return keys;
  keys.page_shift = rows.page_shift();
  keys.first = range.first >> keys.page_shift << keys.page_shift;
  const std::int64_t pages = ((range.last - 1 - keys.first) >> keys.page_shift) + 1;
  for (std::int64_t n = 0; n < pages; ++n) keys.pages[n] = row(keys.first + (n << keys.page_shift));
  return keys;
}

// The keys of a chunk that at least one row of a tile sees.
struct TileKeys {
  KeyRange range;
  bool masked = false;  // a keep or drop mask hides some of them
};

inline TileKeys VisibleTileKeys(const AttentionProblem& problem, const TileRows& rows, KeyRange chunk) {
  TileKeys keys = {rows.any.within(chunk), false};
  for (const Mask& mask : problem.masks) {
    if (mask.kind != Mask::Kind::keep && mask.kind != Mask::Kind::drop) continue;
    if (keys.range.first >= keys.range.last) break;
    const MaskedSpan span = VisibleSpan(mask, rows, keys.range);
    keys = {span.range, keys.masked || !span.full};
  }
  return keys;
}

// Whether the causal mask, the window or the key length hides some of these keys from some row.
HWY_INLINE bool IsEdge(const TileRows& rows, KeyRange range) { return !rows.all_see(range); }

// Steps 3 to 5: add, fill, hide.
inline void ApplyMasks(const AttentionProblem& problem, const TileRows& rows, const TileKeys& keys, float* s) {
  const std::int64_t first = keys.range.first;
  const std::int64_t count = keys.range.last - first;
  const auto apply = [&](Mask::Kind kind) {
    for (const Mask& mask : problem.masks) {
      if (mask.kind == kind) ApplyMask(mask, rows, first, count, s);
    }
  };
  apply(Mask::Kind::add);
  if (!problem.alibi_slopes.empty()) AddAlibi(problem, rows, first, count, s);
  apply(Mask::Kind::fill);
  if (keys.masked) {
    apply(Mask::Kind::keep);
    apply(Mask::Kind::drop);
  }
  if (IsEdge(rows, keys.range)) HideOutside(rows, first, count, s);
}

// Scores when only a causal mask, a window or key lengths hide keys: keys that every row sees need no masking, and a
// vector of rows is skipped for keys that none of its rows sees.
inline void RaggedScores(const TileRows& rows, KeyRange range, const float* q, std::int64_t head_size,
                         const KeyRows& key_rows, float* s, float* max) {
  const Stretches keys(rows, range, kLanes);
  const std::int64_t last = rows.vectors - 1;
  HWY_ALIGN float unused[TileRows::kMax] = {};
  const auto score = [&](std::int64_t v0, std::int64_t v1, std::int64_t begin, std::int64_t end, float* largest) {
    if (begin >= end) return;
    Scores(v1 - v0, q + v0 * kLanes, head_size, key_rows, {range.first + begin, range.first + end},
           s + begin * kTileRows + v0 * kLanes, largest + v0 * kLanes);
  };
  // The range that all rows see, rounded down to whole register tiles, because a partial tile costs as much as a whole
  // one.
  const std::int64_t begin = std::clamp(rows.all.first - range.first, keys.begin[last], keys.end[0]);
  const std::int64_t seen = std::min(rows.all.last - range.first, keys.end[0]) - begin;
  const std::int64_t end = begin + (seen > 0 ? seen / kMR * kMR : 0);

  for (std::int64_t v = 0; v < last; ++v) score(0, v + 1, keys.begin[v], keys.begin[v + 1], unused);
  score(0, last + 1, keys.begin[last], begin, unused);
  score(0, last + 1, begin, end, max);
  score(0, last + 1, end, keys.end[0], unused);
  for (std::int64_t v = 0; v < last; ++v) score(v + 1, last + 1, keys.end[v], keys.end[v + 1], unused);

  const auto hide = [&](std::int64_t from, std::int64_t to) {
    HideOutside(rows, range.first + from, to - from, s + from * kTileRows);
    FindMax(rows.vectors, to - from, s + from * kTileRows, max);
  };
  if (begin > 0) hide(0, begin);
  if (end < range.last - range.first) hide(end, range.last - range.first);
}

HWY_INLINE bool HasTerms(const AttentionProblem& problem) {
  return problem.softcap != 0.0 || !problem.alibi_slopes.empty() || !problem.masks.empty();
}

HWY_INLINE void ResetMax(const TileRows& rows, float* max) {
  for (std::int64_t v = 0; v < rows.vectors; ++v) Store(NegativeInfinity(), max + v * kLanes);
}

// Steps 2 to 5 on raw scores, and each row's maximum.
inline void MaskScores(const AttentionProblem& problem, const TileRows& rows, const TileKeys& keys, float* s,
                       float* max) {
  const std::int64_t count = keys.range.last - keys.range.first;
  if (problem.softcap != 0.0) Softcap(problem.softcap, rows.vectors, count, s);
  ApplyMasks(problem, rows, keys, s);
  ResetMax(rows, max);
  FindMax(rows.vectors, count, s, max);
}

// Steps 1 to 5 for a tile's keys: s, and each row's maximum in `max`.
inline void MaskedScores(const AttentionProblem& problem, const TileRows& rows, const TileKeys& keys, const float* q,
                         const KeyRows& key_rows, float* s, float* max) {
  const std::int64_t size = problem.head_size;
  ResetMax(rows, max);
  if (!HasTerms(problem)) {
    if (IsEdge(rows, keys.range)) return RaggedScores(rows, keys.range, q, size, key_rows, s, max);
    return Scores(rows.vectors, q, size, key_rows, keys.range, s, max);
  }
  for (const Mask& mask : problem.masks) PrefetchMask(mask, rows, keys.range);
  Scores(rows.vectors, q, size, key_rows, keys.range, s, max);
  MaskScores(problem, rows, keys, s, max);
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
