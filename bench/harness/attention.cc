#include "bench/harness/attention.h"

#include <algorithm>
#include <set>
#include <span>

#include "bench/harness/backward.h"
#include "bench/harness/numbers.h"
#include "rapt/cuda.h"
#include "rapt/random.h"

namespace rapt::bench {
namespace {

// A bool mask that hides one key in sixteen, at scattered positions, so that no tile is entirely hidden or entirely
// visible.
Tensor holes(std::int64_t count) {
  Tensor tensor({count}, DType::boolean);
  const std::span<bool> values = tensor.values<bool>();
  for (std::size_t n = 0; n < values.size(); n += 32) {
    const PhiloxCounter bits = philox4x32_10({static_cast<std::uint32_t>(n), 0, 0, 9}, {1, 2});
    for (std::size_t m = n; m < std::min(values.size(), n + 32); ++m) {
      values[m] = ((bits[(m - n) / 8] >> (4 * (m % 8))) & 15U) != 0;
    }
  }
  return tensor;
}

Dims mask_shape(const BenchCase& c) {
  return is_full(c.mask) ? Dims{c.batch, c.heads, c.queries, c.keys} : Dims{1, 1, c.queries, c.keys};
}

Dims weights_shape(const BenchCase& c) {
  return c.weights == BenchWeights::all ? Dims{c.batch, c.heads, c.queries, c.keys} : Dims{c.batch, c.queries, c.keys};
}

std::int64_t count_of(const Dims& shape) { return Layout::contiguous(shape).count(); }

// The first elements of `memory`, viewed with a shape.
TensorView front(const TensorView& memory, const Dims& shape) {
  return memory.slice(0, 0, count_of(shape)).reshape(shape);
}
ConstTensorView front(const ConstTensorView& memory, const Dims& shape) {
  return memory.slice(0, 0, count_of(shape)).reshape(shape);
}

// The largest error, relative to the reference engine, of query i of batch row b over the query heads of kv heads kv …
// kv_end − 1, and of their captured weights.
double row_error(const BenchCase& c, const BenchCall& call, std::int64_t b, std::int64_t kv, std::int64_t kv_end,
                 std::int64_t i) {
  const std::int64_t group = c.heads / c.kv_heads;
  const auto heads_of = [&](const auto& view) {
    return view.slice(0, b, b + 1).slice(1, kv * group, kv_end * group).slice(2, i, i + 1);
  };
  AttentionOptions options{.causal = c.causal, .window = c.window};
  options.alignment = Alignment::offset(c.offset() + i);
  options.engine = Engine::reference;
  for (const Mask& mask : call.options.masks) {
    const bool full = is_full(c.mask);
    options.masks.push_back({mask.kind, full ? heads_of(mask.view) : mask.view.slice(2, i, i + 1), mask.value});
  }
  const ConstTensorView query = heads_of(call.query);
  Tensor out(query.shape(), c.dtype);
  AttentionOutputs outputs{.out = out};
  ConstTensorView got_weights;
  Tensor weights;
  if (!call.outputs.captures.empty()) {
    const Capture& capture = call.outputs.captures[0];
    const bool mean = capture.of.mean_over_heads;
    got_weights = mean ? capture.to.slice(0, b, b + 1).slice(1, i, i + 1) : heads_of(capture.to);
    weights = Tensor(got_weights.shape(), c.dtype);
    outputs.captures.push_back({capture.stage, weights, capture.of});
  }
  attention(outputs, query, call.key.slice(0, b, b + 1).slice(1, kv, kv_end),
            call.value.slice(0, b, b + 1).slice(1, kv, kv_end), options);

  double error = 0.0;
  for (std::int64_t h = 0; h < out.size(1); ++h) {
    error = worse(error, relative_error(heads_of(call.outputs.out).select(1, h), out.view().select(1, h)));
  }
  return got_weights.defined() ? worse(error, relative_error(got_weights, weights)) : error;
}

}  // namespace

// Most of the error comes, in f32, from the sums, which are rounded to 24 bits at each step, and in 16-bit types from
// rounding the result.
double error_limit(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-12;
    case DType::bf16: return 4e-3;
    case DType::f16: return 5e-4;
    default: return 2e-6;
  }
}

