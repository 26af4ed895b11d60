// The parameters of a layer: which exist, how a slice's map to the whole layer's, and their initial values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rapt/multi_head_attention.h"

namespace rapt::nn {

// The output sizes of the projections per token, for the whole layer or a slice.
struct Widths {
  // `slices`: config.slice.count for the sizes of one slice, 1 for the whole layer.
  Widths(const MultiHeadAttentionConfig& config, std::int64_t slices)
      : query(config.heads * config.head_size / slices), key(config.kv_heads * config.head_size / slices) {}

  std::int64_t all() const { return query + 2 * key; }

  std::int64_t query;  // Hq · D
  std::int64_t key;    // Hkv · D, also for values
};

// One parameter. It consists of ranges of the whole layer's parameter, which `pieces` lists along dimension `dim`.
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
  // All parameters of a layer or a slice, set to zero. `config` has every default filled in.
  explicit Parameters(const MultiHeadAttentionConfig& config);

  void draw(std::uint64_t seed);
  // Copies this slice's parts of a whole layer's parameters.
  void take_from(const Parameters& whole);

  const std::vector<Parameter>& list() const { return list_; }
  std::vector<Parameter>& list() { return list_; }
  Parameter* find(std::string_view name);
  // Undefined if the layer has no such parameter.
  ConstTensorView operator[](std::string_view name) const;

 private:
  void add(Parameter parameter, DType dtype);

  std::vector<Parameter> list_;
};

}  // namespace rapt::nn
