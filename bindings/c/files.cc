#include <map>
#include <memory>

#include "handles.h"
#include "rapt/npy.h"
#include "rapt/safetensors.h"
#include "status.h"

using rapt::c::Caller;
using rapt::c::guarded;

struct rapt_npz {
  explicit rapt_npz(const char* path) : file(path), names(file.names()) {}

  rapt::NpzFile file;
  std::vector<std::string> names;
};

struct rapt_array {
  explicit rapt_array(rapt::NpyArray read) : array(std::move(read)) { tensor = describe(array.view(), dims); }

  rapt::NpyArray array;
  rapt::c::DimsMemory dims;
  DLTensor tensor;
};

rapt_safetensors::rapt_safetensors(rapt::SafetensorsFile opened) : file(std::move(opened)) {
  for (const auto& [key, value] : file.metadata()) metadata.push_back({key.c_str(), value.c_str()});
}

namespace {

std::vector<rapt::NamedTensor> named_tensors(const Caller& caller, const rapt_named_tensor* tensors,
                                             std::size_t count) {
  std::vector<rapt::NamedTensor> result;
  for (const rapt_named_tensor& tensor : caller.list({"tensors"}, tensors, count)) {
    const std::size_t n = result.size();
    if (tensor.name == nullptr) caller.refuse(rapt::c::Place{"tensors", n, "name"}.text() + " is null");
    result.push_back({tensor.name, caller.view({"tensors", n, "value"}, tensor.value)});
  }
  return result;
}

rapt::NpyOptions npy_options(const Caller& caller, const rapt_npy_options* given) {
  const rapt_npy_options c = whole(caller, {"options"}, given);
  rapt::NpyOptions options;
  if (c.has_integers_as != 0) {
    options.integers_as = caller.choice({"options.integers_as"}, c.integers_as, rapt::DType::i8);
  }
  return options;
}

}  // namespace

// ---------------------------------------------------------------- safetensors

rapt_status rapt_safetensors_open(rapt_safetensors** file, const char* path) {
  return guarded([&] {
    const Caller caller("rapt_safetensors_open");
    rapt_safetensors*& to = caller.the("file", file);
    to = new rapt_safetensors(rapt::SafetensorsFile(&caller.the("path", path)));
  });
}

rapt_status rapt_safetensors_open_bytes(rapt_safetensors** file, const void* bytes, size_t size, const char* name) {
  return guarded([&] {
    const Caller caller("rapt_safetensors_open_bytes");
    rapt_safetensors*& to = caller.the("file", file);
    const auto all = caller.list({"bytes"}, static_cast<const std::byte*>(bytes), size);
    to = new rapt_safetensors(rapt::SafetensorsFile(all, &caller.the("name", name)));
  });
}

void rapt_safetensors_close(rapt_safetensors* file) { delete file; }

rapt_status rapt_safetensors_count(const rapt_safetensors* file, size_t* count) {
  return guarded([&] {
    const Caller caller("rapt_safetensors_count");
    caller.the("count", count) = caller.the("file", file).file.entries().size();
  });
}

rapt_status rapt_safetensors_entry_at(const rapt_safetensors* file, size_t index, rapt_safetensors_entry* entry) {
  return guarded([&] {
    const Caller caller("rapt_safetensors_entry_at");
    const std::vector<rapt::SafetensorsEntry>& all = caller.the("file", file).file.entries();
    caller.require_index(index, all.size());
    const rapt::SafetensorsEntry& at = all[index];
    rapt_safetensors_entry c{};
    c.name = at.name.c_str();
    c.type = at.type.c_str();
    c.has_dtype = at.dtype ? 1 : 0;
    c.dtype = at.dtype ? static_cast<std::int32_t>(*at.dtype) : 0;
    c.shape = at.shape.data(), c.shape_count = at.shape.size();
    c.begin = at.begin;
    c.end = at.end;
    rapt::c::give(caller, "entry", c, entry);
  });
}

