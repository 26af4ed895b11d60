// Times the reference engine, forward and backward, so that its cost is known before a faster engine is held against
// it. Each case is checked before it is timed: forward against the formula written out here, backward against the
// slope of forward along one direction.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "rapt/attention.h"
#include "rapt/random.h"

namespace {

struct Case {
  const char* name;
  std::int64_t batch, heads, kv_heads, queries, keys, size;
  bool causal;
};

// Numbers in [-1, 1) that depend only on the stream and the place.
rapt::Tensor numbers(const rapt::Dims& shape, std::uint32_t stream, rapt::DType dtype) {
  rapt::Tensor tensor(shape, rapt::DType::f64);
  std::uint32_t place = 0;
  for (double& value : tensor.values<double>()) {
    value = rapt::philox4x32_10({place++, 0, 0, stream}, {1, 2})[0] * 0x1p-31 - 1.0;
  }
  return dtype == rapt::DType::f64 ? std::move(tensor) : tensor.to(dtype);
}

struct Inputs {
  rapt::Tensor q, k, v;
};

Inputs inputs_of(const Case& c, rapt::DType dtype) {
  return {numbers({c.batch, c.heads, c.queries, c.size}, 1, dtype),
          numbers({c.batch, c.kv_heads, c.keys, c.size}, 2, dtype),
          numbers({c.batch, c.kv_heads, c.keys, c.size}, 3, dtype)};
}

rapt::AttentionOptions options_of(const Case& c) {
  rapt::AttentionOptions options{.causal = c.causal, .engine = rapt::Engine::reference};
  if (c.queries != c.keys) options.alignment = rapt::Alignment::bottom_right();
  return options;
}

// The formula, for f64 inputs. Returns the norm of the difference over the norm of the answer.
double forward_error(const Case& c, const Inputs& in, const rapt::Tensor& out) {
  const std::int64_t offset = c.causal ? c.keys - c.queries : 0;
  double wrong = 0.0, right = 0.0;
  std::vector<double> p(static_cast<std::size_t>(c.keys));
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const std::int64_t kv = h / (c.heads / c.kv_heads);
      for (std::int64_t i = 0; i < c.queries; ++i) {
        const std::int64_t seen = c.causal ? std::min(c.keys, i + offset + 1) : c.keys;
        double sum = 0.0;
        for (std::int64_t j = 0; j < seen; ++j) {  // scores stay within ±sqrt(D), so exp needs no maximum
          double s = 0.0;
          for (std::int64_t d = 0; d < c.size; ++d) {
            s += in.q.view().at<double>(b, h, i, d) * in.k.view().at<double>(b, kv, j, d);
          }
          sum += p[static_cast<std::size_t>(j)] = std::exp(s / std::sqrt(static_cast<double>(c.size)));
        }
        for (std::int64_t d = 0; d < c.size; ++d) {
          double expected = 0.0;
          for (std::int64_t j = 0; j < seen; ++j) {
            expected += p[static_cast<std::size_t>(j)] / sum * in.v.view().at<double>(b, kv, j, d);
          }
          const double difference = out.view().at<double>(b, h, i, d) - expected;
          wrong += difference * difference;
          right += expected * expected;
        }
      }
    }
  }
  return std::sqrt(wrong / right);
}

double dot(const rapt::Tensor& a, const rapt::Tensor& b) {
  double sum = 0.0;
  for (std::size_t n = 0; n < a.values<double>().size(); ++n) sum += a.values<double>()[n] * b.values<double>()[n];
  return sum;
}

rapt::Tensor moved(const rapt::Tensor& from, const rapt::Tensor& along, double step) {
  rapt::Tensor to = from.clone();
  for (std::size_t n = 0; n < to.values<double>().size(); ++n)
    to.values<double>()[n] += step * along.values<double>()[n];
  return to;
}

