#include "bench/harness/mha_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include "bench/harness/mha_training.h"
#include "bench/harness/numbers.h"

namespace rapt::bench {
namespace {

Tensor input(const Dims& shape) {
  return Tensor::copy_of(numbers(Layout::contiguous(shape).count(), 1, DType::f32).view().reshape(shape));
}

bool has_plane(MhaVariant variant) {
  return variant == MhaVariant::plain || weights_of(variant) != ReturnWeights::none;
}

Dims plane_shape(MhaVariant variant, std::int64_t batch, std::int64_t heads, std::int64_t tokens) {
  const bool mean = weights_of(variant) == ReturnWeights::mean;
  return mean ? Dims{batch, tokens, tokens} : Dims{batch, heads, tokens, tokens};
}

// The error of the worst token: |a − b| / |b|. Both are (B, L, …).
double token_error(const ConstTensorView& a, const ConstTensorView& b) {
  double error = 0.0;
  for (std::int64_t n = 0; n < b.size(0); ++n) {
    for (std::int64_t i = 0; i < b.size(1); ++i) {
      error = worse(error, relative_error(a.select(0, n).select(0, i), b.select(0, n).select(0, i)));
    }
  }
  return error;
}

// Computes one token's output in double. Only this token is projected: q·k = q·(W_k x) = (W_kᵀ q)·x, and Σ p (W_v x) =
// W_v (Σ p x). So checking a token is fast for any sequence length.
class OneToken {
 public:
  OneToken(const MhaSizes& sizes, const MultiHeadAttention& layer)
      : sizes_(sizes),
        input_(Tensor::copy_of(parameter(layer, "in_proj_weight"), DType::f64)),
        output_(Tensor::copy_of(parameter(layer, "out_proj.weight"), DType::f64)),
        bias_(Tensor::copy_of(parameter(layer, "out_proj.bias"), DType::f64)) {}

  // `tokens` is (L, E), f32.
  Tensor operator()(const ConstTensorView& tokens, std::int64_t i) const {
    const Tensor x = Tensor::copy_of(tokens, DType::f64);
    const std::int64_t e = sizes_.embed, d = sizes_.head_size(), seen = sizes_.causal ? i + 1 : tokens.size(0);
    const auto row = [&](const Tensor& matrix, std::int64_t n) { return matrix.view().data_as<double>() + n * e; };
    const auto add = [&](std::vector<double>& sum, double factor, const double* numbers) {
      for (std::size_t n = 0; n < sum.size(); ++n) sum[n] += factor * numbers[n];
    };
    const auto dot = [&](const std::vector<double>& a, const double* b) {
      double sum = 0.0;
      for (std::size_t n = 0; n < a.size(); ++n) sum += a[n] * b[n];
      return sum;
    };
    const std::vector<double> own(row(x, i), row(x, i) + e);
    std::vector<double> combined;
    for (std::int64_t h = 0; h < sizes_.heads; ++h) {
      const std::int64_t key = e + h / (sizes_.heads / sizes_.kv_heads) * d, value = key + sizes_.key_width();
      std::vector<double> asked(static_cast<std::size_t>(e)), seen_x(static_cast<std::size_t>(e));
      for (std::int64_t n = 0; n < d; ++n) add(asked, dot(own, row(input_, h * d + n)), row(input_, key + n));
      std::vector<double> scores;
      for (std::int64_t j = 0; j < seen; ++j) {
        scores.push_back(dot(asked, row(x, j)) / std::sqrt(static_cast<double>(d)));
      }
      const double most = *std::ranges::max_element(scores);
      double sum = 0.0;
      for (double& score : scores) sum += score = std::exp(score - most);
      for (std::int64_t j = 0; j < seen; ++j) add(seen_x, scores[static_cast<std::size_t>(j)] / sum, row(x, j));
      for (std::int64_t n = 0; n < d; ++n) combined.push_back(dot(seen_x, row(input_, value + n)));
    }
    Tensor out = bias_.clone();
    for (std::int64_t n = 0; n < e; ++n) out.view().at<double>(n) += dot(combined, row(output_, n));
    return out;
  }

