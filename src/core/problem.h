// An attention call after validation: the options as numbers that an engine can loop over.
//
// src/attention builds the problem, and an engine may trust it: shapes agree, masks are expanded to (B, Hq, Lq, Lk),
// every default is filled in. Batch rows and packed sequences form one list, so engines need no code for packing. Lists
// are in the call's workspace or in the caller's options, so a call allocates nothing on the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "rapt/attention.h"
#include "rapt/random.h"

namespace rapt {

// One batch row, or one packed sequence: which rows of q and k belong to it, and the positions of its queries.
struct SequenceSpan {
  std::int64_t batch = 0;        // row of the tensors
  std::int64_t index = 0;        // b in the dropout counter: the batch row, or the sequence's number
  std::int64_t query_begin = 0;  // in q, masks, out: query i of this sequence is row query_begin + i
  std::int64_t query_count = 0;
  std::int64_t key_begin = 0;  // in k, v, masks: key j of this sequence is row key_begin + j
  std::int64_t key_count = 0;  // keys that exist; memory past them is not read
  std::int64_t offset = 0;     // query i has position i + offset
};

// Keys first … last − 1 of a sequence.
struct KeyRange {
  std::int64_t first;
  std::int64_t last;
};

// The keys that a query sees: a range and, separated from it by a gap, the first `leading` keys of the sequence.
struct VisibleKeys : KeyRange {
  std::int64_t leading = 0;
};

// The page table of k and v. If each batch row is a single page of any size, 2^shift exceeds every key index.
struct PagesInUse {
  static constexpr int kOnePage = 62;

  bool used = false;
  std::span<const std::int32_t> table{};  // (B, per_row)
  std::int64_t per_row = 0;
  int shift = kOnePage;  // a page holds 2^shift keys
};

struct ResolvedDropout {
  bool on = false;
  std::uint64_t threshold = 0;  // a weight is kept iff its 32-bit word is at least this
  double keep_scale = 1.0;      // 1 / (1 − rate); 0 if everything is dropped
  PhiloxKey key{};
  std::uint32_t batch_start = 0;
  std::uint32_t head_start = 0;
  std::uint32_t query_start = 0;

  // Whether weight (b, h, i, j) is kept; b is SequenceSpan::index, i and j count within the sequence.
  bool keeps(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const PhiloxCounter counter = {batch_start + static_cast<std::uint32_t>(b),
                                   head_start + static_cast<std::uint32_t>(h),
                                   query_start + static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j / 4)};
    return philox4x32_10(counter, key)[static_cast<std::size_t>(j % 4)] >= threshold;
  }
};

struct AttentionProblem {
  // q (B, Hq, Lq, D), k (B, Hkv, Lk, D), v (B, Hkv, Lk, Dv); with pages k (P, Hkv, page size, D), and v likewise.
  // core/kv_rows.h finds a row of k or v.
  ConstTensorView query, key, value;
  ConstTensorView key_scales, value_scales;  // of i8, shaped as k and v without the last dimension; else undefined
  PagesInUse pages;
  std::int64_t key_length = 0;                            // Lk
  std::int64_t query_heads = 0, kv_heads = 0, group = 1;  // query head h reads kv head h / group
  std::int64_t head_size = 0, value_size = 0;             // D, Dv
  std::span<SequenceSpan> sequences;

  double scale = 1.0;
  double softcap = 0.0;
  std::span<Mask> masks;  // views of (B, Hq, Lq, Lk), broadcast by stride 0
  static constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max() / 4;  // unbounded: past every key
  bool causal = false;
  Window window{};  // no number in it exceeds kOpen
  std::span<const double> alibi_slopes;
  ConstTensorView sinks;
  ResolvedDropout dropout;

  StreamHandle stream{};  // of the tensors' device

  int threads = 1;
  const ParallelFor* parallel_for = nullptr;  // the caller's, or the pool's
  // The variant of the engine that a call uses, if there are several (instruction sets). It is queried once, so that a
  // call keeps its variant even if another is selected meanwhile.
  const void* variant = nullptr;

  // Whether the accumulation type is f64 (for f64 input) rather than f32. It matters where −1e9 is added to a score.
  bool sums_in_f64() const { return query.dtype() == DType::f64; }

  // Whether a causal mask or a window is set, which may hide keys from some positions.
  bool hides_by_position() const { return causal || window.left || window.right; }

  // The keys that the causal mask, the window and the key length leave visible to query i of a sequence; other masks
  // may hide more. Both ends of the range ascend with i. The leading keys are part of the range until it moves past
  // them; after that, they are returned separately, and are the same for every query.
  VisibleKeys visible_keys(const SequenceSpan& sequence, std::int64_t i) const {
    const std::int64_t position = i + sequence.offset;
    const std::int64_t right = causal ? 0 : window.right.value_or(kOpen);  // a window's side is never negative
    const std::int64_t first = std::max<std::int64_t>(0, position - window.left.value_or(kOpen));
    const std::int64_t last = std::min(sequence.key_count, position + right + 1);
    const std::int64_t existing = causal ? std::min(sequence.key_count, position + 1) : sequence.key_count;
    const std::int64_t leading = std::clamp<std::int64_t>(existing, 0, window.first);
    if (leading < first) return {{first, std::max(first, last)}, leading};
    return {{0, std::max(leading, last)}, 0};
  }
  bool is_visible(const SequenceSpan& sequence, std::int64_t i, std::int64_t j) const {
    const VisibleKeys keys = visible_keys(sequence, i);
    return j < keys.leading || (j >= keys.first && j < keys.last);
  }
};

struct ForwardProblem : AttentionProblem {
  struct Outputs {
    TensorView out, lse;
    std::span<const Capture> captures;
  };
  Outputs outputs;
};

struct BackwardProblem : AttentionProblem {
  struct Upstream {
    ConstTensorView dout, dlse;
    std::span<const WeightsGradient> dweights;
    ConstTensorView out, lse;
  };
  struct Gradients {
    TensorView dquery, dkey, dvalue, dsinks;
    std::span<const MaskGradient> dmasks;
  };
  Upstream upstream;
  Gradients gradients;
};

}  // namespace rapt
