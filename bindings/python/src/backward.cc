// rapt.attention_backward: the same inputs and options, and gradients of the query's array type.
#include <array>
#include <cstddef>
#include <vector>

#include "arrays.h"
#include "attention.h"
#include "numbers.h"
#include "options.h"
#include "outputs.h"
#include "rapt/attention.h"

namespace rapt::python {

namespace {

constexpr const char* kFunction = "attention_backward";

// By name, in the order of rapt.AttentionGradients.
enum class Gradient : std::size_t { dquery, dkey, dvalue, dsinks, dmasks };
constexpr std::array kGradients = {"dquery", "dkey", "dvalue", "dsinks", "dmasks"};

// Upstream gradients: (dout, dlse, dweights, out, lse). dweights is a list of rapt.WeightsGradient.
class Upstream {
 public:
  explicit Upstream(nb::handle given) {
    const nb::tuple parts = tuple(given, {kFunction, "upstream"}, 5, 5, "(dout, dlse, dweights, out, lse)");
    upstream_.dout = view(parts[0], "dout");
    upstream_.dlse = view(parts[1], "dlse");
    for (const nb::object& object : items(parts[2])) add_weights(object);
    upstream_.out = view(parts[3], "out");
    upstream_.lse = view(parts[4], "lse");
  }

  const AttentionUpstream& get() const { return upstream_; }

 private:
  ConstTensorView view(nb::handle object, const char* name) {
    return arrays_.emplace_back(object, Argument{kFunction, name}).view();
  }

  void add_weights(nb::handle object) {
    const nb::tuple parts = tuple(object, {kFunction, "dweights"}, 5, 5, "a rapt.WeightsGradient");
    upstream_.dweights.push_back({.stage = stage(parts[1], {kFunction, "stage"}),
                                  .from = view(parts[0], "dweights"),
                                  .of = selection(kFunction, parts[2], parts[3], parts[4])});
  }

  std::deque<Array> arrays_;
  AttentionUpstream upstream_;
};

// A tuple (dquery, dkey, dvalue, dsinks, dmasks), with None for gradients that were not requested.
nb::object backward_call(nb::handle query, nb::handle key, nb::handle value, nb::handle options, nb::handle upstream,
                         nb::handle wanted) {
  const Library library = library_of(query);
  const Array query_array(query, {kFunction, "query"});
  const Array key_array(key, {kFunction, "key"});
  const Array value_array(value, {kFunction, "value"});
  if (!query_array.defined() || !key_array.defined() || !value_array.defined()) {
    throw nb::type_error("attention_backward: query, key or value is None; they must be arrays");
  }
  const CallOptions call(kFunction, options);
  const Upstream arrived(upstream);

  std::array<Output, 4> outputs;
  std::vector<Output> masks(call.get().masks.size());
  AttentionGradients gradients;
  const auto make = [&](Gradient name, const ConstTensorView& like) {
    return (outputs[static_cast<std::size_t>(name)] = Output(library, like.shape(), like.dtype())).view();
  };
  for (const nb::object& object : items(wanted)) {
    switch (const auto name = static_cast<Gradient>(word(object, {kFunction, "gradients"}, kGradients)); name) {
      case Gradient::dquery: gradients.dquery = make(name, query_array.view()); break;
      case Gradient::dkey: gradients.dkey = make(name, key_array.view()); break;
      case Gradient::dvalue: gradients.dvalue = make(name, value_array.view()); break;
      case Gradient::dsinks:
        // Without sinks, the library rejects the empty gradient.
        gradients.dsinks =
            make(name, call.get().sinks.defined() ? call.get().sinks : ConstTensorView(nullptr, DType::f32, {0}));
        break;
      case Gradient::dmasks:
        for (std::size_t n = 0; n < masks.size(); ++n) {
          const Mask& mask = call.get().masks[n];
          if (mask.kind != Mask::Kind::add) continue;
          masks[n] = Output(library, mask.view.shape(), mask.view.dtype());
          gradients.dmasks.push_back({n, masks[n].view()});
        }
        break;
    }
  }
  const ConstTensorView query_view = query_array.view();
  const ConstTensorView key_view = key_array.view();
  const ConstTensorView value_view = value_array.view();
  {
    const nb::gil_scoped_release unlocked;
    rapt::attention_backward(gradients, arrived.get(), query_view, key_view, value_view, call.get());
  }
  nb::list mask_gradients;
  for (Output& mask : masks) mask_gradients.append(mask.finish());
  return nb::make_tuple(outputs[0].finish(), outputs[1].finish(), outputs[2].finish(), outputs[3].finish(),
                        nb::tuple(mask_gradients));
}

}  // namespace

void bind_attention_backward(nb::module_& module) {
  module.def("attention_backward", &backward_call, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::arg("options"), nb::arg("upstream"), nb::arg("gradients"));
}

}  // namespace rapt::python
