// The gradients of a layer call, from the activations that forward kept.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "layer/arguments.h"
#include "layer/layer.h"
#include "memory.h"
#include "numbers.h"
#include "results.h"

namespace rapt::python {

namespace {

constexpr const char* kBackward = "MultiheadAttention.backward";

// Gradients of parameters as arrays, which share the memory that backward adds to.
nb::list arrays_of(const ParameterGradients& gradients, const Layer& layer) {
  nb::list list;
  std::size_t n = 0;
  for (const NamedTensor& parameter : layer.shared->layer.parameters()) {
    Memory memory{gradients.tensors, (*gradients.tensors)[n++].view(), false};
    list.append(nb::make_tuple(parameter.name.c_str(), as_array(Library::other, std::move(memory))));
  }
  return list;
}

// Which gradients a call of backward returns, besides those of the parameters.
class Gradients {
 public:
  Gradients(Library library, const MultiHeadAttentionConfig& config, LayerArguments& arguments)
      : library_(library),
        type_(config.dtype == DType::f64 ? DType::f64 : DType::f32),
        heads_(config.heads / config.slice.count),
        arguments_(arguments) {}

  void add_inputs() {
    dquery_ = like(arguments_.query(), to.dquery);
    dkey_ = like(arguments_.key(), to.dkey);
    dvalue_ = like(arguments_.value(), to.dvalue);
  }
  void add_sinks() {
    const ConstTensorView& sinks = arguments_.options().attention.sinks;
    if (!sinks.defined()) return;
    dsinks_ = Result(library_, {heads_}, type_);
    to.dsinks = dsinks_.view();
  }
  // The gradient of mask number `mask`, which must be additive.
  void add_mask(std::int64_t mask) {
    const std::vector<Mask>& masks = arguments_.options().attention.masks;
    const bool there = mask >= 0 && mask < std::ssize(masks);
    const Dims shape = there ? masks[static_cast<std::size_t>(mask)].view.shape() : Dims{0};
    dmasks_.emplace_back(library_, shape, type_);
    to.dmasks.push_back({static_cast<std::size_t>(mask), dmasks_.back().view()});
  }

  nb::tuple finish() {
    nb::list masks;
    for (Result& mask : dmasks_) masks.append(mask.finish());
    return nb::make_tuple(dquery_.finish(), dkey_.finish(), dvalue_.finish(), dsinks_.finish(), nb::tuple(masks));
  }

  LayerGradients to;

 private:
  Result like(const ConstTensorView& input, TensorView& view) const {
    if (!input.defined()) return {};
    Result made(library_, input.shape(), type_);
    view = made.view();
    return made;
  }

  Library library_;
  DType type_;
  std::int64_t heads_;
  LayerArguments& arguments_;
  Result dquery_, dkey_, dvalue_, dsinks_;
  std::vector<Result> dmasks_;
};

// (dquery, dkey, dvalue, dsinks, dmasks); those of the parameters are added to `parameters`.
nb::tuple backward(const Layer& self, KeptCall& kept, nb::handle dout, nb::handle dweights, bool inputs,
                   nb::handle masks, nb::handle parameters) {
  if (!kept.arguments.is_valid()) {
    throw nb::value_error("MultiheadAttention.backward: kept is empty; pass it to forward as keep= first");
  }
  if (kept.layer != self.shared) {
    throw nb::value_error("MultiheadAttention.backward: kept is from another layer; pass it to this layer's forward");
  }
  const nb::object given = kept.arguments;
  const MultiHeadAttentionConfig& config = self.shared->layer.config();
  LayerArguments arguments(config, given);
  const Array dout_array(dout, {kBackward, "dout"}), dweights_array(dweights, {kBackward, "dweights"});
  const LayerUpstream upstream{dout_array.view(), dweights_array.view()};
  Gradients gradients(library_of(dout), config, arguments);
  if (inputs) gradients.add_inputs();
  gradients.add_sinks();
  for (const std::int64_t mask : integers(masks, {kBackward, "masks"})) gradients.add_mask(mask);
  if (!parameters.is_none()) gradients.to.parameters = *nb::cast<ParameterGradients&>(parameters).tensors;
  {
    const nb::gil_scoped_release unlocked;
    const std::shared_lock reading(self.shared->mutex);
    const std::scoped_lock keeping(*kept.mutex);
    self.shared->layer.backward(gradients.to, upstream, kept.activations, arguments.query(), arguments.key(),
                                arguments.value(), arguments.options());
  }
  return gradients.finish();
}

ParameterGradients zero_gradients(const Layer& self) {
  const std::shared_lock reading(self.shared->mutex);
  return {std::make_shared<std::vector<Tensor>>(self.shared->layer.zero_gradients())};
}

}  // namespace

void bind_layer_backward(nb::module_& module, nb::class_<Layer>& layer) {
  nb::class_<ParameterGradients>(module, "ParameterGradients").def("arrays", &arrays_of, nb::arg("layer"));
  layer
      .def("backward", &backward, nb::arg("kept"), nb::arg("dout"), nb::arg("dweights").none(), nb::arg("inputs"),
           nb::arg("masks").none(), nb::arg("parameters").none())
      .def("zero_gradients", &zero_gradients);
}

}  // namespace rapt::python