BenchMemory::BenchMemory(const std::vector<BenchCase>& cases, Device device) : device_(device) {
  struct Most {
    std::int64_t query = 0, key = 0, weights = 0;
    bool backward = false;
  };
  std::vector<std::pair<DType, Most>> most;
  std::int64_t bools = 0;
  std::int64_t floats = 0;
  for (const BenchCase& c : cases) {
    auto place = std::find_if(most.begin(), most.end(), [&](const auto& each) { return each.first == c.dtype; });
    if (place == most.end()) place = most.insert(most.end(), {c.dtype, {}});
    Most& m = place->second;
    m.query = std::max(m.query, c.batch * c.heads * c.queries * c.dim);
    m.key = std::max(m.key, c.batch * c.kv_heads * c.keys * c.dim);
    m.backward = m.backward || c.backward;
    if (c.weights != BenchWeights::none) m.weights = std::max(m.weights, count_of(weights_shape(c)));
    if (c.mask != BenchMask::none) {
      std::int64_t& masks = is_bool(c.mask) ? bools : floats;
      masks = std::max(masks, count_of(mask_shape(c)));
    }
  }
  const auto moved = [&](Tensor here) { return device.kind == Device::Kind::cpu ? std::move(here) : here.to(device); };
  for (const auto& [dtype, m] : most) {
    const std::int64_t dquery = m.backward ? m.query : 0, dkey = m.backward ? m.key : 0;
    const auto drawn = [&, type = dtype](std::int64_t count, std::uint32_t stream) {
      return moved(numbers(count, stream, type));
    };
    const auto empty = [&, type = dtype](std::int64_t count) { return Tensor({count}, type, device); };
    types_.push_back({dtype, drawn(m.query, 1), drawn(m.key, 2), drawn(m.key, 3), empty(m.query - dquery),
                      empty(m.weights), drawn(dquery, 5), empty(dquery), empty(dkey), empty(dkey)});
  }
  bool_mask_ = moved(holes(bools));
  float_mask_ = moved(numbers(floats, 4, DType::f32));
}

const BenchMemory::OfType& BenchMemory::of(DType dtype) const {
  return *std::find_if(types_.begin(), types_.end(), [&](const OfType& each) { return each.dtype == dtype; });
}
BenchMemory::OfType& BenchMemory::of(DType dtype) {
  return *std::find_if(types_.begin(), types_.end(), [&](const OfType& each) { return each.dtype == dtype; });
}

ConstTensorView BenchMemory::query(const BenchCase& c) const {
  return front(of(c.dtype).query.view(), {c.batch, c.heads, c.queries, c.dim});
}
ConstTensorView BenchMemory::key(const BenchCase& c) const {
  return front(of(c.dtype).key.view(), {c.batch, c.kv_heads, c.keys, c.dim});
}
ConstTensorView BenchMemory::value(const BenchCase& c) const {
  return front(of(c.dtype).value.view(), {c.batch, c.kv_heads, c.keys, c.dim});
}
ConstTensorView BenchMemory::mask(const BenchCase& c) const {
  if (c.mask == BenchMask::none) return {};
  return front(is_bool(c.mask) ? bool_mask_.view() : float_mask_.view(), mask_shape(c));
}
TensorView BenchMemory::out(const BenchCase& c) {
  return front(of(c.dtype).out.view(), {c.batch, c.heads, c.queries, c.dim});
}
TensorView BenchMemory::weights(const BenchCase& c) {
  if (c.weights == BenchWeights::none) return {};
  return front(of(c.dtype).weights.view(), weights_shape(c));
}

ConstTensorView BenchMemory::dout(const BenchCase& c) const {
  return front(of(c.dtype).dout.view(), {c.batch, c.heads, c.queries, c.dim});
}
TensorView BenchMemory::dquery(const BenchCase& c) {
  return front(of(c.dtype).dquery.view(), {c.batch, c.heads, c.queries, c.dim});
}
TensorView BenchMemory::dkey(const BenchCase& c) {
  return front(of(c.dtype).dkey.view(), {c.batch, c.kv_heads, c.keys, c.dim});
}
TensorView BenchMemory::dvalue(const BenchCase& c) {
  return front(of(c.dtype).dvalue.view(), {c.batch, c.kv_heads, c.keys, c.dim});
}