rapt_status rapt_safetensors_find(const rapt_safetensors* file, const char* name, DLTensor* value) {
  return guarded([&] {
    const Caller caller("rapt_safetensors_find");
    const rapt::SafetensorsFile& in = caller.the("file", file).file;
    const std::string_view wanted = &caller.the("name", name);
    DLTensor& to = caller.the("value", value);
    const rapt::ConstTensorView view = in.at(wanted);
    to = rapt::c::describe(view.data(), view.dtype(), in.entry(wanted)->shape, nullptr);
  });
}

rapt_status rapt_safetensors_metadata_count(const rapt_safetensors* file, size_t* count) {
  return guarded([&] {
    const Caller caller("rapt_safetensors_metadata_count");
    caller.the("count", count) = caller.the("file", file).metadata.size();
  });
}

rapt_status rapt_safetensors_metadata_at(const rapt_safetensors* file, size_t index, rapt_text_pair* pair) {
  return guarded([&] {
    const Caller caller("rapt_safetensors_metadata_at");
    const std::vector<rapt_text_pair>& all = caller.the("file", file).metadata;
    caller.require_index(index, all.size());
    caller.the("pair", pair) = all[index];
  });
}

rapt_status rapt_safetensors_write(const char* path, const rapt_named_tensor* tensors, size_t tensors_count,
                                   const rapt_text_pair* metadata, size_t metadata_count) {
  return guarded([&] {
    const Caller caller("rapt_safetensors_write");
    std::map<std::string, std::string> words;
    for (const rapt_text_pair& pair : caller.list({"metadata"}, metadata, metadata_count)) {
      words[&caller.the("a key of metadata", pair.key)] = &caller.the("a value of metadata", pair.value);
    }
    rapt::write_safetensors(&caller.the("path", path), named_tensors(caller, tensors, tensors_count), words);
  });
}

// ---------------------------------------------------------------- npy and npz

rapt_status rapt_npy_read(rapt_array** array, const char* path, const rapt_npy_options* options) {
  return guarded([&] {
    const Caller caller("rapt_npy_read");
    rapt_array*& to = caller.the("array", array);
    to = new rapt_array(rapt::read_npy(std::string(&caller.the("path", path)), npy_options(caller, options)));
  });
}

rapt_status rapt_npy_write(const char* path, const DLTensor* tensor) {
  return guarded([&] {
    const Caller caller("rapt_npy_write");
    rapt::write_npy(&caller.the("path", path), caller.view({"tensor"}, tensor));
  });
}

rapt_status rapt_npz_open(rapt_npz** file, const char* path) {
  return guarded([&] {
    const Caller caller("rapt_npz_open");
    rapt_npz*& to = caller.the("file", file);
    to = new rapt_npz(&caller.the("path", path));
  });
}

void rapt_npz_close(rapt_npz* file) { delete file; }

rapt_status rapt_npz_count(const rapt_npz* file, size_t* count) {
  return guarded([&] {
    const Caller caller("rapt_npz_count");
    caller.the("count", count) = caller.the("file", file).names.size();
  });
}

rapt_status rapt_npz_name(const rapt_npz* file, size_t index, const char** name) {
  return guarded([&] {
    const Caller caller("rapt_npz_name");
    const std::vector<std::string>& names = caller.the("file", file).names;
    caller.require_index(index, names.size());
    caller.the("name", name) = names[index].c_str();
  });
}

rapt_status rapt_npz_read(rapt_array** array, const rapt_npz* file, const char* name, const rapt_npy_options* options) {
  return guarded([&] {
    const Caller caller("rapt_npz_read");
    rapt_array*& to = caller.the("array", array);
    const rapt::NpzFile& in = caller.the("file", file).file;
    to = new rapt_array(in.at(&caller.the("name", name), npy_options(caller, options)));
  });
}

rapt_status rapt_npz_write(const char* path, const rapt_named_tensor* tensors, size_t tensors_count, int32_t compress) {
  return guarded([&] {
    const Caller caller("rapt_npz_write");
    rapt::write_npz(&caller.the("path", path), named_tensors(caller, tensors, tensors_count),
                    {.compress = compress != 0});
  });
}

rapt_status rapt_array_tensor(const rapt_array* array, DLTensor* value) {
  return guarded([&] {
    const Caller caller("rapt_array_tensor");
    caller.the("value", value) = caller.the("array", array).tensor;
  });
}

void rapt_array_destroy(rapt_array* array) { delete array; }
