// The table of names: how each family spells the tensors of a layer, and the layers that a list of tensors holds.
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

// What a tensor may be in a layer.
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

// One way to spell a layer. Empty: this spelling has no such tensor.
struct Spelling {
  NameFamily family;
  std::string_view qkv, q, k, v, out;  // of weights and biases, without ".weight"
  bool torch_endings = false;          // in_proj_weight instead of in_proj.weight
  bool transposed = false;             // weights are (inputs, outputs)
  bool writes = false;                 // save uses this one of its family, packed or separate

  std::string name(Role role) const;  // "" where there is none
  bool packed() const { return !qkv.empty(); }
};

std::span<const Spelling> spellings();

// A tensor by its name and shape: finding a layer touches no numbers.
struct Listed {
  std::string name;
  std::vector<std::int64_t> shape;
  bool readable = true;  // it has a type and a rank that rapt has
};

// A layer, and where its tensors stand in the list.
struct Candidate {
  FoundLayer layer;
  const Spelling* spelling = nullptr;
  std::array<std::optional<std::size_t>, kRoles> at{};
  std::string problem;  // why it is no layer after all; "" where it is

  std::optional<std::size_t> place(Role role) const { return at[static_cast<std::size_t>(role)]; }
};

// Good ones and others, in the order of the list.
std::vector<Candidate> find_candidates(const std::vector<Listed>& list);

}  // namespace rapt::nn
