// The plain backward kernels: the softmax and delta of each row, then dq by rows, dk and dv by keys, and the gradients
// of sinks and masks. They use no atomics, so that each number is one sum in a fixed order.
#include "cuda/plain.h"
#include "cuda/plain_gradient.cuh"
#include "cuda/plain_mask_gradient.cuh"

namespace rapt::RAPT_KERNELS {

namespace {

// A row with a factor of 0 is skipped instead of multiplied, because it may hold infinities.
struct NotZero {
  RAPT_HOST_DEVICE bool operator()(float w) const { return w != 0.0F; }
};

RAPT_HOST_DEVICE std::int32_t column(std::int64_t segment, int lane) {
  return static_cast<std::int32_t>(segment) * kSegment + lane * kColumns;
}

// Computes delta = Σ_j p_j g_j − dlse of each row.
struct DeltaRows {
  Arguments call;
  Gradients gradients;
  RowSums sums;

  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& /*memory*/) const {
    const Row row = row_at(call, item);
    const RowState state = sums.states[item];
    PerLane<float> sum;
    for_each_lane([&](int lane) {
      sum[lane] = 0.0F;
      for (std::int32_t j = lane; j < row.visible.end; j += kLanes) {
        const float p = weight_of(call, row, state, j).p;
        if (p != 0.0F) sum[lane] = fmaf(p, weight_gradient(call, gradients, row, j), sum[lane]);
      }
    });
    const float delta = reduce(sum, [](float a, float b) { return a + b; });
    for_each_lane([&](int lane) {
      if (lane == 0) sums.deltas[item] = delta - dlse(row);
    });
  }

  RAPT_HOST_DEVICE float dlse(const Row& row) const {
    const DeviceTensor& tensor = gradients.dlse;
    if (tensor.data == nullptr) return 0.0F;
    return load_float(tensor.data, tensor.dtype, tensor.offset(row.sequence.batch, row.head, row.query()));
  }
};

// dq of one row and one segment of its columns: Σ over keys ascending.
struct QueryGradients {
  Arguments call;
  Gradients gradients;
  RowSums sums;

  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& memory) const {
    const std::int64_t rows = row_count(call);
    const Row row = row_at(call, item % rows);
    const std::int64_t segment = item / rows;
    PerLane<Columns> sum;
    for (std::int32_t first = 0; first < row.visible.end; first += kPlainChunk) {
      if (!row.visible.sees_any(first, first + kPlainChunk)) continue;
      for_each_lane([&](int lane) {
        for (std::int32_t k = lane; k < kPlainChunk; k += kLanes) {
          memory.w[k] = call.scale * score_gradient(call, gradients, row, sums, first + k, true);
        }
      });
      for_each_lane([&](int lane) {
        add_rows(
            kPlainChunk, memory.w, NotZero(), [&](std::int32_t k) { return key_row(call, row, first + k); },
            column(segment, lane), call.head_size, sum[lane]);
      });
    }
    for_each_lane([&](int lane) {
      store_columns(gradients.dquery, row.sequence.batch, row.head, row.query(), column(segment, lane), call.head_size,
                    sum[lane]);
    });
  }
};

// dk, or dv, of one key and one segment of its columns: Σ over the heads of the group ascending, and over queries
// ascending within each, as one chain.
template <bool kOfValue>
struct KeyGradients {
  Arguments call;
  Gradients gradients;
  RowSums sums;

  RAPT_HOST_DEVICE std::int32_t size() const { return kOfValue ? call.value_size : call.head_size; }
  RAPT_HOST_DEVICE std::int64_t keys() const { return std::int64_t{call.batch} * call.kv_heads * call.keys; }

  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& memory) const {
    const std::int64_t segment = item / keys();
    const auto key = static_cast<std::int32_t>(item % call.keys);
    const auto kv_head = static_cast<std::int32_t>(item / call.keys % call.kv_heads);
    const auto b = static_cast<std::int32_t>(item % keys() / call.keys / call.kv_heads);
    PerLane<Columns> sum;
    if (const Sequence* sequence = sequence_of_key(call, b, key)) {
      const std::int32_t first = kv_head * call.group;
      // There may be no query heads at all.
      for (std::int32_t head = first; head < first + call.group && head < call.query_heads; ++head) {
        add_head(*sequence, head, key - sequence->key_begin, segment, memory, sum);
      }
    }
    for_each_lane([&](int lane) {
      store_columns(kOfValue ? gradients.dvalue : gradients.dkey, b, kv_head, key, column(segment, lane), size(),
                    sum[lane]);
    });
  }

  RAPT_DEVICE void add_head(const Sequence& sequence, std::int32_t head, std::int32_t j, std::int64_t segment,
                            WarpMemory& memory, PerLane<Columns>& sum) const {
    const QueryRange queries = visible_queries(call, sequence, j, j + 1);
    for (std::int32_t first = queries.begin; first < queries.end; first += kPlainChunk) {
      const std::int32_t count = queries.end - first < kPlainChunk ? queries.end - first : kPlainChunk;
      const auto row = [&](std::int32_t n) { return Row(call, sequence, head, sequence.query_begin + first + n); };
      for_each_lane([&](int lane) {
        for (std::int32_t n = lane; n < count; n += kLanes) memory.w[n] = factor(row(n), j);
      });
      const auto memory_row_of = [&](std::int32_t n) {
        return memory_row(kOfValue ? gradients.dout : call.query, sequence.batch, head,
                          std::int64_t{sequence.query_begin} + first + n);
      };
      for_each_lane([&](int lane) {
        add_rows(count, memory.w, NotZero(), memory_row_of, column(segment, lane), size(), sum[lane]);
      });
    }
  }

  // The factor in dk_j += factor · q or in dv_j += factor · dout.
  RAPT_HOST_DEVICE float factor(const Row& row, std::int32_t j) const {
    if (!kOfValue) return call.scale * score_gradient(call, gradients, row, sums, j, true);
    if (gradients.dout.data == nullptr) return 0.0F;
    return weight_of(call, row, sums.states[row.number], j).p * dropout_factor(call, row, j);
  }
};

