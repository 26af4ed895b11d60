// The layer as _rapt has it; rapt/_layer.py makes rapt.MultiheadAttention of it.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include <nanobind/nanobind.h>

#include "rapt/multi_head_attention.h"

namespace rapt::python {

namespace nb = nanobind;

// A layer, which views of its parameters keep alive. Calls come from several threads, without the GIL: forward and
// backward lock the mutex shared, changes of parameters exclusively.
struct SharedLayer {
  explicit SharedLayer(MultiHeadAttention made) : layer(std::move(made)) {}

  MultiHeadAttention layer;
  std::shared_mutex mutex{};
};

// The class _rapt.Layer.
struct Layer {
  std::shared_ptr<SharedLayer> shared;
};

// The class rapt.LayerActivations: what a call of forward kept, whose call it was, and with which arguments.
struct KeptCall {
  LayerActivations activations{};
  nb::object arguments{};
  std::shared_ptr<const SharedLayer> layer{};
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();  // one call at a time
};

// The class _rapt.ParameterGradients: to which backward adds.
struct ParameterGradients {
  std::shared_ptr<std::vector<Tensor>> tensors;
};

void bind_layer(nb::module_& module);
void bind_layer_backward(nb::module_& module, nb::class_<Layer>& layer);
void bind_layer_files(nb::module_& module, nb::class_<Layer>& layer);

}  // namespace rapt::python
