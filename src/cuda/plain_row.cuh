// What plain kernels share: a row (one query of one head), its scores, and sums of weighted rows. Steps are those of
// rapt/attention.h.
#pragma once

#include <cstdint>

#include "cuda/contract.h"
#include "cuda/memory_row.cuh"
#include "cuda/philox.cuh"
#include "cuda/row_state.cuh"
#include "cuda/visible.cuh"
#include "cuda/warp.cuh"

namespace rapt::RAPT_KERNELS {

struct Row {
  RAPT_HOST_DEVICE Row(const Arguments& call, const Sequence& of, std::int32_t of_head, std::int32_t query)
      : sequence(of),
        head(of_head),
        kv_head(of_head / call.group),
        i(query - of.query_begin),
        number((std::int64_t{of.batch} * call.query_heads + of_head) * call.queries + query),
        visible(visible_keys(call, of, i)),
        q(memory_row(call.query, of.batch, of_head, query)) {}

  Sequence sequence;
  std::int32_t head, kv_head;
  std::int32_t i;       // query within the sequence
  std::int64_t number;  // among all rows: (b, h, query) in row-major order
  VisibleKeys visible;
  MemoryRow q;

  RAPT_HOST_DEVICE std::int32_t query() const { return sequence.query_begin + i; }
};

RAPT_HOST_DEVICE std::int64_t row_count(const Arguments& call) {
  return std::int64_t{call.batch} * call.query_heads * call.queries;
}

// The row with the given Row::number.
RAPT_HOST_DEVICE Row row_at(const Arguments& call, std::int64_t number) {
  const auto query = static_cast<std::int32_t>(number % call.queries);
  const std::int64_t heads = number / call.queries;
  const auto b = static_cast<std::int32_t>(heads / call.query_heads);
  return {call, sequence_of_query(call, b, query), static_cast<std::int32_t>(heads % call.query_heads), query};
}

RAPT_HOST_DEVICE MemoryRow key_row(const Arguments& call, const Row& row, std::int32_t j) {
  return kv_row(call, call.key, call.key_scales, row.sequence, row.kv_head, j);
}

RAPT_HOST_DEVICE MemoryRow value_row(const Arguments& call, const Row& row, std::int32_t j) {
  return kv_row(call, call.value, call.value_scales, row.sequence, row.kv_head, j);
}

// Step 1 for a key that exists.
RAPT_HOST_DEVICE float raw_score(const Arguments& call, const Row& row, std::int32_t j) {
  return call.scale * dot(row.q, key_row(call, row, j), call.head_size);
}

// Steps 1 and 2.
RAPT_HOST_DEVICE float capped_score(const Arguments& call, const Row& row, std::int32_t j) {
  const float s = raw_score(call, row, j);
  return call.softcap == 0.0F ? s : softcap(s, call.softcap);
}

// Steps 1 to 5: −inf if the row does not see key j. The key need not exist.
RAPT_HOST_DEVICE float score(const Arguments& call, const Row& row, std::int32_t j) {
  if (!row.visible.sees(j)) return kHidden;
  return apply_terms(call, row.sequence, row.head, row.i, j, capped_score(call, row, j));
}

// The factor of a weight in step 7.
RAPT_HOST_DEVICE float dropout_factor(const Arguments& call, const Row& row, std::int32_t j) {
  return dropout_factor(call.dropout, row.sequence.index, row.head, row.i, j);
}

// Merges the sink of a head, which has a score but no value. Returns the factor that earlier weighted sums must be
// multiplied by.
RAPT_HOST_DEVICE float merge_sink(const Arguments& call, std::int32_t head, RowState& state) {
  if (call.sinks.data == nullptr) return 1.0F;
  const float sink = load_float(call.sinks.data, call.sinks.dtype, head * call.sinks.head);
  return sink == kHidden ? 1.0F : state.merge({sink, 1.0F}).a;
}

// Writes the scores of the chunk that begins with key `first` to memory.w, and returns their maximum.
RAPT_DEVICE float score_chunk(const Arguments& call, const Row& row, std::int32_t first, WarpMemory& memory) {
  PerLane<float> maximum;
  for_each_lane([&](int lane) {
    maximum[lane] = kHidden;
    for (std::int32_t k = lane; k < kPlainChunk; k += kLanes) {
      memory.w[k] = score(call, row, first + k);
      maximum[lane] = maximum_of(memory.w[k], maximum[lane]);
    }
  });
  return reduce(maximum, [](float a, float b) { return maximum_of(a, b); });
}

// Computes the maximum and the sum of each row, in the order of Row::number.
struct SumRows {
  Arguments call;
  RowState* states = nullptr;

  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& memory) const {
    const Row row = row_at(call, item);
    RowState state;
    for (std::int32_t first = 0; first < row.sequence.key_count; first += kPlainChunk) {
      if (!row.visible.sees_any(first, first + kPlainChunk)) continue;
      const float maximum = score_chunk(call, row, first, memory);
      if (maximum == kHidden) continue;
      PerLane<float> sum;
      for_each_lane([&](int lane) {
        sum[lane] = 0.0F;
        for (std::int32_t k = lane; k < kPlainChunk; k += kLanes) sum[lane] += expf(memory.w[k] - maximum);
      });
      (void)state.merge({maximum, reduce(sum, [](float a, float b) { return a + b; })});
    }
    (void)merge_sink(call, row.head, state);
    for_each_lane([&](int lane) {
      if (lane == 0) states[item] = state;
    });
  }
};

// The columns of a result that a warp sums at once, kColumns per lane. Wider results are summed in several items.
inline constexpr std::int32_t kSegment = kLanes * kColumns;

RAPT_HOST_DEVICE std::int32_t segment_count(std::int32_t size) { return (size + kSegment - 1) / kSegment; }

// to += Σ over n ascending of w[n] · row_of(n), for the columns of this lane; `passes(w[n])` says whether row n is
// added.
template <class RowOf, class Passes>
RAPT_DEVICE void add_rows(std::int32_t count, const float* w, const Passes& passes, const RowOf& row_of,
                          std::int32_t column, std::int32_t size, Columns& to) {
  if (column >= size) return;
  const bool whole = column + kColumns <= size;
  for (std::int32_t n = 0; n < count; ++n) {
    const float weight = w[n];
    if (!passes(weight)) continue;
    const MemoryRow row = row_of(n);
    Columns from;
    if (whole) {
      from = load_columns(row, column);
    } else {
      for (int c = 0; c < kColumns; ++c) {
        if (column + c < size) from.x[c] = row[column + c];
      }
    }
    for (int c = 0; c < kColumns; ++c) to.x[c] = fmaf(weight, from.x[c], to.x[c]);
  }
}

// Rounds the columns of this lane and stores them in row (b, h, l) of a tensor.
RAPT_DEVICE void store_columns(const DeviceTensor& to, std::int64_t b, std::int64_t h, std::int64_t l,
                               std::int32_t column, std::int32_t size, const Columns& from) {
  for (int c = 0; c < kColumns; ++c) {
    if (column + c < size) store_float(to.data, to.dtype, to.offset(b, h, l, column + c), from.x[c]);
  }
}

}  // namespace rapt::RAPT_KERNELS
