// The parameters of a layer: which there are, how a slice's lie in the whole layer's, and what they begin as.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rapt/multi_head_attention.h"

namespace rapt::nn {

// What the projections give, in numbers for each token, of the whole layer or of a slice.
struct Widths {
  // `slices`: config.slice.count for what one slice has, 1 for the whole.
  Widths(const MultiHeadAttentionConfig& config, std::int64_t slices)
      : query(config.heads * config.head_size / slices), key(config.kv_heads * config.head_size / slices) {}

  std::int64_t all() const { return query + 2 * key; }

  std::int64_t query;  // Hq · D
  std::int64_t key;    // Hkv · D, and so for values
};

// One parameter. Along dimension `dim`, `pieces` say which parts of the whole layer's parameter it is made of.
struct Parameter {
  struct Piece {
    std::int64_t whole_begin, begin, count;
  };
  enum class Draw : std::uint8_t { zero, uniform, normal };

  const char* name;
  Dims whole_shape;
  int dim;
  std::vector<Piece> pieces;
  Draw draw;
  double size;  // the bound of a uniform distribution, the deviation of a normal one
  Tensor value;
};

class Parameters {
 public:
  // All of a layer, or of a slice, set to zero. `config` has every default filled in.
  explicit Parameters(const MultiHeadAttentionConfig& config);

  void draw(std::uint64_t seed);
  // The parts of a whole layer's parameters that make up this slice's.
  void take_from(const Parameters& whole);

  const std::vector<Parameter>& list() const { return list_; }
  std::vector<Parameter>& list() { return list_; }
  Parameter* find(std::string_view name);
  // Undefined where the layer has no such parameter.
  ConstTensorView operator[](std::string_view name) const;

 private:
  void add(Parameter parameter, DType dtype);

  std::vector<Parameter> list_;
};

}  // namespace rapt::nn
