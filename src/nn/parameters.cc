#include "nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "core/elements.h"
#include "rapt/random.h"

namespace rapt::nn {

namespace {

using Draw = Parameter::Draw;

// Random number n of a parameter, in [0, 1): it comes from word n mod 4 of counter ⌊n / 4⌋.
double uniform(std::uint64_t seed, std::uint32_t parameter, std::uint64_t n) {
  const std::uint64_t block = n / 4;
  const PhiloxCounter words = philox4x32_10(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), parameter, 0}, philox_key(seed));
  return static_cast<double>(words[n % 4]) * 0x1p-32;
}

// Box–Muller transform: from two uniform numbers to a normal one.
double normal(std::uint64_t seed, std::uint32_t parameter, std::uint64_t n) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(seed, parameter, 2 * n)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(seed, parameter, 2 * n + 1));
}

double drawn(const Parameter& parameter, std::uint64_t seed, std::uint32_t number, std::uint64_t n) {
  switch (parameter.draw) {
    case Draw::uniform: return parameter.size * (2.0 * uniform(seed, number, n) - 1.0);
    case Draw::normal: return parameter.size * normal(seed, number, n);
    case Draw::zero: break;
  }
  return 0.0;
}

// PyTorch's bounds for uniform initialization. The Xavier bound depends on both dimensions of a matrix (outputs,
// inputs), the bound of nn.Linear only on its inputs.
double xavier_bound(const Dims& shape) { return std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1])); }
double linear_bound(const Dims& shape) { return 1.0 / std::sqrt(static_cast<double>(shape[1])); }

// Both parameters, the whole layer's and a slice's, are (outer, size along dim, inner).
std::int64_t inner_size(const Parameter& parameter) {
  return Layout::contiguous(parameter.whole_shape).strides[parameter.dim];
}
std::int64_t outer_size(const Parameter& parameter) {
  return parameter.value.count() / (inner_size(parameter) * parameter.value.size(parameter.dim));
}

}  // namespace

Parameters::Parameters(const MultiHeadAttentionConfig& config) {
  const Widths whole(config, 1);
  const Widths own(config, config.slice.count);
  const std::int64_t n = config.slice.index;
  const Parameter::Piece q = {n * own.query, 0, own.query};
  const Parameter::Piece k = {n * own.key, 0, own.key};
  const auto after = [](Parameter::Piece piece, std::int64_t in_whole, std::int64_t in_own) {
    return Parameter::Piece{piece.whole_begin + in_whole, piece.begin + in_own, piece.count};
  };
  const std::vector<Parameter::Piece> packed = {q, after(k, whole.query, own.query),
                                                after(k, whole.query + whole.key, own.query + own.key)};
  const auto matrix = [&](const char* name, Dims shape, int dim, std::vector<Parameter::Piece> pieces, double bound) {
    add({name, shape, dim, std::move(pieces), Draw::uniform, bound, {}}, config.dtype);
  };

  if (config.separate_projections) {
    const Dims of_q = {whole.query, config.embed_size};
    const Dims of_k = {whole.key, config.key_size};
    const Dims of_v = {whole.key, config.value_size};
    matrix("q_proj_weight", of_q, 0, {q}, xavier_bound(of_q));
    matrix("k_proj_weight", of_k, 0, {k}, xavier_bound(of_k));
    matrix("v_proj_weight", of_v, 0, {k}, xavier_bound(of_v));
  } else {
    const Dims shape = {whole.all(), config.embed_size};
    matrix("in_proj_weight", shape, 0, packed, xavier_bound(shape));
  }
  if (config.bias) add({"in_proj_bias", {whole.all()}, 0, packed, Draw::zero, 0.0, {}}, config.dtype);
  if (config.add_bias_kv) {
    const double deviation = 1.0 / std::sqrt(static_cast<double>(whole.key));
    for (const char* name : {"bias_k", "bias_v"}) {
      add({name, {1, 1, whole.key}, 2, {k}, Draw::normal, deviation, {}}, config.dtype);
    }
  }
  const Dims out = {config.output_size, whole.query};
  matrix("out_proj.weight", out, 1, {q}, linear_bound(out));
  if (*config.output_bias) {
    add({"out_proj.bias", {config.output_size}, 0, {{0, 0, config.output_size}}, Draw::zero, 0.0, {}}, config.dtype);
  }
}

void Parameters::add(Parameter parameter, DType dtype) {
  Dims shape = parameter.whole_shape;
  shape[parameter.dim] = 0;
  for (const Parameter::Piece& piece : parameter.pieces) shape[parameter.dim] += piece.count;
  parameter.value = Tensor(shape, dtype);
  list_.push_back(std::move(parameter));
}

void Parameters::draw(std::uint64_t seed) {
  std::uint32_t number = 0;
  for (Parameter& parameter : list_) {
    const std::int64_t inner = inner_size(parameter);
    const TensorView value = parameter.value.view();
    for (const Parameter::Piece& piece : parameter.pieces) {
      for (std::int64_t outer = 0; outer < outer_size(parameter); ++outer) {
        // A contiguous piece of the whole parameter.
        const std::int64_t from = (outer * parameter.whole_shape[parameter.dim] + piece.whole_begin) * inner;
        const std::int64_t to = (outer * value.size(parameter.dim) + piece.begin) * inner;
        for (std::int64_t n = 0; n < piece.count * inner; ++n) {
          store(value.data(), value.dtype(), to + n,
                drawn(parameter, seed, number, static_cast<std::uint64_t>(from + n)));
        }
      }
    }
    ++number;
  }
}

void Parameters::take_from(const Parameters& whole) {
  for (Parameter& parameter : list_) {
    const ConstTensorView from = whole[parameter.name];
    for (const Parameter::Piece& piece : parameter.pieces) {
      copy(from.slice(parameter.dim, piece.whole_begin, piece.whole_begin + piece.count),
           parameter.value.view().slice(parameter.dim, piece.begin, piece.begin + piece.count));
    }
  }
}

Parameter* Parameters::find(std::string_view name) {
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const Parameter& p) { return p.name == name; });
  return found == list_.end() ? nullptr : &*found;
}

ConstTensorView Parameters::operator[](std::string_view name) const {
  for (const Parameter& parameter : list_) {
    if (parameter.name == name) return parameter.value.view();
  }
  return {};
}

}  // namespace rapt::nn
