#include <memory>

#include "handles.h"
#include "options.h"
#include "rapt/multi_head_attention.h"
#include "status.h"

using rapt::c::Caller;
using rapt::c::guarded;

rapt_layer::rapt_layer(rapt::MultiHeadAttention made) : layer(std::move(made)) {
  for (rapt::NamedTensor& parameter : layer.parameters()) parameters.add(std::move(parameter.name), parameter.value);
  if (const auto& options = layer.config().rotary) rotary = rapt::c::as_c(*options);
}

namespace {

using rapt::ReturnWeights;
static_assert(rapt::c::same(ReturnWeights::none, RAPT_WEIGHTS_NONE) &&
              rapt::c::same(ReturnWeights::mean, RAPT_WEIGHTS_MEAN) &&
              rapt::c::same(ReturnWeights::per_head, RAPT_WEIGHTS_PER_HEAD));

rapt::LayerOptions layer_options(const Caller& caller, const rapt_layer_options* given) {
  const rapt_layer_options c = whole(caller, {"options"}, given);
  return {.attention = attention_options(caller, c.attention),
          .weights = caller.choice({"options.weights"}, c.weights, ReturnWeights::per_head),
          .training = c.training != 0,
          .position = c.position,
          .cache = c.cache == nullptr ? nullptr : &c.cache->cache,
          .sequences = caller.list({"options.sequences"}, c.sequences, c.sequences_count),
          .workspace = c.workspace == nullptr ? nullptr : &c.workspace->workspace,
          .keep = c.keep == nullptr ? nullptr : &c.keep->activations};
}

rapt::LayerOutputs layer_outputs(const Caller& caller, const rapt_layer_outputs* given) {
  const rapt_layer_outputs c = whole(caller, {"outputs"}, &caller.the("outputs", given));
  return {.out = caller.view({"outputs.out"}, c.out),
          .weights = caller.view({"outputs.weights"}, c.weights),
          .lse = caller.view({"outputs.lse"}, c.lse),
          .captures = rapt::c::captures(caller, c.captures, c.captures_count)};
}

rapt::LayerUpstream layer_upstream(const Caller& caller, const rapt_layer_upstream* given) {
  const rapt_layer_upstream c = whole(caller, {"upstream"}, &caller.the("upstream", given));
  return {.dout = caller.view({"upstream.dout"}, c.dout), .dweights = caller.view({"upstream.dweights"}, c.dweights)};
}

rapt::LayerGradients layer_gradients(const Caller& caller, const rapt_layer_gradients* given) {
  const rapt_layer_gradients c = whole(caller, {"gradients"}, &caller.the("gradients", given));
  rapt::LayerGradients gradients{.dquery = caller.view({"gradients.dquery"}, c.dquery),
                                 .dkey = caller.view({"gradients.dkey"}, c.dkey),
                                 .dvalue = caller.view({"gradients.dvalue"}, c.dvalue),
                                 .dsinks = caller.view({"gradients.dsinks"}, c.dsinks),
                                 .dmasks = rapt::c::mask_gradients(caller, c.dmasks, c.dmasks_count)};
  if (c.parameters != nullptr) gradients.parameters = c.parameters->tensors;
  return gradients;
}

}  // namespace

// ---------------------------------------------------------------- creation and parameters

rapt_status rapt_layer_create(rapt_layer** layer, const rapt_layer_config* config, uint64_t seed) {
  return guarded([&] {
    const Caller caller("rapt_layer_create");
    rapt_layer*& to = caller.the("layer", layer);
    to = new rapt_layer(rapt::MultiHeadAttention(layer_config(caller, config), seed));
  });
}

rapt_status rapt_layer_slice(const rapt_layer* layer, int64_t index, int64_t count, rapt_layer** part) {
  return guarded([&] {
    const Caller caller("rapt_layer_slice");
    rapt_layer*& to = caller.the("part", part);
    to = new rapt_layer(caller.the("layer", layer).layer.slice(index, count));
  });
}

void rapt_layer_destroy(rapt_layer* layer) { delete layer; }

rapt_status rapt_layer_get_config(const rapt_layer* layer, rapt_layer_config* config) {
  return guarded([&] {
    const Caller caller("rapt_layer_get_config");
    const rapt_layer& given = caller.the("layer", layer);
    rapt::c::give(caller, "config", rapt::c::as_c(given.layer.config(), &given.rotary), config);
  });
}

rapt_status rapt_layer_parameter_count(const rapt_layer* layer, size_t* count) {
  return guarded([&] {
    const Caller caller("rapt_layer_parameter_count");
    caller.the("count", count) = caller.the("layer", layer).parameters.size();
  });
}

rapt_status rapt_layer_parameter_name(const rapt_layer* layer, size_t index, const char** name) {
  return guarded([&] {
    const Caller caller("rapt_layer_parameter_name");
    const rapt::c::TensorsByName& parameters = caller.the("layer", layer).parameters;
    caller.require_index(index, parameters.size());
    caller.the("name", name) = parameters.name(index);
  });
}

