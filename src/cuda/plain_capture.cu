// The plain kernel that writes captures: weights and scores at every stage.
#include <algorithm>

#include "cuda/plain.h"
#include "cuda/plain_row.cuh"
#include "cuda/selected.cuh"

namespace rapt::RAPT_KERNELS {

namespace {

RAPT_HOST_DEVICE bool is_weights(CaptureStage stage) {
  return stage == CaptureStage::weights || stage == CaptureStage::dropped_weights;
}

// Each item is 32 keys of one row of the capture; each lane computes one number.
struct CaptureRows {
  Arguments call;
  Selected capture;
  const RowState* states = nullptr;  // of all rows; null if no capture has weights

  RAPT_HOST_DEVICE std::int32_t tiles() const { return (call.keys + kLanes - 1) / kLanes; }
  RAPT_HOST_DEVICE std::int32_t heads() const { return count_of(capture.heads, call.query_heads); }
  RAPT_HOST_DEVICE std::int32_t rows_of_batch() const {
    return (capture.mean_over_heads ? 1 : heads()) * count_of(capture.queries, call.queries);
  }

  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& /*memory*/) const {
    const std::int32_t queries = count_of(capture.queries, call.queries);
    const std::int64_t row = item / tiles();
    const auto n = static_cast<std::int32_t>(row % queries);
    const auto b = static_cast<std::int32_t>(row / rows_of_batch());
    const auto h = static_cast<std::int32_t>(row / queries % (rows_of_batch() / queries));
    const std::int32_t query = chosen_at(call, capture.queries, n);
    const Sequence& sequence = sequence_of_query(call, b, query);
    for_each_lane([&](int lane) {
      const auto column = static_cast<std::int32_t>(item % tiles()) * kLanes + lane;
      if (column >= call.keys) return;
      const std::int32_t j = column - sequence.key_begin;
      float value = is_weights(capture.stage) ? 0.0F : kHidden;  // for a key of another sequence, or of none
      if (j >= 0 && j < sequence.key_count) value = number(sequence, h, query, j);
      store_float(capture.tensor.data, capture.tensor.dtype, capture.tensor.offset(b, h, n, column), value);
    });
  }

  // The number for head `h` of the capture, or for a mean. A mean adds heads in ascending order, in f64, because f32
  // cannot hold the sum of scores that are as low as −3.4e38.
  RAPT_HOST_DEVICE float number(const Sequence& sequence, std::int32_t h, std::int32_t query, std::int32_t j) const {
    const bool mean = capture.mean_over_heads;
    const std::int32_t first = mean ? 0 : chosen_at(call, capture.heads, h);
    const std::int32_t last = mean ? call.query_heads : first + 1;
    double sum = 0.0;
    for (std::int32_t head = first; head < last; ++head) {
      const std::int32_t times = mean ? times_chosen(head) : 1;
      if (times > 0) sum += times * static_cast<double>(at_stage({call, sequence, head, query}, j));
    }
    return static_cast<float>(mean && heads() > 0 ? sum / heads() : sum);
  }

  RAPT_HOST_DEVICE float at_stage(const Row& row, std::int32_t j) const {
    const bool of_any_key = capture.stage == CaptureStage::raw || capture.stage == CaptureStage::capped;
    float s = kHidden;
    if (of_any_key || row.visible.sees(j)) {
      s = raw_score(call, row, j);
      if (capture.stage != CaptureStage::raw && call.softcap != 0.0F) s = softcap(s, call.softcap);
      if (!of_any_key) s = apply_terms(call, row.sequence, row.head, row.i, j, s);
    }
    if (!is_weights(capture.stage)) return s;
    const float p = states[row.number].weight(s);
    return capture.stage == CaptureStage::weights ? p : p * dropout_factor(call, row, j);
  }

  RAPT_HOST_DEVICE std::int32_t times_chosen(std::int32_t head) const {
    std::int32_t times = capture.heads.count == 0 ? 1 : 0;
    for (std::int32_t n = 0; n < capture.heads.count; ++n) {
      times += chosen_at(call, capture.heads, n) == head ? 1 : 0;
    }
    return times;
  }
};

std::size_t state_bytes(const Arguments& arguments, std::span<const Selected> captures) {
  const bool any =
      std::any_of(captures.begin(), captures.end(), [](const Selected& each) { return is_weights(each.stage); });
  return any ? static_cast<std::size_t>(row_count(arguments)) * sizeof(RowState) : 0;
}

}  // namespace

std::size_t plain_captures_bytes(const Arguments& arguments, std::span<const Selected> captures) {
  return state_bytes(arguments, captures);
}

void plain_captures(const Arguments& arguments, std::span<const Selected> captures, const Launch& launch) {
  RowState* states = nullptr;
  if (state_bytes(arguments, captures) > 0) {
    states = reinterpret_cast<RowState*>(launch.workspace.data());
    launch_items("plain row sums", SumRows{arguments, states}, row_count(arguments), launch);
  }
  for (const Selected& capture : captures) {
    const CaptureRows rows{arguments, capture, states};
    launch_items("plain captures", rows, std::int64_t{arguments.batch} * rows.rows_of_batch() * rows.tiles(), launch);
  }
}

}  // namespace rapt::RAPT_KERNELS
