// Compares every gradient with central finite differences of forward.
#include <cmath>
#include <deque>

#include <gtest/gtest.h>

#include "cases/list.h"

namespace rapt {
namespace {

using cases::Case;
using cases::CaseSpec;

std::vector<CaseSpec> small_cases() {
  std::vector<CaseSpec> small;
  for (CaseSpec spec : cases::all_cases()) {
    const std::int64_t work = spec.batch * spec.query_heads * spec.queries * spec.keys * spec.head_size;
    if (work > 20000) continue;
    spec.query_type = spec.kv_type = DType::f64;
    spec.page_size = 0;
    for (auto& mask : spec.masks) {
      // A step of 1e-5 has too few digits next to −1e9, so finite special values are left out. −inf stays: its gradient
      // must be 0.
      if (mask.kind == Mask::Kind::add)
        mask.dtype = DType::f64, mask.special = std::isinf(mask.special) ? mask.special : 0;
    }
    small.push_back(std::move(spec));
  }
  return small;
}

class EverySmallCase : public testing::TestWithParam<CaseSpec> {};
INSTANTIATE_TEST_SUITE_P(Cases, EverySmallCase, testing::ValuesIn(small_cases()),
                         [](const auto& instance) { return instance.param.name; });

// A scalar made of everything forward returns: Σ dout·out + Σ dlse·lse + Σ dweights·weights. Its derivative with
// respect to any input is what backward must return.
class Loss {
 public:
  explicit Loss(const Case& test)
      : spec_(test.spec),
        query_(Tensor::copy_of(test.query)),
        key_(Tensor::copy_of(test.key)),
        value_(Tensor::copy_of(test.value)),
        options_(test.options) {
    for (Mask& mask : options_.masks) mask.view = masks_.emplace_back(Tensor::copy_of(mask.view)).view();
    if (options_.sinks.defined()) {
      sinks_ = Tensor::copy_of(options_.sinks);
      options_.sinks = sinks_.view();
    }
    const Dims rows{spec_.batch, spec_.query_heads, spec_.queries};
    const Dims all{spec_.batch, spec_.query_heads, spec_.queries, spec_.keys};
    const Dims mean{spec_.batch, spec_.queries, spec_.keys};
    add_weights(Stage::dropped_weights, {}, all);
    add_weights(Stage::weights, {}, all);
    add_weights(Stage::weights, {.mean_over_heads = true}, mean);
    if (spec_.query_heads > 0 && spec_.queries > 0) {
      const Selection some{.heads = {spec_.query_heads - 1, 0}, .queries = {spec_.queries - 1}};
      add_weights(Stage::dropped_weights, some, {spec_.batch, 2, 1, spec_.keys});
    }
    dout_ = random({spec_.batch, spec_.query_heads, spec_.queries, spec_.value_size});
    dlse_ = random(rows);
    leave_out_huge_lse();
  }

  double operator()() const {
    Tensor out(dout_.shape(), DType::f64), lse(dlse_.shape(), DType::f64);
    AttentionOutputs outputs{.out = out, .lse = lse};
    std::vector<Tensor> weights;
    for (const auto& gradient : dweights_) {
      weights.emplace_back(gradient.values.shape(), DType::f64);
      outputs.captures.push_back({gradient.stage, weights.back(), gradient.of});
    }
    attention(outputs, query_, key_, value_, options_);
    double loss = product(dout_, out) + product(dlse_, lse);
    for (std::size_t n = 0; n < weights.size(); ++n) loss += product(dweights_[n].values, weights[n]);
    return loss;
  }

  // Compares the gradient with differences, at up to 40 places of the input.
  void check() {
    Tensor dquery(query_.shape(), DType::f64), dkey(key_.shape(), DType::f64), dvalue(value_.shape(), DType::f64);
    Tensor dsinks(sinks_.shape(), DType::f64);
    std::deque<Tensor> dmasks;
    AttentionGradients gradients{.dquery = dquery, .dkey = dkey, .dvalue = dvalue};
    if (options_.sinks.defined()) gradients.dsinks = dsinks;
    for (std::size_t n = 0; n < options_.masks.size(); ++n) {
      if (options_.masks[n].kind != Mask::Kind::add) continue;
      gradients.dmasks.push_back({n, dmasks.emplace_back(masks_[n].shape(), DType::f64).view()});
    }
    AttentionUpstream upstream{.dout = dout_, .dlse = dlse_};
    for (const auto& gradient : dweights_) upstream.dweights.push_back({gradient.stage, gradient.values, gradient.of});
    attention_backward(gradients, upstream, query_, key_, value_, options_);

    check_one("dquery", query_, dquery);
    check_one("dkey", key_, dkey);
    check_one("dvalue", value_, dvalue);
    if (options_.sinks.defined()) check_one("dsinks", sinks_, dsinks);
    for (std::size_t n = 0; n < gradients.dmasks.size(); ++n) {
      check_one("dmask", masks_[gradients.dmasks[n].mask], dmasks[n]);
    }
  }

