// The gradient of an additive mask: ds summed over the dimensions that the mask is broadcast along, in nested sums:
// over b, over h within b, over i within h and over j within i. Each sum starts at 0 and ascends, except that a sum
// over j consists of 32 partial sums (as in cuda/contract.h).
//
// A mask that is broadcast over neither queries nor keys needs no workspace: one lane computes each of its elements.
// Otherwise one kernel writes sums to the workspace, over keys (one sum for each row) or over queries (one sum for each
// key of each head), and a second kernel adds these sums.
#include "cuda/plain_mask_gradient.cuh"

namespace rapt::RAPT_KERNELS {

namespace {

struct MaskGradient {
  Arguments call;
  Gradients gradients;
  MaskGradientTerm mask;
  RowSums sums;
  float* partial = nullptr;

  RAPT_HOST_DEVICE std::int32_t batches() const { return mask.one_batch ? 1 : call.batch; }
  RAPT_HOST_DEVICE std::int32_t heads() const { return mask.one_head ? 1 : call.query_heads; }
  RAPT_HOST_DEVICE std::int32_t key_tiles() const { return (call.keys + kLanes - 1) / kLanes; }
  // For each head: the number of sums in the workspace, and the number of mask elements that they are added to.
  RAPT_HOST_DEVICE std::int32_t partials() const { return mask.one_key ? call.queries : call.keys; }
  RAPT_HOST_DEVICE std::int32_t elements() const { return mask.one_key && mask.one_query ? 1 : partials(); }

  // The sum of term(n, m) over batch rows n and heads m: over all of them where the mask is broadcast, otherwise for
  // n = b or m = h only.
  template <class Term>
  RAPT_HOST_DEVICE float sum_over(std::int32_t b, std::int32_t h, const Term& term) const {
    float total = 0.0F;
    for (std::int32_t n = b; n < (mask.one_batch ? call.batch : b + 1); ++n) {
      float of_batch = 0.0F;
      for (std::int32_t m = h; m < (mask.one_head ? call.query_heads : h + 1); ++m) of_batch += term(n, m);
      total += of_batch;
    }
    return total;
  }

  RAPT_HOST_DEVICE void store(std::int32_t b, std::int32_t h, std::int32_t i, std::int32_t j, float value) const {
    store_float(
        mask.to.data, mask.to.dtype,
        mask.to.offset(mask.one_batch ? 0 : b, mask.one_head ? 0 : h, mask.one_query ? 0 : i, mask.one_key ? 0 : j),
        value);
  }

  // `key` is the index of a row of k, which need not belong to the sequence of `row`.
  RAPT_HOST_DEVICE float gradient(const Row& row, std::int32_t key) const {
    const std::int32_t j = key - row.sequence.key_begin;
    return j < 0 ? 0.0F : score_gradient(call, gradients, row, sums, j, false);
  }
};

// A mask that is broadcast over neither queries nor keys: an item is 32 keys of one row of the mask.
struct MaskElements : MaskGradient {
  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& /*memory*/) const {
    const std::int64_t row = item / key_tiles();
    const auto query = static_cast<std::int32_t>(row % call.queries);
    const auto h = static_cast<std::int32_t>(row / call.queries % heads());
    const auto b = static_cast<std::int32_t>(row / call.queries / heads());
    for_each_lane([&](int lane) {
      const auto key = static_cast<std::int32_t>(item % key_tiles()) * kLanes + lane;
      if (key >= call.keys) return;
      store(b, h, query, key, sum_over(b, h, [&](std::int32_t n, std::int32_t head) {
              return gradient({call, sequence_of_query(call, n, query), head, query}, key);
            }));
    });
  }
};

// Sums over the keys of each row, each from 32 partial sums: lane n adds keys n, n + 32, …
struct MaskSumsOverKeys : MaskGradient {
  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& /*memory*/) const {
    const Row row = row_at(call, item);
    PerLane<float> sum;
    for_each_lane([&](int lane) {
      sum[lane] = 0.0F;
      for (std::int32_t j = lane; j < row.visible.end; j += kLanes) {
        sum[lane] += score_gradient(call, gradients, row, sums, j, false);
      }
    });
    const float total = reduce(sum, [](float a, float b) { return a + b; });
    for_each_lane([&](int lane) {
      if (lane == 0) partial[item] = total;
    });
  }
};

