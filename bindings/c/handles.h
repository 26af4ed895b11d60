// The objects behind C handles. They are never moved, because C holds pointers into them.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert.h"
#include "rapt/kv_cache.h"
#include "rapt/multi_head_attention.h"
#include "rapt/safetensors.h"

namespace rapt::c {

// Tensors that C requests by name, with the memory of their shapes.
class TensorsByName {
 public:
  TensorsByName() = default;
  TensorsByName(const TensorsByName&) = delete;
  TensorsByName& operator=(const TensorsByName&) = delete;

  void add(std::string name, const ConstTensorView& value) {
    Entry& entry = entries_.emplace_back();
    entry.name = std::move(name);
    entry.tensor = describe(value, entry.dims);
  }
  std::size_t size() const { return entries_.size(); }
  const char* name(std::size_t index) const { return entries_[index].name.c_str(); }
  const DLTensor& at(const Caller& caller, const char* name) const;

 private:
  struct Entry {
    std::string name;
    DimsMemory dims;
    DLTensor tensor;
  };
  std::deque<Entry> entries_;  // a deque, because each tensor points to the shape stored beside it
};

// What load found, in C types.
struct FoundInC {
  explicit FoundInC(FoundLayer layer);

  FoundLayer found;
  std::vector<rapt_tensor_role> tensors;
  std::vector<const char*> left_over, missing;
  std::string text;
};

}  // namespace rapt::c

struct rapt_kv_cache {
  rapt::KvCache cache;
};

struct rapt_layer {
  explicit rapt_layer(rapt::MultiHeadAttention made);

  rapt::MultiHeadAttention layer;
  rapt::c::TensorsByName parameters;
  rapt_rotary_options rotary{};
  std::optional<rapt::c::FoundInC> found;  // of a layer that was loaded
};

struct rapt_layer_workspace {
  rapt::LayerWorkspace workspace;
};

struct rapt_layer_activations {
  rapt::LayerActivations activations;
};

struct rapt_parameter_gradients {
  std::vector<rapt::Tensor> tensors;
  rapt::c::TensorsByName by_name;
};

struct rapt_safetensors {
  explicit rapt_safetensors(rapt::SafetensorsFile opened);

  rapt::SafetensorsFile file;
  std::vector<rapt_text_pair> metadata;
};