 private:
  struct Weights {
    Stage stage;
    Selection of;
    Tensor values;
  };

  // With an lse of −1e9 the loss has no digits left for other terms, and at −inf the lse has no derivative.
  void leave_out_huge_lse() {
    Tensor out(dout_.shape(), DType::f64), lse(dlse_.shape(), DType::f64);
    attention({.out = out, .lse = lse}, query_, key_, value_, options_);
    for (std::size_t n = 0; n < lse.values<double>().size(); ++n) {
      if (std::abs(lse.values<double>()[n]) > 1e4) dlse_.values<double>()[n] = 0.0;
    }
  }

  void add_weights(Stage stage, const Selection& of, const Dims& shape) {
    dweights_.push_back({stage, of, random(shape)});
  }

  Tensor random(const Dims& shape) {
    Tensor tensor(shape, DType::f64);
    cases::Stream stream(spec_.seed, number_++);
    for (double& value : tensor.values<double>()) value = 2.0 * stream.uniform() - 1.0;
    return tensor;
  }

  static double product(const Tensor& gradient, const Tensor& values) {
    double sum = 0.0;
    for (std::size_t n = 0; n < values.values<double>().size(); ++n) {
      const double factor = gradient.values<double>()[n];
      if (factor != 0.0) sum += factor * values.values<double>()[n];
    }
    return sum;
  }

  void check_one(const char* name, Tensor& input, const Tensor& gradient) {
    const std::span<double> values = input.values<double>();
    const std::size_t step = std::max<std::size_t>(1, values.size() / 40);
    for (std::size_t n = 0; n < values.size(); n += step) {
      const double value = values[n];
      const double got = gradient.values<double>()[n];
      if (!std::isfinite(value)) {  // past a key length, or −inf in a mask
        EXPECT_EQ(got, 0.0) << name << '[' << n << ']';
        continue;
      }
      constexpr double kStep = 1e-5;
      values[n] = value + kStep;
      const double above = (*this)();
      values[n] = value - kStep;
      const double below = (*this)();
      values[n] = value;
      const double wanted = (above - below) / (2.0 * kStep);
      EXPECT_NEAR(got, wanted, 2e-8 * std::max(1.0, std::abs(wanted))) << name << '[' << n << ']';
    }
  }

  CaseSpec spec_;
  Tensor query_, key_, value_, sinks_;
  std::deque<Tensor> masks_;
  AttentionOptions options_;
  Tensor dout_, dlse_;
  std::vector<Weights> dweights_;
  std::uint32_t number_ = 200;
};

TEST_P(EverySmallCase, HasTheGradientsThatFiniteDifferencesGive) {
  const Case test(GetParam());
  Loss(test).check();
}

// dsink_h = −Σ exp(sink_h − lse) · (dout·out) when dout is the only upstream gradient.
TEST(SinkGradient, HasItsClosedForm) {
  CaseSpec spec{.name = "sinks", .query_type = DType::f64, .kv_type = DType::f64, .causal = true, .sinks = true};
  const Case test(spec);
  Tensor out({2, 2, 7, 8}, DType::f64), lse({2, 2, 7}, DType::f64), dout({2, 2, 7, 8}, DType::f64);
  for (std::size_t n = 0; n < dout.values<double>().size(); ++n) dout.values<double>()[n] = std::cos(0.1 * double(n));
  attention({.out = out, .lse = lse}, test.query, test.key, test.value, test.options);
  Tensor dsinks({2}, DType::f64);
  attention_backward({.dsinks = dsinks}, {.dout = dout}, test.query, test.key, test.value, test.options);
  for (std::int64_t h = 0; h < 2; ++h) {
    double wanted = 0.0;
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t i = 0; i < 7; ++i) {
        double dot = 0.0;
        for (std::int64_t d = 0; d < 8; ++d)
          dot += dout.view().at<double>(b, h, i, d) * out.view().at<double>(b, h, i, d);
        wanted -= std::exp(test.options.sinks.at<double>(h) - lse.view().at<double>(b, h, i)) * dot;
      }
    }
    EXPECT_NEAR(dsinks.view().at<double>(h), wanted, 1e-13);
  }
}

}  // namespace
}  // namespace rapt