BenchCall::BenchCall(const BenchCase& c, BenchMemory& memory, Engine engine)
    : backward(c.backward), query(memory.query(c)), key(memory.key(c)), value(memory.value(c)) {
  if (backward) {
    own_out = Tensor(query.shape(), c.dtype, memory.device());
    own_lse = Tensor({c.batch, c.heads, c.queries}, c.dtype == DType::f64 ? DType::f64 : DType::f32, memory.device());
    outputs = {.out = own_out, .lse = own_lse};
    upstream = {.dout = memory.dout(c), .out = own_out, .lse = own_lse};
    gradients = {.dquery = memory.dquery(c), .dkey = memory.dkey(c), .dvalue = memory.dvalue(c)};
  } else {
    outputs.out = memory.out(c);
  }
  if (c.weights != BenchWeights::none) {
    outputs.captures.push_back({.to = memory.weights(c), .of = {.mean_over_heads = c.weights == BenchWeights::mean}});
  }
  options.causal = c.causal;
  options.window = c.window;
  options.alignment = Alignment::bottom_right();
  if (c.mask != BenchMask::none) {
    options.masks.push_back(is_bool(c.mask) ? Mask::keep(memory.mask(c)) : Mask::add(memory.mask(c)));
  }
  options.engine = engine;
  options.threads = c.threads;
  if (memory.device().kind == Device::Kind::cpu) return;
  std::size_t bytes = attention_workspace_bytes(outputs, query, key, value, options);
  if (backward) {
    bytes = std::max(bytes, attention_backward_workspace_bytes(gradients, upstream, query, key, value, options));
  }
  own_workspace_ = Tensor({static_cast<std::int64_t>(bytes)}, DType::i8, memory.device());
  options.workspace = {static_cast<std::byte*>(own_workspace_.view().data()), bytes};
}

void BenchCall::run() const {
  if (!backward) return forward();
  attention_backward(gradients, upstream, query, key, value, options);
}

void BenchCall::wait() const {
  if (query.device().kind != Device::Kind::cpu) cuda::Stream::of(options.stream.handle).wait();
}

BenchCall BenchCall::on_cpu() const {
  BenchCall call;
  const auto copied = [&](const ConstTensorView& view) -> TensorView {
    if (!view.defined()) return {};
    return call.copies_.emplace_back(Tensor::copy_of(view, view.dtype(), Device{})).view();
  };
  call.backward = backward;
  call.query = copied(query), call.key = copied(key), call.value = copied(value);
  call.outputs = {.out = copied(outputs.out), .lse = copied(outputs.lse)};
  for (const Capture& capture : outputs.captures) {
    call.outputs.captures.push_back({capture.stage, copied(capture.to), capture.of});
  }
  call.options = options;
  call.options.workspace = {};
  for (Mask& mask : call.options.masks) mask.view = copied(mask.view);
  if (backward) {
    call.upstream = {.dout = copied(upstream.dout), .out = call.outputs.out, .lse = call.outputs.lse};
    call.gradients = {
        .dquery = copied(gradients.dquery), .dkey = copied(gradients.dkey), .dvalue = copied(gradients.dvalue)};
  }
  return call;
}

namespace {

// Checks a call that has run.
BenchCheck compare(const BenchCase& c, const BenchCall& call) {
  if (c.backward) return compare_backward(c, call);
  const std::set<std::int64_t> rows{0, std::min<std::int64_t>(1, c.queries - 1), c.queries / 3, c.queries / 2,
                                    c.queries - 1};
  // A mean over heads needs all heads; otherwise the first and the last kv head are enough.
  const bool mean = c.weights == BenchWeights::mean;
  const std::set<std::int64_t> kv_heads = mean ? std::set<std::int64_t>{0} : std::set<std::int64_t>{0, c.kv_heads - 1};
  BenchCheck result{.limit = error_limit(c.dtype)};
  for (const std::int64_t b : std::set<std::int64_t>{0, c.batch - 1}) {
    for (const std::int64_t kv : kv_heads) {
      for (const std::int64_t i : rows) {
        result.error = worse(result.error, row_error(c, call, b, kv, mean ? c.kv_heads : kv + 1, i));
      }
    }
  }
  return result;
}

}  // namespace

BenchCheck check(const BenchCase& c, const BenchCall& call) {
  if (c.backward) call.forward();
  call.run();
  return call.query.device().kind == Device::Kind::cpu ? compare(c, call) : compare(c, call.on_cpu());
}

}  // namespace rapt::bench
