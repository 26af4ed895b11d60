// The table of names: how each family names the tensors of a layer, and the search for layers in a list of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/layer_names.h"

namespace rapt::nn {

// The role of a tensor in a layer.
enum class Role : std::uint8_t {
  qkv_weight,
  qkv_bias,
  q_weight,
  q_bias,
  k_weight,
  k_bias,
  v_weight,
  v_bias,
  out_weight,
  out_bias,
  bias_k,
  bias_v,
  mask,
};
inline constexpr std::size_t kRoles = 13;

std::string_view words_of(Role role);

// One way to name the tensors of a layer. An empty name means that there is no such tensor.
struct Spelling {
  NameFamily family;
  std::string_view qkv, q, k, v, out;  // names of weights and biases, without .weight and .bias
  bool torch_endings = false;          // in_proj_weight instead of in_proj.weight
  bool transposed = false;             // weights are (inputs, outputs)
  bool writes = false;                 // save uses this spelling for its family (packed or separate projections)

  std::string name(Role role) const;  // "" if there is none
  bool packed() const { return !qkv.empty(); }
};

std::span<const Spelling> spellings();

// A tensor by its name and shape, because finding a layer reads no data.
struct Listed {
  std::string name;
  std::vector<std::int64_t> shape;
  bool readable = true;  // rapt supports its type and rank
};

// A layer, and the indices of its tensors in the list.
struct Candidate {
  FoundLayer layer;
  const Spelling* spelling = nullptr;
  std::array<std::optional<std::size_t>, kRoles> at{};
  std::string problem;  // why it is not a valid layer; "" if it is

  std::optional<std::size_t> place(Role role) const { return at[static_cast<std::size_t>(role)]; }
};

// Valid and invalid layers, in the order of the list.
std::vector<Candidate> find_candidates(const std::vector<Listed>& list);

}  // namespace rapt::nn
