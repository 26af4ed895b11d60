// The plain forward kernel.
#include "cuda/plain.h"
#include "cuda/plain_row.cuh"

namespace rapt::RAPT_KERNELS {

namespace {

// Marks a key that a row does not see; no weight is negative. Such keys are skipped rather than multiplied by 0,
// because their values may be NaN or infinite.
constexpr float kNotSeen = -1.0F;

// One row and one segment of its output.
struct ForwardRows {
  Arguments call;

  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& memory) const {
    const std::int64_t rows = row_count(call);
    const Row row = row_at(call, item % rows);
    const auto segment = static_cast<std::int32_t>(item / rows);
    RowState state;
    PerLane<Columns> out;
    for (std::int32_t first = 0; first < row.sequence.key_count; first += kPlainChunk) {
      if (row.visible.sees_any(first, first + kPlainChunk)) add_chunk(row, first, segment, memory, state, out);
    }
    const float factor = merge_sink(call, row.head, state);
    for_each_lane([&](int lane) {
      Columns result;
      for (int c = 0; c < kColumns; ++c) {
        result.x[c] = state.sees_none() ? 0.0F : out[lane].x[c] * factor / state.sum;
      }
      store_columns(call.out, row.sequence.batch, row.head, row.query(), column(segment, lane), call.value_size,
                    result);
      if (call.lse.data == nullptr || segment > 0 || lane > 0) return;
      store_float(call.lse.data, DType::f32, call.lse.offset(row.sequence.batch, row.head, row.query()), state.lse());
    });
  }

  RAPT_DEVICE static std::int32_t column(std::int32_t segment, int lane) {
    return segment * kSegment + lane * kColumns;
  }

  RAPT_DEVICE void add_chunk(const Row& row, std::int32_t first, std::int32_t segment, WarpMemory& memory,
                             RowState& state, PerLane<Columns>& out) const {
    const float maximum = score_chunk(call, row, first, memory);
    if (maximum == kHidden) return;
    PerLane<float> sum;
    for_each_lane([&](int lane) {
      sum[lane] = 0.0F;
      for (std::int32_t k = lane; k < kPlainChunk; k += kLanes) {
        const float s = memory.w[k];
        const float e = s == kHidden ? 0.0F : expf(s - maximum);
        sum[lane] += e;
        memory.w[k] = s == kHidden ? kNotSeen : e * dropout_factor(call, row, first + k);
      }
    });
    const MergeFactors factors = state.merge({maximum, reduce(sum, [](float a, float b) { return a + b; })});
    for_each_lane([&](int lane) {
      Columns part;
      add_rows(
          kPlainChunk, memory.w, [](float w) { return !(w < 0.0F); },
          [&](std::int32_t k) { return value_row(call, row, first + k); }, column(segment, lane), call.value_size,
          part);
      for (int c = 0; c < kColumns; ++c) out[lane].x[c] = fmaf(out[lane].x[c], factors.a, part.x[c] * factors.b);
    });
  }
};

void forward(const Arguments& arguments, const Launch& launch) {
  const std::int32_t segments = arguments.value_size > 0 ? segment_count(arguments.value_size) : 1;
  launch_items("plain forward", ForwardRows{arguments}, row_count(arguments) * segments, launch);
}

}  // namespace

constinit const KernelSet kPlainKernels = {
    .name = "plain",
    .does = "every option, in f32, bf16 and f16, on CUDA cores",
    .runs_on = [](int capability) { return capability >= 75; },
    .can = [](const Arguments& /*arguments*/, const Launch& /*launch*/) { return true; },
    .workspace_bytes = [](const Arguments& /*arguments*/, const Launch& /*launch*/) { return std::size_t{0}; },
    .forward = forward,
};

}  // namespace rapt::RAPT_KERNELS
