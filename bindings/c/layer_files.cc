// Loads and saves layers.
#include "handles.h"
#include "options.h"
#include "status.h"

using rapt::c::Caller;
using rapt::c::guarded;

namespace rapt::c {

const DLTensor& TensorsByName::at(const Caller& caller, const char* name) const {
  const std::string_view wanted = &caller.the("name", name);
  std::string all;
  for (const Entry& entry : entries_) {
    if (entry.name == wanted) return entry.tensor;
    all += (all.empty() ? "" : ", ") + entry.name;
  }
  caller.refuse("there is no parameter \"" + std::string(wanted) + "\"; this layer has " + all);
}

FoundInC::FoundInC(FoundLayer layer) : found(std::move(layer)) {
  const auto line = [&](const std::string& words) { text += words + "\n"; };
  line((found.prefix.empty() ? "a layer" : found.prefix) + " with the names of " + std::string(name_of(found.family)));
  for (const TensorRole& tensor : found.tensors) {
    tensors.push_back({tensor.tensor.c_str(), tensor.role.c_str()});
    line("  " + tensor.tensor + ": " + tensor.role);
  }
  for (const std::string& name : found.left_over) {
    left_over.push_back(name.c_str());
    line("  " + name + ": unused");
  }
  for (const std::string& name : found.missing) {
    missing.push_back(name.c_str());
    line("  " + name + ": missing, zeros are used instead");
  }
}

}  // namespace rapt::c

namespace {

using rapt::NameFamily;
using rapt::c::same;
static_assert(same(NameFamily::torch, RAPT_NAMES_TORCH) && same(NameFamily::w_q, RAPT_NAMES_W_Q) &&
              same(NameFamily::w_query, RAPT_NAMES_W_QUERY) && same(NameFamily::q_linear, RAPT_NAMES_Q_LINEAR) &&
              same(NameFamily::wq, RAPT_NAMES_WQ) && same(NameFamily::q_proj, RAPT_NAMES_Q_PROJ) &&
              same(NameFamily::query, RAPT_NAMES_QUERY) && same(NameFamily::to_q, RAPT_NAMES_TO_Q) &&
              same(NameFamily::qkv, RAPT_NAMES_QKV) && same(NameFamily::c_attn, RAPT_NAMES_C_ATTN));

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

rapt::LoadOptions load_options(const Caller& caller, const rapt_load_options* given) {
  const rapt_load_options c = whole(caller, {"options"}, given);
  rapt::LoadOptions options{.prefix = text_or_empty(c.prefix),
                            .heads = c.heads,
                            .kv_heads = c.kv_heads,
                            .batch_first = c.batch_first != 0,
                            .add_zero_attention = c.add_zero_attention != 0,
                            .dropout = c.dropout,
                            .rotary = rotary_options(caller, c.rotary)};
  if (c.has_dtype != 0) options.dtype = caller.choice({"options.dtype"}, c.dtype, rapt::DType::i8);
  return options;
}

rapt::SaveOptions save_options(const Caller& caller, const rapt_save_options* given) {
  const rapt_save_options c = whole(caller, {"options"}, given);
  caller.require_zero({"options"}, c.reserved);
  rapt::SaveOptions options{.family = caller.choice({"options.family"}, c.family, NameFamily::c_attn),
                            .prefix = text_or_empty(c.prefix)};
  if (c.has_packed != 0) options.packed = c.packed != 0;
  if (c.has_dtype != 0) options.dtype = caller.choice({"options.dtype"}, c.dtype, rapt::DType::i8);
  return options;
}

rapt_layer* with_what_was_found(rapt::LoadedLayer loaded) {
  auto layer = std::make_unique<rapt_layer>(std::move(loaded.layer));
  layer->found.emplace(std::move(loaded.found));
  return layer.release();
}

}  // namespace

rapt_status rapt_layer_load(rapt_layer** layer, const char* path, const rapt_load_options* options) {
  return guarded([&] {
    const Caller caller("rapt_layer_load");
    rapt_layer*& to = caller.the("layer", layer);
    to = with_what_was_found(
        rapt::MultiHeadAttention::load(std::string(&caller.the("path", path)), load_options(caller, options)));
  });
}

rapt_status rapt_layer_load_safetensors(rapt_layer** layer, const rapt_safetensors* file,
                                        const rapt_load_options* options) {
  return guarded([&] {
    const Caller caller("rapt_layer_load_safetensors");
    rapt_layer*& to = caller.the("layer", layer);
    to = with_what_was_found(
        rapt::MultiHeadAttention::load(caller.the("file", file).file, load_options(caller, options)));
  });
}

rapt_status rapt_layer_save(const rapt_layer* layer, const char* path, const rapt_save_options* options) {
  return guarded([&] {
    const Caller caller("rapt_layer_save");
    caller.the("layer", layer).layer.save(&caller.the("path", path), save_options(caller, options));
  });
}

rapt_status rapt_layer_found(const rapt_layer* layer, rapt_found_layer* found) {
  return guarded([&] {
    const Caller caller("rapt_layer_found");
    const auto& what = caller.the("layer", layer).found;
    caller.require(what.has_value(), "this layer was not loaded from a file");
    rapt_found_layer c{};
    c.prefix = what->found.prefix.c_str();
    c.tensors = what->tensors.data(), c.tensors_count = what->tensors.size();
    c.left_over = what->left_over.data(), c.left_over_count = what->left_over.size();
    c.missing = what->missing.data(), c.missing_count = what->missing.size();
    c.family = static_cast<std::int32_t>(what->found.family);
    c.transposed = what->found.transposed ? 1 : 0;
    c.text = what->text.c_str();
    rapt::c::give(caller, "found", c, found);
  });
}
