#include "layer/layer.h"

#include <cstdint>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "arrays.h"
#include "layer/arguments.h"
#include "layer/config.h"
#include "layer/output_arrays.h"
#include "memory.h"
#include "numbers.h"
#include "results.h"

namespace rapt::python {

namespace {

Layer make(nb::handle config, nb::handle seed) {
  const MultiHeadAttentionConfig made = layer_config(config);
  const std::uint64_t number = python::seed(seed, {"MultiheadAttention", "seed"});
  const nb::gil_scoped_release unlocked;
  return {std::make_shared<SharedLayer>(MultiHeadAttention(made, number))};
}

KeptCall* kept_call(nb::handle object) {
  if (object.is_none()) return nullptr;
  if (!nb::isinstance<KeptCall>(object)) wrong_type({kForward, "keep"}, object, "a bool or a rapt.LayerActivations");
  return &nb::cast<KeptCall&>(object);
}

void run(SharedLayer& shared, const LayerOutputArrays& outputs, LayerArguments& arguments, KeptCall* kept) {
  const nb::gil_scoped_release unlocked;
  const std::shared_lock reading(shared.mutex);
  std::unique_lock<std::mutex> cache, keeping;
  if (arguments.cache() != nullptr) cache = std::unique_lock(arguments.cache()->mutex);
  if (kept != nullptr) {
    keeping = std::unique_lock(*kept->mutex);
    arguments.options().keep = &kept->activations;
  }
  shared.layer.forward(outputs.to, arguments.query(), arguments.key(), arguments.value(), arguments.options());
}

// (out, weights), or (out, weights, lse, captures) if lse or captures were requested.
nb::tuple forward(Layer& self, nb::handle given, nb::handle keep, nb::handle out, bool want_lse, nb::handle captures) {
  const MultiHeadAttentionConfig& config = self.shared->layer.config();
  LayerArguments arguments(config, given);
  LayerOutputArrays outputs(library_of(nb::handle(PyTuple_GetItem(given.ptr(), 0))), config, arguments);
  outputs.add_out(out);
  outputs.add_weights(arguments.options().weights);
  if (want_lse) outputs.add_lse();
  if (!captures.is_none()) {
    for (const nb::object& capture : items(captures)) outputs.add_capture(capture);
  }
  KeptCall* kept = kept_call(keep);
  if (kept != nullptr) kept->arguments.reset();  // a call that fails keeps nothing
  run(*self.shared, outputs, arguments, kept);
  if (kept != nullptr) {
    kept->arguments = nb::borrow(given);
    kept->layer = self.shared;
  }
  return want_lse || !captures.is_none() ? outputs.all() : outputs.pair();
}

// Names and values of all parameters: the layer's own memory, read-only.
nb::list parameters(const Layer& self) {
  nb::list list;
  for (const NamedTensor& parameter : self.shared->layer.parameters()) {
    list.append(nb::make_tuple(parameter.name.c_str(), as_array(Library::other, lend(self.shared, parameter.value))));
  }
  return list;
}

void set_parameter(Layer& self, const std::string& name, nb::handle value) {
  const Array array(value, {"set_parameter", name.c_str()});
  const ConstTensorView view = array.view();
  const nb::gil_scoped_release unlocked;
  const std::unique_lock alone(self.shared->mutex);
  self.shared->layer.set_parameter(name, view);
}

Layer slice(const Layer& self, std::int64_t index, std::int64_t count) {
  const nb::gil_scoped_release unlocked;
  const std::shared_lock reading(self.shared->mutex);
  return {std::make_shared<SharedLayer>(self.shared->layer.slice(index, count))};
}

}  // namespace

void bind_layer(nb::module_& module) {
  nb::class_<KeptCall>(
      module, "LayerActivations",
      "The activations that a layer's forward keeps for backward.\n\n"
      "    kept = rapt.LayerActivations()\n"
      "    out, weights = layer(x, keep=kept)\n"
      "    gradients = layer.backward(dout, kept=kept)\n\n"
      "The next call that keeps its activations here reuses the memory. Use it for one call at a time.")
      .def(nb::init<>())
      .def_prop_ro(
          "bytes", [](const KeptCall& kept) { return kept.activations.bytes(); }, "Size of its memory in bytes.");

  nb::class_<Layer> layer(module, "Layer");
  layer.def_prop_ro("config", [](const Layer& self) { return to_tuple(self.shared->layer.config()); })
      .def("forward", &forward, nb::arg("arguments"), nb::arg("keep").none(), nb::arg("out").none(),
           nb::arg("want_lse"), nb::arg("captures").none())
      .def("parameters", &parameters)
      .def("set_parameter", &set_parameter, nb::arg("name"), nb::arg("value"))
      .def("slice", &slice, nb::arg("index"), nb::arg("count"));
  module.def("make_layer", &make, nb::arg("config"), nb::arg("seed"));
  bind_layer_backward(module, layer);
  bind_layer_files(module, layer);
}

}  // namespace rapt::python
