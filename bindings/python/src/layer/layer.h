// The layer of the module _rapt; rapt/_layer.py wraps it as rapt.MultiheadAttention.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include <nanobind/nanobind.h>

#include "rapt/multi_head_attention.h"

namespace rapt::python {

namespace nb = nanobind;

// A layer, which views of its parameters keep alive. Calls may come from several threads, without the GIL. Forward and
// backward lock the mutex shared; changes of parameters lock it exclusively.
struct SharedLayer {
  explicit SharedLayer(MultiHeadAttention made) : layer(std::move(made)) {}

  MultiHeadAttention layer;
  std::shared_mutex mutex{};
};

// The class _rapt.Layer.
struct Layer {
  std::shared_ptr<SharedLayer> shared;
};

// The class rapt.LayerActivations: what a forward call kept, with its layer and its arguments.
struct KeptCall {
  LayerActivations activations{};
  nb::object arguments{};
  std::shared_ptr<const SharedLayer> layer{};
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();  // one call at a time
};

// The class _rapt.ParameterGradients: the gradients that backward adds to.
struct ParameterGradients {
  std::shared_ptr<std::vector<Tensor>> tensors;
};

void bind_layer(nb::module_& module);
void bind_layer_backward(nb::module_& module, nb::class_<Layer>& layer);
void bind_layer_files(nb::module_& module, nb::class_<Layer>& layer);

}  // namespace rapt::python