// Sums over the queries that see each key of each head: an item is 32 keys of one head.
struct MaskSumsOverQueries : MaskGradient {
  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& /*memory*/) const {
    const auto first = static_cast<std::int32_t>(item % key_tiles()) * kLanes;
    const std::int64_t number = item / key_tiles();
    const auto head = static_cast<std::int32_t>(number % call.query_heads);
    const auto b = static_cast<std::int32_t>(number / call.query_heads);
    PerLane<float> sum;
    for_each_lane([&](int lane) { sum[lane] = 0.0F; });
    for (std::int32_t n = 0; n < call.sequence_count; ++n) {
      if (call.sequence(n).batch == b) add_sequence(call.sequence(n), head, first, sum);
    }
    for_each_lane([&](int lane) {
      if (first + lane < call.keys) partial[number * call.keys + first + lane] = sum[lane];
    });
  }

  RAPT_DEVICE void add_sequence(const Sequence& sequence, std::int32_t head, std::int32_t first,
                                PerLane<float>& sum) const {
    const std::int32_t from = first - sequence.key_begin;
    const QueryRange queries = visible_queries(call, sequence, from < 0 ? 0 : from, from + kLanes);
    for (std::int32_t i = queries.begin; i < queries.end; ++i) {
      const Row row(call, sequence, head, sequence.query_begin + i);
      for_each_lane([&](int lane) { sum[lane] += gradient(row, first + lane); });
    }
  }
};

// Adds the sums in the workspace: an item is 32 elements of one head of the mask.
struct MaskTotals : MaskGradient {
  RAPT_HOST_DEVICE std::int32_t tiles() const { return (elements() + kLanes - 1) / kLanes; }

  RAPT_DEVICE void operator()(std::int64_t item, WarpMemory& /*memory*/) const {
    const std::int64_t number = item / tiles();
    const auto h = static_cast<std::int32_t>(number % heads());
    const auto b = static_cast<std::int32_t>(number / heads());
    for_each_lane([&](int lane) {
      const auto element = static_cast<std::int32_t>(item % tiles()) * kLanes + lane;
      if (element >= elements()) return;
      store(b, h, element, element, sum_over(b, h, [&](std::int32_t n, std::int32_t head) {
              const float* of_head = partial + (std::int64_t{n} * call.query_heads + head) * partials();
              if (elements() == partials()) return of_head[element];
              float sum = 0.0F;
              for (std::int32_t i = 0; i < partials(); ++i) sum += of_head[i];
              return sum;
            }));
    });
  }
};

}  // namespace

std::size_t mask_gradient_bytes(const Arguments& arguments, const MaskGradientTerm& mask) {
  if (!mask.one_key && !mask.one_query) return 0;
  const std::int64_t heads = std::int64_t{arguments.batch} * arguments.query_heads;
  return static_cast<std::size_t>(heads * (mask.one_key ? arguments.queries : arguments.keys)) * sizeof(float);
}

void mask_gradient(const Arguments& arguments, const Gradients& gradients, const MaskGradientTerm& mask,
                   const RowSums& sums, float* partial, const Launch& launch) {
  const MaskGradient common{arguments, gradients, mask, sums, partial};
  const std::int64_t of_mask = std::int64_t{common.batches()} * common.heads();
  const std::int64_t heads = std::int64_t{arguments.batch} * arguments.query_heads;
  if (!mask.one_key && !mask.one_query) {
    return launch_items("plain dmask", MaskElements{common}, of_mask * arguments.queries * common.key_tiles(), launch);
  }
  if (mask.one_key) {
    launch_items("plain dmask over keys", MaskSumsOverKeys{common}, heads * arguments.queries, launch);
  } else {
    launch_items("plain dmask over queries", MaskSumsOverQueries{common}, heads * common.key_tiles(), launch);
  }
  const MaskTotals totals{common};
  launch_items("plain dmask totals", totals, of_mask * totals.tiles(), launch);
}

}  // namespace rapt::RAPT_KERNELS
