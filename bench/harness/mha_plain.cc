#include "bench/harness/mha_plain.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "rapt/parallel.h"

namespace rapt::bench {
namespace {

// One head of one batch row. The strides are those between rows.
struct Plane {
  std::int64_t length, dim;
  const float *query, *key, *value;
  std::int64_t query_stride, key_stride, value_stride, out_stride;
  float* keys_transposed;  // (D, L), so that scores of adjacent keys are adjacent
  float* scores;           // (L, L)
  float* out;
  bool causal;
};

// These functions are inlined into one function per instruction set, in which the compiler vectorises their loops.
#define RAPT_INLINE [[gnu::always_inline]] inline

// scores = q · kᵀ / sqrt(D)
RAPT_INLINE void compute_scores(const Plane& p) {
  for (std::int64_t j = 0; j < p.length; ++j) {
    for (std::int64_t d = 0; d < p.dim; ++d) p.keys_transposed[d * p.length + j] = p.key[j * p.key_stride + d];
  }
  const float scale = 1.0F / std::sqrt(static_cast<float>(p.dim));
  for (std::int64_t i = 0; i < p.length; ++i) {
    float* __restrict row = p.scores + i * p.length;
    for (std::int64_t j = 0; j < p.length; ++j) row[j] = 0.0F;
    for (std::int64_t d = 0; d < p.dim; ++d) {
      const float q = p.query[i * p.query_stride + d] * scale;
      const float* __restrict keys = p.keys_transposed + d * p.length;
      for (std::int64_t j = 0; j < p.length; ++j) row[j] += q * keys[j];
    }
  }
}

// out = weights · v
RAPT_INLINE void compute_out(const Plane& p) {
  for (std::int64_t i = 0; i < p.length; ++i) {
    const float* weights = p.scores + i * p.length;
    float* __restrict out = p.out + i * p.out_stride;
    for (std::int64_t d = 0; d < p.dim; ++d) out[d] = 0.0F;
    for (std::int64_t j = 0; j < p.length; ++j) {
      const float* __restrict value = p.value + j * p.value_stride;
      for (std::int64_t d = 0; d < p.dim; ++d) out[d] += weights[j] * value[d];
    }
  }
}

void mask_scores(const Plane& p) {
  for (std::int64_t i = 0; i < p.length; ++i) {
    for (std::int64_t j = i + 1; j < p.length; ++j) {
      p.scores[i * p.length + j] = -std::numeric_limits<float>::infinity();
    }
  }
}

void softmax(const Plane& p) {
  for (std::int64_t i = 0; i < p.length; ++i) {
    float* row = p.scores + i * p.length;
    const float most = *std::max_element(row, row + p.length);
    float sum = 0.0F;
    for (std::int64_t j = 0; j < p.length; ++j) {
      row[j] = std::exp(row[j] - most);
      sum += row[j];
    }
    for (std::int64_t j = 0; j < p.length; ++j) row[j] /= sum;
  }
}

using Step = void (*)(const Plane&);
struct Steps {
  Step compute_scores, compute_out;
};

void scores_here(const Plane& p) { compute_scores(p); }
void out_here(const Plane& p) { compute_out(p); }
#if defined(__x86_64__)
[[gnu::target("avx2")]] void scores_avx2(const Plane& p) { compute_scores(p); }
[[gnu::target("avx2")]] void out_avx2(const Plane& p) { compute_out(p); }
[[gnu::target("avx512f")]] void scores_avx512(const Plane& p) { compute_scores(p); }
[[gnu::target("avx512f")]] void out_avx512(const Plane& p) { compute_out(p); }
#endif

Steps steps_of_this_machine() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {scores_avx512, out_avx512};
  if (__builtin_cpu_supports("avx2")) return {scores_avx2, out_avx2};
#endif
  return {scores_here, out_here};
}

}  // namespace

void plain_attention(const PlainAttention& call) {
  const std::int64_t batch = call.query.size(0), heads = call.query.size(1);
  const std::int64_t length = call.query.size(2), dim = call.query.size(3);
  const std::int64_t group = heads / call.key.size(1);
  const Steps steps = steps_of_this_machine();
  // As many tasks as threads, each with its share of the heads, so that no more threads run at once.
  const std::int64_t tasks = std::min<std::int64_t>(call.threads, batch * heads);
  parallel_for(tasks, [&](std::int64_t task) {
    std::vector<float> keys_transposed(static_cast<std::size_t>(length * dim));
    for (std::int64_t n = task; n < batch * heads; n += tasks) {
      const std::int64_t b = n / heads, h = n % heads;
      const auto head = [&](const auto& view, std::int64_t which) { return view.select(0, b).select(0, which); };
      const ConstTensorView query = head(call.query, h);
      const ConstTensorView key = head(call.key, h / group), value = head(call.value, h / group);
      const TensorView out = head(call.out, h);
      const Plane plane{.length = length,
                        .dim = dim,
                        .query = query.data_as<float>(),
                        .key = key.data_as<float>(),
                        .value = value.data_as<float>(),
                        .query_stride = query.stride(0),
                        .key_stride = key.stride(0),
                        .value_stride = value.stride(0),
                        .out_stride = out.stride(0),
                        .keys_transposed = keys_transposed.data(),
                        .scores = head(call.scores, h).template data_as<float>(),
                        .out = out.data_as<float>(),
                        .causal = call.causal};
      steps.compute_scores(plane);
      if (plane.causal) mask_scores(plane);
      softmax(plane);
      steps.compute_out(plane);
    }
  });
}

}  // namespace rapt::bench
