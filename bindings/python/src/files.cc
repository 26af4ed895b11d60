#include "files.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "dtypes.h"
#include "rapt/npy.h"
#include "rapt/safetensors.h"
#include "results.h"

namespace rapt::python {

namespace nb = nanobind;

namespace {

NpyOptions npy_options(nb::handle integers_as) {
  if (integers_as.is_none()) return {};
  return {dtype(integers_as, {"load", "integers_as"})};
}

nb::object array_of(NpyArray read) {
  const auto owner = std::make_shared<NpyArray>(std::move(read));
  return as_array(Library::other, lend(owner, owner->view(), /*read_only=*/false));
}

nb::object load_npy(const std::string& path, nb::handle integers_as) {
  const NpyOptions options = npy_options(integers_as);
  NpyArray read;
  {
    const nb::gil_scoped_release unlocked;
    read = read_npy(path, options);
  }
  return array_of(std::move(read));
}

nb::dict load_npz(const std::string& path, nb::handle integers_as) {
  const NpyOptions options = npy_options(integers_as);
  std::vector<std::pair<std::string, NpyArray>> members;
  {
    const nb::gil_scoped_release unlocked;
    const NpzFile file(path);
    for (const std::string& name : file.names()) members.emplace_back(name, file.at(name, options));
  }
  nb::dict arrays;
  for (auto& [name, read] : members) arrays[name.c_str()] = array_of(std::move(read));
  return arrays;
}

// Borrowed arrays, by name.
class NamedArrays {
 public:
  explicit NamedArrays(const nb::dict& arrays) {
    for (const auto [name, array] : arrays) {
      if (PyUnicode_Check(name.ptr()) == 0) throw nb::type_error("save: names must be str");
      names_.push_back(nb::cast<std::string>(name));
      loans_.emplace_back(array, Argument{"save", names_.back().c_str()});
      tensors_.push_back({names_.back(), loans_.back().view()});
    }
  }

  const std::vector<NamedTensor>& tensors() const { return tensors_; }

 private:
  std::deque<std::string> names_;
  std::deque<Array> loans_;
  std::vector<NamedTensor> tensors_;
};

void bind_safetensors(nb::module_& module) {
  nb::class_<SafetensorsEntry>(module, "SafetensorsEntry", "A tensor as described by the file's header.")
      .def_ro("name", &SafetensorsEntry::name)
      .def_ro("type", &SafetensorsEntry::type, "The element type as the file names it: \"F32\", \"BF16\", \"I64\".")
      .def_prop_ro(
          "dtype",
          [](const SafetensorsEntry& self) {
            return self.dtype ? nb::object(nb::str(python_name(*self.dtype))) : nb::none();
          },
          "The element type as Python names it, or None if rapt does not support it.")
      .def_prop_ro("shape", [](const SafetensorsEntry& self) { return nb::tuple(nb::cast(self.shape)); })
      .def_ro("begin", &SafetensorsEntry::begin, "Offset of the first byte from the start of the file.")
      .def_ro("end", &SafetensorsEntry::end)
      .def("__repr__",
           [](const SafetensorsEntry& self) { return "SafetensorsEntry(" + self.name + ": " + self.type + ")"; });
  nb::class_<SafetensorsFile>(module, "SafetensorsFile",
                              "An open safetensors file: arrays by name, memory-mapped without a copy.\n\n"
                              "Opening maps the file and reads its header; a tensor's bytes are loaded when they are "
                              "first\naccessed. Arrays keep the mapping alive, and are read-only.")
      .def(
          "__init__",
          [](SafetensorsFile* self, const std::string& path) {
            const nb::gil_scoped_release unlocked;
            new (self) SafetensorsFile(path);
          },
          nb::arg("path"))
      .def("__len__", [](const SafetensorsFile& self) { return self.entries().size(); })
      .def("__contains__",
           [](const SafetensorsFile& self, const std::string& name) { return self.entry(name) != nullptr; })
      .def("__iter__", [](const SafetensorsFile& self) { return nb::iter(nb::cast(self.names())); })
      .def("keys", &SafetensorsFile::names, "The names, in the header's order.")
      .def(
          "__getitem__",
          [](const std::shared_ptr<SafetensorsFile>& self, const std::string& name) {
            if (self->entry(name) == nullptr) throw nb::key_error(name.c_str());
            return as_array(Library::other, lend(self, self->at(name)));
          },
          nb::arg("name"))
      .def_prop_ro(
          "entries", [](const SafetensorsFile& self) { return self.entries(); }, "In the header's order.")
      .def_prop_ro("metadata", [](const SafetensorsFile& self) { return self.metadata(); });
}

}  // namespace

void bind_files(nb::module_& module) {
  bind_safetensors(module);
  module.def("load_npy", &load_npy, nb::arg("path"), nb::arg("integers_as").none());
  module.def("load_npz", &load_npz, nb::arg("path"), nb::arg("integers_as").none());
  module.def(
      "save_safetensors",
      [](const std::string& path, const nb::dict& arrays, const std::map<std::string, std::string>& metadata) {
        const NamedArrays named(arrays);
        const nb::gil_scoped_release unlocked;
        write_safetensors(path, named.tensors(), metadata);
      },
      nb::arg("path"), nb::arg("arrays"), nb::arg("metadata"));
  module.def(
      "save_npz",
      [](const std::string& path, const nb::dict& arrays, bool compress) {
        const NamedArrays named(arrays);
        const nb::gil_scoped_release unlocked;
        write_npz(path, named.tensors(), {.compress = compress});
      },
      nb::arg("path"), nb::arg("arrays"), nb::arg("compress"));
  module.def(
      "save_npy",
      [](const std::string& path, nb::handle array) {
        const Array lent(array, {"save", "array"});
        const ConstTensorView view = lent.view();
        const nb::gil_scoped_release unlocked;
        write_npy(path, view);
      },
      nb::arg("path"), nb::arg("array"));
}

}  // namespace rapt::python
