#include "cases/compare.h"

#include <cmath>
#include <limits>
#include <sstream>

namespace rapt::cases {

double relative_error(const ConstTensorView& got, const ConstTensorView& wanted) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (got.shape() != wanted.shape()) return kInfinity;
  const Tensor a = Tensor::copy_of(got, DType::f64);
  const Tensor b = Tensor::copy_of(wanted, DType::f64);
  double difference = 0.0;
  double norm = 0.0;
  bool differs = false;  // squares of tiny numbers vanish
  for (std::size_t n = 0; n < a.values<double>().size(); ++n) {
    const double x = a.values<double>()[n];
    const double y = b.values<double>()[n];
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (x == y) continue;
      return kInfinity;
    }
    differs = differs || x != y;
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  if (!differs) return 0.0;
  return norm == 0.0 ? kInfinity : std::sqrt(difference / norm);
}

double tolerance(const CaseSpec& spec, DType output) {
  // Half a unit in the last place of the output, the most that one rounding can do.
  const double rounding = output == DType::bf16 ? 0x1p-8 : output == DType::f16 ? 0x1p-11 : 0.0;
  if (spec.query_type == DType::f64) return 1e-12;
  // A score of size s carries an error of about s · 2^-24 · √D into the exponent, hence into the weight.
  const double score = std::max(1.0, spec.spread * spec.spread);
  return rounding + 1e-6 * score;
}

std::string mismatch(const CaseSpec& spec, const Answer& got, const Answer& wanted) {
  std::ostringstream text;
  const DType sums = spec.query_type == DType::f64 ? DType::f64 : DType::f32;
  const auto check = [&](const std::string& name, const Tensor& a, const Tensor& b, double allowed) {
    const double error = relative_error(a, b);
    if (!(error <= allowed)) text << name << " differs by " << error << ", allowed " << allowed << "; ";
  };
  check("out", got.out, wanted.out, tolerance(spec, spec.query_type));
  if (spec.lse) check("lse", got.lse, wanted.lse, tolerance(spec, sums));
  for (std::size_t n = 0; n < got.captures.size(); ++n) {
    check("capture " + std::to_string(n), got.captures[n], wanted.captures[n], tolerance(spec, sums));
  }
  return text.str();
}

}  // namespace rapt::cases
