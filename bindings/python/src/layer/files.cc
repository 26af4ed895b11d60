// Layers and files: load, save, and the tensors of a layer under the names of each family.
#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>

#include "arrays.h"
#include "layer/config.h"
#include "layer/layer.h"
#include "memory.h"
#include "numbers.h"
#include "rapt/npy.h"
#include "results.h"

namespace rapt::python {

namespace {

// Tensors that Python gives as a list of (name, array). Tensors of unsupported types, such as a batch counter, are not
// part of a layer and are skipped.
class NamedArrays {
 public:
  NamedArrays(const char* function, nb::handle list) {
    for (const nb::handle item : list) {
      const nb::tuple pair = tuple(item, {function, "tensors"}, 2, 2, "(name, array)");
      const std::string& name = names_.emplace_back(nb::cast<std::string>(pair[0]));
      const Array& array = arrays_.emplace_back(pair[1], Argument{function, name.c_str()});
      if (array.element().dtype()) tensors.push_back({name, array.view()});
    }
  }

  std::vector<NamedTensor> tensors;

 private:
  std::deque<std::string> names_;
  std::deque<Array> arrays_;
};

// The library of the arrays: "numpy", "torch" or "jax". None: NumPy, if it is installed.
Library library_named(nb::handle object, const Argument& argument) {
  constexpr std::array kWords = {"numpy", "torch", "jax"};  // by Library
  return object.is_none() ? Library::other : static_cast<Library>(word(object, argument, kWords));
}

nb::tuple loaded(LoadedLayer found) {
  const nb::tuple report = to_tuple(found.found);
  return nb::make_tuple(Layer{std::make_shared<SharedLayer>(std::move(found.layer))}, report);
}

// (layer, what was found). `source` is a path, or a list of (name, array).
nb::tuple load(nb::handle source, nb::handle options) {
  const LoadOptions how = load_options(options);
  if (PyUnicode_Check(source.ptr()) == 0) {
    const NamedArrays given("MultiheadAttention.load", source);
    return loaded([&] {
      const nb::gil_scoped_release unlocked;
      return MultiHeadAttention::load(given.tensors, how);
    }());
  }
  const std::string path = nb::cast<std::string>(source);
  return loaded([&] {
    const nb::gil_scoped_release unlocked;
    return MultiHeadAttention::load(path, how);
  }());
}

void save(const Layer& self, const std::string& path, nb::handle options) {
  const SaveOptions how = save_options("save", options);
  const nb::gil_scoped_release unlocked;
  const std::shared_lock reading(self.shared->mutex);
  self.shared->layer.save(path, how);
}

// The names of the tensors, with copies of their data.
nb::list state_dict(const Layer& self, nb::handle options, nb::handle library) {
  const SaveOptions how = save_options("state_dict", options);
  const Library kind = library_named(library, {"state_dict", "library"});
  std::vector<std::pair<std::string, Tensor>> copies;
  {
    const nb::gil_scoped_release unlocked;
    const std::shared_lock reading(self.shared->mutex);
    const StateDict state = self.shared->layer.state_dict(how);
    for (const NamedTensor& tensor : state.tensors) copies.emplace_back(tensor.name, Tensor::copy_of(tensor.value));
  }
  nb::list list;
  for (auto& [name, tensor] : copies) {
    list.append(nb::make_tuple(name.c_str(), as_array(kind, own(std::move(tensor)))));
  }
  return list;
}

nb::list find_layers(nb::handle source) {
  constexpr const char* kFunction = "find_attention_layers";
  nb::list list;
  const auto add = [&](const std::vector<FoundLayer>& layers) {
    for (const FoundLayer& layer : layers) list.append(to_tuple(layer));
  };
  if (PyUnicode_Check(source.ptr()) == 0) {
    add(find_attention_layers(NamedArrays(kFunction, source).tensors));
    return list;
  }
  const std::string path = nb::cast<std::string>(source);
  if (!path.ends_with(".npz")) {
    add(find_attention_layers(SafetensorsFile(path)));
    return list;
  }
  const NpzFile file(path);
  std::deque<NpyArray> arrays;
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file.names()) {
    if (file.info(name).dtype) tensors.push_back({name, arrays.emplace_back(file.at(name)).view()});
  }
  add(find_attention_layers(tensors));
  return list;
}

}  // namespace

void bind_layer_files(nb::module_& module, nb::class_<Layer>& layer) {
  layer.def("save", &save, nb::arg("path"), nb::arg("options"))
      .def("state_dict", &state_dict, nb::arg("options"), nb::arg("library").none());
  module.def("load_layer", &load, nb::arg("source"), nb::arg("options"));
  module.def("find_attention_layers", &find_layers, nb::arg("source"));
}

}  // namespace rapt::python
