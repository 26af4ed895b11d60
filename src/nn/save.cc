// Saves layers to files: the parameters under the names of a family.
#include <map>
#include <string>
#include <utility>

#include "attention/checks.h"
#include "nn/names.h"
#include "nn/parameters.h"
#include "rapt/multi_head_attention.h"
#include "rapt/npy.h"

namespace rapt {

namespace {

using nn::Role;
using nn::Spelling;

const Spelling& spelling_for(const Checks& checks, const SaveOptions& options, bool separate) {
  const Spelling* found = nullptr;
  for (const Spelling& spelling : nn::spellings()) {
    if (spelling.family != options.family || !spelling.writes) continue;
    if (found == nullptr || spelling.packed() == options.packed.value_or(!separate)) found = &spelling;
  }
  checks.require(!options.packed || found->packed() == *options.packed, "the names of \"", name_of(options.family),
                 "\" have q, k and v ", found->packed() ? "in one tensor" : "in separate tensors",
                 ", which contradicts packed; choose another family, or omit packed");
  return *found;
}

// Ones on and below the diagonal, or above it.
Tensor triangle(const Dims& shape, DType dtype, bool below) {
  Tensor mask(shape, dtype);
  const std::int64_t size = shape[shape.rank() - 1];
  const TensorView plane = mask.view().reshape({size, size});
  const Tensor one = Tensor::from<float>({1}, {1.0F});
  for (std::int64_t i = 0; i < size; ++i) {
    const TensorView row = below ? plane.select(0, i).slice(0, 0, i + 1) : plane.select(0, i).slice(0, i + 1, size);
    copy(one.view().expand({row.size(0)}), row);
  }
  return mask;
}

class Writer {
 public:
  Writer(const SaveOptions& options, const Spelling& spelling) : options_(options), spelling_(spelling) {}

  void add(Role role, const ConstTensorView& value) {
    ConstTensorView view = value;
    if (options_.dtype && *options_.dtype != value.dtype()) {
      state_.memory.push_back(Tensor::copy_of(value, *options_.dtype));
      view = state_.memory.back();
    }
    if (spelling_.transposed && view.rank() == 2) view = view.transpose(0, 1);
    state_.tensors.push_back({name(role), view});
  }

  void keep(Tensor value, Role role) {
    state_.memory.push_back(std::move(value));
    add(role, state_.memory.back().view());
  }

  // Some families store a float mask of ones above the diagonal; GPT-2 stores ones where a key is visible.
  void add_mask(std::int64_t size) {
    const bool gpt2 = spelling_.family == NameFamily::c_attn;
    state_.memory.push_back(gpt2 ? triangle({1, 1, size, size}, DType::boolean, true)
                                 : triangle({size, size}, DType::f32, false));
    state_.tensors.push_back({name(Role::mask), state_.memory.back().view()});
  }

  StateDict take() && { return std::move(state_); }

 private:
  std::string name(Role role) const { return options_.prefix + spelling_.name(role); }

  const SaveOptions& options_;
  const Spelling& spelling_;
  StateDict state_;
};

}  // namespace

StateDict MultiHeadAttention::state_dict(const SaveOptions& given) const {
  const Checks checks("MultiHeadAttention::state_dict");
  const MultiHeadAttentionConfig& config = this->config();
  checks.require(config.slice.count == 1, "this layer is slice ", config.slice.index, " of ", config.slice.count,
                 "; save the whole layer");
  checks.require(!given.dtype || is_float(*given.dtype), "dtype is ", given.dtype.value_or(DType::f32),
                 "; it must be f32, bf16, f16 or f64");
  SaveOptions options = given;
  if (!options.prefix.empty() && options.prefix.back() != '.' && options.prefix.back() != '/') options.prefix += '.';
  const Spelling& spelling = spelling_for(checks, options, config.separate_projections);

  std::map<std::string, ConstTensorView> own;
  for (const NamedTensor& parameter : parameters()) own[parameter.name] = parameter.value;
  const nn::Widths widths(config, 1);
  const std::int64_t ends[] = {0, widths.query, widths.query + widths.key, widths.all()};
  const bool one_input = config.key_size == config.embed_size && config.value_size == config.embed_size;
  Writer writer(options, spelling);

  if (!spelling.packed()) {
    const char* const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    constexpr Role kWeights[] = {Role::q_weight, Role::k_weight, Role::v_weight};
    for (int n = 0; n < 3; ++n) {
      writer.add(kWeights[n],
                 config.separate_projections ? own[names[n]] : own["in_proj_weight"].slice(0, ends[n], ends[n + 1]));
    }
  } else if (config.separate_projections) {
    checks.require(one_input, "q, k and v take tokens of ", config.embed_size, ", ", config.key_size, " and ",
                   config.value_size,
                   " numbers, so they do not fit in one tensor; choose a family with separate tensors, ",
                   "such as torch or q_proj");
    Tensor joined({widths.all(), config.embed_size}, config.dtype);
    copy(own["q_proj_weight"], joined.view().slice(0, ends[0], ends[1]));
    copy(own["k_proj_weight"], joined.view().slice(0, ends[1], ends[2]));
    copy(own["v_proj_weight"], joined.view().slice(0, ends[2], ends[3]));
    writer.keep(std::move(joined), Role::qkv_weight);
  } else {
    writer.add(Role::qkv_weight, own["in_proj_weight"]);
  }
  if (config.bias) {
    if (!spelling.name(Role::qkv_bias).empty()) {
      writer.add(Role::qkv_bias, own["in_proj_bias"]);
    } else {
      constexpr Role kBiases[] = {Role::q_bias, Role::k_bias, Role::v_bias};
      for (int n = 0; n < 3; ++n) writer.add(kBiases[n], own["in_proj_bias"].slice(0, ends[n], ends[n + 1]));
    }
  }
  if (config.add_bias_kv) {
    writer.add(Role::bias_k, own["bias_k"]);
    writer.add(Role::bias_v, own["bias_v"]);
  }
  writer.add(Role::out_weight, own["out_proj.weight"]);
  if (*config.output_bias) writer.add(Role::out_bias, own["out_proj.bias"]);
  if (config.context_length > 0) writer.add_mask(config.context_length);
  return std::move(writer).take();
}

void MultiHeadAttention::save(const std::string& path, const SaveOptions& options) const {
  const StateDict state = state_dict(options);
  if (path.ends_with(".npz")) {
    write_npz(path, state.tensors);
  } else {
    write_safetensors(path, state.tensors, {{"format", "pt"}, {"rapt.heads", std::to_string(config().heads)}});
  }
}

}  // namespace rapt
