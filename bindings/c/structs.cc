// The initial value of each struct, and the init functions that write it.
#include "options.h"
#include "status.h"

namespace rapt::c {

template <>
rapt_capture defaults() {
  rapt_capture capture{};
  capture.struct_size = sizeof(capture);
  capture.stage = static_cast<std::int32_t>(Capture{}.stage);
  return capture;
}
template <>
rapt_weights_gradient defaults() {
  rapt_weights_gradient gradient{};
  gradient.struct_size = sizeof(gradient);
  gradient.stage = static_cast<std::int32_t>(WeightsGradient{}.stage);
  return gradient;
}
template <>
rapt_kv_cache_config defaults() {
  return as_c(KvCacheConfig{});
}
template <>
rapt_rotary_options defaults() {
  return as_c(RotaryOptions{});
}
template <>
rapt_layer_config defaults() {
  return as_c(MultiHeadAttentionConfig{}, nullptr);
}

namespace {

template <class Struct>
rapt_status init(const char* function, const char* name, Struct* to, std::size_t struct_size) {
  static_assert(sizeof(Struct) % sizeof(std::int64_t) == 0);  // see Caller::require_size
  return guarded([&] {
    const Caller caller(function);
    (void)caller.the(name, to);
    caller.require_size({name}, struct_size, sizeof(Struct));
    Struct begin = defaults<Struct>();
    begin.struct_size = struct_size;
    std::memcpy(to, &begin, struct_size);
  });
}

}  // namespace

}  // namespace rapt::c

using rapt::c::init;

rapt_status rapt_mask_init(rapt_mask* mask, size_t struct_size) {
  return init("rapt_mask_init", "mask", mask, struct_size);
}
rapt_status rapt_attention_options_init(rapt_attention_options* options, size_t struct_size) {
  return init("rapt_attention_options_init", "options", options, struct_size);
}
rapt_status rapt_capture_init(rapt_capture* capture, size_t struct_size) {
  return init("rapt_capture_init", "capture", capture, struct_size);
}
rapt_status rapt_attention_outputs_init(rapt_attention_outputs* outputs, size_t struct_size) {
  return init("rapt_attention_outputs_init", "outputs", outputs, struct_size);
}
rapt_status rapt_weights_gradient_init(rapt_weights_gradient* gradient, size_t struct_size) {
  return init("rapt_weights_gradient_init", "gradient", gradient, struct_size);
}
rapt_status rapt_attention_upstream_init(rapt_attention_upstream* upstream, size_t struct_size) {
  return init("rapt_attention_upstream_init", "upstream", upstream, struct_size);
}
rapt_status rapt_mask_gradient_init(rapt_mask_gradient* gradient, size_t struct_size) {
  return init("rapt_mask_gradient_init", "gradient", gradient, struct_size);
}
rapt_status rapt_attention_gradients_init(rapt_attention_gradients* gradients, size_t struct_size) {
  return init("rapt_attention_gradients_init", "gradients", gradients, struct_size);
}
rapt_status rapt_kv_cache_config_init(rapt_kv_cache_config* config, size_t struct_size) {
  return init("rapt_kv_cache_config_init", "config", config, struct_size);
}
rapt_status rapt_rotary_options_init(rapt_rotary_options* options, size_t struct_size) {
  return init("rapt_rotary_options_init", "options", options, struct_size);
}
rapt_status rapt_layer_config_init(rapt_layer_config* config, size_t struct_size) {
  return init("rapt_layer_config_init", "config", config, struct_size);
}
rapt_status rapt_layer_options_init(rapt_layer_options* options, size_t struct_size) {
  return init("rapt_layer_options_init", "options", options, struct_size);
}
rapt_status rapt_layer_outputs_init(rapt_layer_outputs* outputs, size_t struct_size) {
  return init("rapt_layer_outputs_init", "outputs", outputs, struct_size);
}
rapt_status rapt_layer_upstream_init(rapt_layer_upstream* upstream, size_t struct_size) {
  return init("rapt_layer_upstream_init", "upstream", upstream, struct_size);
}
rapt_status rapt_layer_gradients_init(rapt_layer_gradients* gradients, size_t struct_size) {
  return init("rapt_layer_gradients_init", "gradients", gradients, struct_size);
}
rapt_status rapt_load_options_init(rapt_load_options* options, size_t struct_size) {
  return init("rapt_load_options_init", "options", options, struct_size);
}
rapt_status rapt_save_options_init(rapt_save_options* options, size_t struct_size) {
  return init("rapt_save_options_init", "options", options, struct_size);
}
rapt_status rapt_found_layer_init(rapt_found_layer* found, size_t struct_size) {
  return init("rapt_found_layer_init", "found", found, struct_size);
}
rapt_status rapt_safetensors_entry_init(rapt_safetensors_entry* entry, size_t struct_size) {
  return init("rapt_safetensors_entry_init", "entry", entry, struct_size);
}
rapt_status rapt_npy_options_init(rapt_npy_options* options, size_t struct_size) {
  return init("rapt_npy_options_init", "options", options, struct_size);
}
rapt_status rapt_instruction_set_init(rapt_instruction_set* set, size_t struct_size) {
  return init("rapt_instruction_set_init", "set", set, struct_size);
}