 private:
  MhaSizes sizes_;
  Tensor input_, output_, bias_;
};

// The error of rounding the result once to the variant's 16-bit type; 0 in f32.
double rounding(MhaVariant variant) {
  return type_of(variant) == DType::bf16 ? 4e-3 : type_of(variant) == DType::f16 ? 5e-4 : 0.0;
}

}  // namespace

MhaMemory::MhaMemory(const MhaSizes& sizes, const std::vector<MhaVariant>& variants) : heads_(sizes.heads) {
  const Dims shape{sizes.batch, sizes.tokens, sizes.embed};
  std::int64_t plane = 0;
  for (const MhaVariant variant : variants) {
    const DType type = type_of(variant);
    if (!x_.contains(type)) {
      x_.emplace(type, input(shape).to(type));
      out_.emplace(type, Tensor(shape, type));
    }
    if (trains(variant) && dx_.count() == 0) {
      dout_ = Tensor::copy_of(numbers(Layout::contiguous(shape).count(), 3, DType::f32).view().reshape(shape));
      dx_ = Tensor(shape);
    }
    if (!has_plane(variant)) continue;
    plane = std::max(plane, Layout::contiguous(plane_shape(variant, sizes.batch, sizes.heads, sizes.tokens)).count());
  }
  plane_ = Tensor({plane});
}

MhaCall MhaMemory::call(MhaVariant variant, int threads, std::int64_t batch, std::int64_t tokens) {
  const auto part = [&](const auto& all) { return all.slice(0, 0, batch).slice(1, 0, tokens); };
  MhaCall call{.x = part(ConstTensorView(x_.at(type_of(variant)))),
               .out = part(out_.at(type_of(variant)).view()),
               .threads = threads};
  if (trains(variant)) call.dout = part(ConstTensorView(dout_)), call.dx = part(dx_.view());
  if (!has_plane(variant)) return call;
  const Dims shape = plane_shape(variant, batch, heads_, tokens);
  const TensorView plane = plane_.view().slice(0, 0, Layout::contiguous(shape).count()).reshape(shape);
  (variant == MhaVariant::plain ? call.scores : call.weights) = plane;
  return call;
}

MhaChecker::MhaChecker(const MhaSizes& sizes, MhaMemory& memory)
    : sizes_(sizes), memory_(memory), parameters_(packed_layer(sizes, DType::f32)) {
  // Fewer tokens if the layer is wide, because the reference is slow.
  const double tokens = 0x1p26 / (static_cast<double>(sizes.embed) * static_cast<double>(sizes.embed));
  few_ = std::min(sizes.tokens, static_cast<std::int64_t>(std::clamp(tokens, 8.0, 128.0)));
}

// The results of the layer in f64, which the reference engine computes, with the parameters and the input of this
// variant.
const LayerResult& MhaChecker::reference(MhaVariant variant, const ConstTensorView& x) {
  const auto place = std::pair(type_of(variant), weights_of(variant));
  const auto known = references_.find(place);
  if (known != references_.end()) return known->second;
  const MultiHeadAttention rounded = packed_layer(sizes_, type_of(variant), &parameters_);
  LayerOptions options;
  options.attention.causal = sizes_.causal;
  options.weights = weights_of(variant);
  const MultiHeadAttention layer = packed_layer(sizes_, DType::f64, &rounded);
  return references_.emplace(place, layer.forward(Tensor::copy_of(x, DType::f64), options)).first->second;
}

BenchCheck MhaChecker::check_few(MhaVariant variant, MhaLayer& layer, int threads) {
  const MhaCall call = memory_.call(variant, threads, 1, few_);
  layer.run(call);
  if (trains(variant)) return check_few_back(variant, call, layer);
  const LayerResult& right = reference(variant, call.x);
  BenchCheck check{token_error(call.out, right.out), f32_limit() + rounding(variant)};
  if (call.weights.defined()) {
    // (1, L, L) stays as it is; in (1, Hq, L, L), heads take the place of the batch.
    const auto rows = [](const ConstTensorView& weights) {
      return weights.rank() == 3 ? weights : weights.select(0, 0);
    };
    check.error = worse(check.error, token_error(rows(call.weights), rows(right.weights)));
  }
  return check;
}

// Compares with the same layer in f64. Dropout depends only on its seed, so both layers drop the same weights.
BenchCheck MhaChecker::check_few_back(MhaVariant variant, const MhaCall& call, const MhaLayer& layer) const {
  const Tensor x = Tensor::copy_of(call.x, DType::f64), dout = Tensor::copy_of(call.dout, DType::f64);
  Tensor out(x.shape(), DType::f64), dx(x.shape(), DType::f64);
  TrainingLayer right(packed_layer(sizes_, DType::f64, &parameters_, dropout_of(variant)), sizes_.causal);
  right.run({.x = x, .out = out, .dout = dout, .dx = dx});
  double error = worse(token_error(call.out, out), token_error(call.dx, dx));
  for (std::size_t n = 0; n < right.gradients().size(); ++n) {
    error = worse(error, relative_error(layer.gradients()[n], right.gradients()[n]));
  }
  return {error, 2.0 * f32_limit()};  // the errors of forward and of backward
}

// Computes the expected output of a full call with packed qkv, and checks it against the formula: in the first and the
// last row of the batch, at the first, the middle and the last token.
BenchCheck MhaChecker::expect(const MhaCall& call) {
  expected_ = Tensor(call.out.shape());
  const Tensor x = input(call.x.shape());
  MhaLayer::make(MhaVariant::packed, sizes_, parameters_)->run({.x = x, .out = expected_, .threads = call.threads});
  const OneToken formula(sizes_, parameters_);
  BenchCheck check{0.0, f32_limit()};
  for (const std::int64_t b : std::set<std::int64_t>{0, sizes_.batch - 1}) {
    for (const std::int64_t i : std::set<std::int64_t>{0, sizes_.tokens / 2, sizes_.tokens - 1}) {
      const ConstTensorView got = expected_.view().select(0, b).select(0, i);
      check.error = worse(check.error, relative_error(got, formula(x.view().select(0, b), i)));
    }
  }
  return check;
}

BenchCheck MhaChecker::check_all(MhaVariant variant, const MhaCall& call) {
  if (expected_.count() == 0) expected_check_ = expect(call);
  if (!expected_check_.good()) return expected_check_;
  if (dropout_of(variant) > 0.0)
    return {0.0, f32_limit()};  // no reference to compare with; check_few checks a few tokens
  // In a 16-bit type, x, the parameters and intermediate results were rounded too.
  const BenchCheck check{token_error(call.out, expected_), 2.0 * f32_limit() + 5.0 * rounding(variant)};
  return variant == MhaVariant::packed ? worse_check(check, expected_check_) : check;
}

// The error limit in f32, for sums of E products and sums over L weights.
double MhaChecker::f32_limit() const {
  return 0x1p-22 * std::sqrt(static_cast<double>(std::max(sizes_.embed, sizes_.tokens)) + 16.0);
}

BenchCheck worse_check(const BenchCheck& a, const BenchCheck& b) {
  if (!a.good() || !b.good()) return a.good() ? b : a;
  return a.error / a.limit > b.error / b.limit ? a : b;
}

}  // namespace rapt::bench