// dsink_h = −Σ over the rows of head h of the sink's weight times delta: for each b a sum over queries, ascending;
// these sums are added, b ascending.
struct SinkGradients {
  Arguments call;
  Gradients gradients;
  RowSums sums;

  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& /*memory*/) const {
    const auto head = static_cast<std::int32_t>(item);
    const float sink = load_float(call.sinks.data, call.sinks.dtype, head * call.sinks.head);
    float total = 0.0F;
    for (std::int32_t b = 0; b < call.batch; ++b) {
      const std::int64_t row = (std::int64_t{b} * call.query_heads + head) * call.queries;
      float of_batch = 0.0F;
      for (std::int32_t first = 0; first < call.queries; first += kLanes) {
        PerLane<float> terms;
        for_each_lane([&](int lane) {
          const std::int64_t number = row + first + lane;
          terms[lane] = first + lane < call.queries ? sums.states[number].weight(sink) * sums.deltas[number] : 0.0F;
        });
        for (int lane = 0; lane < kLanes; ++lane) of_batch -= from_lane(terms, lane);
      }
      total += of_batch;
    }
    for_each_lane([&](int lane) {
      if (lane == 0) store_float(gradients.dsinks.data, gradients.dsinks.dtype, head * gradients.dsinks.head, total);
    });
  }
};

// The workspace: the RowSums of all rows, and partial sums for the gradient of one mask at a time.
struct Workspace {
  Workspace(const Arguments& arguments, std::byte* memory) {
    const auto rows = static_cast<std::size_t>(row_count(arguments));
    const auto take = [&](std::size_t size) {
      std::byte* begin = memory == nullptr ? nullptr : memory + bytes;
      bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
      return begin;
    };
    sums.states = reinterpret_cast<RowState*>(take(rows * sizeof(RowState)));
    sums.deltas = reinterpret_cast<float*>(take(rows * sizeof(float)));
    partial = reinterpret_cast<float*>(take(0));
  }

  static constexpr std::size_t kAlignment = 64;
  RowSums sums;
  float* partial = nullptr;
  std::size_t bytes = 0;
};

}  // namespace

std::size_t plain_backward_bytes(const Arguments& arguments, std::span<const MaskGradientTerm> masks) {
  std::size_t partial = 0;
  for (const MaskGradientTerm& mask : masks) {
    const std::size_t bytes = mask_gradient_bytes(arguments, mask);
    partial = bytes > partial ? bytes : partial;
  }
  return Workspace(arguments, nullptr).bytes + partial;
}

void plain_backward(const Arguments& arguments, const Gradients& gradients, std::span<const MaskGradientTerm> masks,
                    const Launch& launch) {
  const Workspace workspace(arguments, launch.workspace.data());
  const RowSums& sums = workspace.sums;
  const std::int64_t rows = row_count(arguments);
  launch_items("plain row sums", SumRows{arguments, sums.states}, rows, launch);
  launch_items("plain delta", DeltaRows{arguments, gradients, sums}, rows, launch);
  if (gradients.dquery.data != nullptr) {
    launch_items("plain dq", QueryGradients{arguments, gradients, sums}, rows * segment_count(arguments.head_size),
                 launch);
  }
  const std::int64_t keys = std::int64_t{arguments.batch} * arguments.kv_heads * arguments.keys;
  if (gradients.dkey.data != nullptr) {
    launch_items("plain dk", KeyGradients<false>{arguments, gradients, sums}, keys * segment_count(arguments.head_size),
                 launch);
  }
  if (gradients.dvalue.data != nullptr) {
    launch_items("plain dv", KeyGradients<true>{arguments, gradients, sums}, keys * segment_count(arguments.value_size),
                 launch);
  }
  if (gradients.dsinks.data != nullptr) {
    launch_items("plain dsinks", SinkGradients{arguments, gradients, sums}, arguments.query_heads, launch);
  }
  for (const MaskGradientTerm& mask : masks) {
    mask_gradient(arguments, gradients, mask, sums, workspace.partial, launch);
  }
}

}  // namespace rapt::RAPT_KERNELS