rapt_status rapt_layer_parameter(const rapt_layer* layer, const char* name, DLTensor* value) {
  return guarded([&] {
    const Caller caller("rapt_layer_parameter");
    caller.the("value", value) = caller.the("layer", layer).parameters.at(caller, name);
  });
}

rapt_status rapt_layer_set_parameter(rapt_layer* layer, const char* name, const DLTensor* value) {
  return guarded([&] {
    const Caller caller("rapt_layer_set_parameter");
    caller.the("layer", layer).layer.set_parameter(&caller.the("name", name), caller.view({"value"}, value));
  });
}

// ---------------------------------------------------------------- forward and backward

rapt_status rapt_layer_forward(const rapt_layer* layer, const rapt_layer_outputs* outputs, const DLTensor* query,
                               const DLTensor* key, const DLTensor* value, const rapt_layer_options* options) {
  return guarded([&] {
    const Caller caller("rapt_layer_forward");
    caller.the("layer", layer)
        .layer.forward(layer_outputs(caller, outputs), caller.view({"query"}, query), caller.view({"key"}, key),
                       caller.view({"value"}, value), layer_options(caller, options));
  });
}

rapt_status rapt_layer_backward(const rapt_layer* layer, const rapt_layer_gradients* gradients,
                                const rapt_layer_upstream* upstream, const rapt_layer_activations* kept,
                                const DLTensor* query, const DLTensor* key, const DLTensor* value,
                                const rapt_layer_options* options) {
  return guarded([&] {
    const Caller caller("rapt_layer_backward");
    caller.the("layer", layer)
        .layer.backward(layer_gradients(caller, gradients), layer_upstream(caller, upstream),
                        caller.the("kept", kept).activations, caller.view({"query"}, query), caller.view({"key"}, key),
                        caller.view({"value"}, value), layer_options(caller, options));
  });
}

// ---------------------------------------------------------------- gradients of parameters

rapt_status rapt_parameter_gradients_create(rapt_parameter_gradients** gradients, const rapt_layer* layer) {
  return guarded([&] {
    const Caller caller("rapt_parameter_gradients_create");
    rapt_parameter_gradients*& to = caller.the("gradients", gradients);
    const rapt_layer& of = caller.the("layer", layer);
    auto made = std::make_unique<rapt_parameter_gradients>();
    made->tensors = of.layer.zero_gradients();
    for (std::size_t n = 0; n < made->tensors.size(); ++n) made->by_name.add(of.parameters.name(n), made->tensors[n]);
    to = made.release();
  });
}

void rapt_parameter_gradients_destroy(rapt_parameter_gradients* gradients) { delete gradients; }

rapt_status rapt_parameter_gradients_set_zero(rapt_parameter_gradients* gradients) {
  return guarded([&] {
    const Caller caller("rapt_parameter_gradients_set_zero");
    for (rapt::Tensor& tensor : caller.the("gradients", gradients).tensors) {
      const std::size_t bytes = static_cast<std::size_t>(tensor.count()) * rapt::size_of(tensor.dtype());
      if (bytes > 0) std::memset(tensor.view().data(), 0, bytes);
    }
  });
}

rapt_status rapt_parameter_gradients_at(const rapt_parameter_gradients* gradients, const char* name, DLTensor* value) {
  return guarded([&] {
    const Caller caller("rapt_parameter_gradients_at");
    caller.the("value", value) = caller.the("gradients", gradients).by_name.at(caller, name);
  });
}

// ---------------------------------------------------------------- memory between calls

rapt_status rapt_layer_workspace_create(rapt_layer_workspace** workspace) {
  return guarded([&] {
    rapt_layer_workspace*& to = Caller("rapt_layer_workspace_create").the("workspace", workspace);
    to = new rapt_layer_workspace;
  });
}

rapt_status rapt_layer_workspace_bytes(const rapt_layer_workspace* workspace, size_t* bytes) {
  return guarded([&] {
    const Caller caller("rapt_layer_workspace_bytes");
    caller.the("bytes", bytes) = caller.the("workspace", workspace).workspace.bytes();
  });
}

void rapt_layer_workspace_destroy(rapt_layer_workspace* workspace) { delete workspace; }

rapt_status rapt_layer_activations_create(rapt_layer_activations** activations) {
  return guarded([&] {
    rapt_layer_activations*& to = Caller("rapt_layer_activations_create").the("activations", activations);
    to = new rapt_layer_activations;
  });
}

rapt_status rapt_layer_activations_bytes(const rapt_layer_activations* activations, size_t* bytes) {
  return guarded([&] {
    const Caller caller("rapt_layer_activations_bytes");
    caller.the("bytes", bytes) = caller.the("activations", activations).activations.bytes();
  });
}

void rapt_layer_activations_destroy(rapt_layer_activations* activations) { delete activations; }