// How far the gradients are from the slope of (dout · out) along a direction of all three inputs, relatively.
double backward_error(const Case& c, const Inputs& in, const rapt::Tensor& dout) {
  const Inputs along = {numbers(in.q.shape(), 5, rapt::DType::f64), numbers(in.k.shape(), 6, rapt::DType::f64),
                        numbers(in.v.shape(), 7, rapt::DType::f64)};
  rapt::Tensor dq(in.q.shape(), rapt::DType::f64), dk(in.k.shape(), rapt::DType::f64),
      dv(in.v.shape(), rapt::DType::f64);
  rapt::attention_backward({.dquery = dq, .dkey = dk, .dvalue = dv}, {.dout = dout}, in.q, in.k, in.v, options_of(c));
  const double gradient = dot(dq, along.q) + dot(dk, along.k) + dot(dv, along.v);

  const auto loss = [&](double step) {
    return dot(dout, rapt::attention(moved(in.q, along.q, step), moved(in.k, along.k, step), moved(in.v, along.v, step),
                                     options_of(c)));
  };
  const double step = 1e-5;
  const double slope = (loss(step) - loss(-step)) / (2.0 * step);
  return std::abs(gradient - slope) / std::max(std::abs(slope), 1e-3);
}

// The median of several runs, in milliseconds. The first run is not counted.
double median_ms(const std::function<void()>& work) {
  constexpr int kRuns = 7;
  std::vector<double> ms;
  for (int run = 0; run <= kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    if (run > 0) ms.push_back(taken.count());
  }
  std::nth_element(ms.begin(), ms.begin() + kRuns / 2, ms.end());
  return ms[kRuns / 2];
}

bool check(const Case& c) {
  const Inputs in = inputs_of(c, rapt::DType::f64);
  const rapt::Tensor dout = numbers({c.batch, c.heads, c.queries, c.size}, 4, rapt::DType::f64);
  const double forward = forward_error(c, in, rapt::attention(in.q, in.k, in.v, options_of(c)));
  const double backward = backward_error(c, in, dout);
  if (forward < 1e-12 && backward < 1e-6) return true;
  std::printf("%-24s wrong: forward is off by %.1e, backward by %.1e\n", c.name, forward, backward);
  return false;
}

void time(const Case& c) {
  const Inputs in = inputs_of(c, rapt::DType::f32);
  const rapt::Tensor dout = numbers({c.batch, c.heads, c.queries, c.size}, 4, rapt::DType::f32);
  rapt::Tensor out(dout.shape()), dq(in.q.shape()), dk(in.k.shape()), dv(in.v.shape());

  const double forward = median_ms([&] { rapt::attention({.out = out}, in.q, in.k, in.v, options_of(c)); });
  const double backward = median_ms([&] {
    rapt::attention_backward({.dquery = dq, .dkey = dk, .dvalue = dv}, {.dout = dout}, in.q, in.k, in.v, options_of(c));
  });
  // Useful work: two matrix products of 2·Lq·Lk·D each; causal with Lq = Lk sees half of it.
  const double seen = (c.causal && c.queries == c.keys ? 0.5 : 1.0) * static_cast<double>(c.queries * c.keys);
  const double flops = 4.0 * seen * static_cast<double>(c.batch * c.heads * c.size);
  std::printf("%-24s %10.3f %10.2f %12.3f\n", c.name, forward, flops / forward / 1e6, backward);
}

}  // namespace

int main() {
  const Case cases[] = {
      {"b1 h4 n128 d64", 1, 4, 4, 128, 128, 64, false},
      {"b1 h4 n128 d64 causal", 1, 4, 4, 128, 128, 64, true},
      {"b1 h4/2 n256 d64 causal", 1, 4, 2, 256, 256, 64, true},
      {"b8 h8 1 query, 512 keys", 8, 8, 8, 1, 512, 64, true},
  };
  std::printf("reference engine, f32, %d threads, medians\n", rapt::thread_count());
  std::printf("%-24s %10s %10s %12s\n", "case", "forward ms", "GFLOP/s", "backward ms");
  bool all_right = true;
  for (const Case& c : cases) {
    if (check(c)) {
      time(c);
    } else {
      all_right = false;
    }
  }
  return all_right ? 0 : 1;
}
