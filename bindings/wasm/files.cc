// Files dropped on a page: safetensors, npy and npz, read in place in the engine's memory.
#include "files.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <emscripten/bind.h>

#include "array.h"
#include "errors.h"

namespace rapt::wasm {

namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;  // the reader's own limit: it rejects larger headers unread

bool ends_with(const std::string& name, std::string_view end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

template <class Shape>
val entry(const std::string& name, const std::string& type, const Shape& shape) {
  val sizes = val::array();
  for (const std::int64_t size : shape) push(sizes, static_cast<double>(size));
  val result = val::object();
  result.set("name", name);
  result.set("type", type);
  result.set("shape", sizes);
  return result;
}

}  // namespace

File::File(const std::string& name, const val& bytes)
    : name_(name), bytes_(std::make_shared<std::vector<std::byte>>(bytes["length"].as<unsigned>())) {
  val(emscripten::typed_memory_view(bytes_->size(), reinterpret_cast<std::uint8_t*>(bytes_->data())))
      .call<void>("set", bytes);
  const std::span<const std::byte> all(*bytes_);
  if (ends_with(name, ".safetensors")) {
    safetensors_ = std::make_shared<SafetensorsFile>(all, name);
  } else if (ends_with(name, ".npz")) {
    npz_ = std::make_shared<NpzFile>(all, name);
  } else if (ends_with(name, ".npy")) {
    npy_info(all, name);
  } else {
    throw Error(name + ": unknown file extension; expected .safetensors, .npz or .npy");
  }
}

File::File(const std::string& name, const val& beginning, double size)
    : name_(name), whole_(false), bytes_(std::make_shared<std::vector<std::byte>>(beginning["length"].as<unsigned>())) {
  // Sizes have 32 bits here, and the span below must end within the address space.
  constexpr double kMost = 3.5e9;
  if (!(size >= 0 && size < kMost)) {
    throw Error("safetensors: " + name + " has " + std::to_string(static_cast<std::uint64_t>(size)) +
                " bytes; the limit is 3500000000");
  }
  val(emscripten::typed_memory_view(bytes_->size(), reinterpret_cast<std::uint8_t*>(bytes_->data())))
      .call<void>("set", beginning);
  const auto all = static_cast<std::uint64_t>(size);
  std::uint64_t header = 0;
  if (bytes_->size() >= sizeof header) std::memcpy(&header, bytes_->data(), sizeof header);
  const bool there = all < sizeof header ? bytes_->size() == all : bytes_->size() >= sizeof header;
  if (!there || (header <= all - sizeof header && header <= kMostHeader && bytes_->size() < sizeof header + header)) {
    throw Error("safetensors: " + name + ": the first part must contain the whole header");
  }
  // Data past the header is counted but never read: at() requires the whole file.
  safetensors_ = std::make_shared<SafetensorsFile>(
      std::span<const std::byte>(bytes_->data(), static_cast<std::size_t>(all)), name);
}

val File::entries() const {
  val list = val::array();
  if (safetensors_) {
    for (const SafetensorsEntry& each : safetensors_->entries()) {
      val one = entry(each.name, each.type, each.shape);
      val bytes = val::array();
      push(bytes, static_cast<double>(each.begin));
      push(bytes, static_cast<double>(each.end));
      one.set("bytes", bytes);
      push(list, one);
    }
  } else if (npz_) {
    for (const std::string& each : npz_->names()) {
      const NpyInfo info = npz_->info(each);
      push(list, entry(each, info.type, info.shape));
    }
  } else {
    const NpyInfo info = npy_info(*bytes_, name_);
    push(list, entry("", info.type, info.shape));
  }
  return list;
}

void File::require_whole() const {
  if (!whole_) throw Error(name_ + " was opened for its header only");
}

Array File::tensor(const std::string& name) const {
  require_whole();
  // Masks are often integers; converted to floats, they can be displayed too.
  const NpyOptions options{.integers_as = DType::f32};
  if (safetensors_) {
    struct Kept {
      std::shared_ptr<std::vector<std::byte>> bytes;
      std::shared_ptr<SafetensorsFile> file;
    };
    return {safetensors_->at(name), std::make_shared<Kept>(Kept{bytes_, safetensors_})};
  }
  auto array = std::make_shared<NpyArray>(npz_ ? npz_->at(name, options) : read_npy(*bytes_, name_, options));
  const ConstTensorView view = array->view();
  return {view, array};
}

std::vector<NamedTensor> File::named_tensors(std::vector<Array>& keep) const {
  std::vector<NamedTensor> tensors;
  const val list = entries();
  const auto count = list["length"].as<unsigned>();
  for (unsigned n = 0; n < count; ++n) {
    const auto name = list[n]["name"].as<std::string>();
    keep.push_back(tensor(name));
    tensors.push_back({name, keep.back().view()});
  }
  return tensors;
}

val File::metadata() const {
  val result = val::object();
  if (!safetensors_) return result;
  for (const auto& [key, words] : safetensors_->metadata()) result.set(key, words);
  return result;
}

std::vector<FoundLayer> File::layers() const {
  if (safetensors_) return find_attention_layers(*safetensors_);
  std::vector<Array> keep;
  return find_attention_layers(named_tensors(keep));
}

LoadedLayer File::layer(const LoadOptions& options) const {
  require_whole();
  if (safetensors_) return MultiHeadAttention::load(*safetensors_, options);
  std::vector<Array> keep;
  return MultiHeadAttention::load(named_tensors(keep), options);
}

namespace {

std::shared_ptr<File> open(const std::string& name, const val& bytes) {
  return guarded([&] { return std::make_shared<File>(name, bytes); });
}
std::shared_ptr<File> open_header(const std::string& name, const val& beginning, double size) {
  return guarded([&] { return std::make_shared<File>(name, beginning, size); });
}
val entries_of(const File& file) {
  return guarded([&] { return file.entries(); });
}
val metadata_of(const File& file) {
  return guarded([&] { return file.metadata(); });
}
Array tensor_of(const File& file, const std::string& name) {
  return guarded([&] { return file.tensor(name); });
}

val layers_of(const File& file) {
  return guarded([&] {
    val list = val::array();
    for (const FoundLayer& found : file.layers()) {
      val heads = val::array();
      for (const std::int64_t each : found.possible_heads()) push(heads, static_cast<double>(each));
      val layer = val::object();
      layer.set("prefix", found.prefix);
      layer.set("family", std::string(name_of(found.family)));
      layer.set("embedSize", static_cast<double>(found.embed_size));
      layer.set("keySize", static_cast<double>(found.key_size));
      layer.set("possibleHeads", heads);
      layer.set("queryWidth", static_cast<double>(found.query_width));
      layer.set("keyWidth", static_cast<double>(found.key_width));
      layer.set("contextLength", static_cast<double>(found.context_length));
      layer.set("addsKeys", found.add_bias_kv);
      layer.set("transposed", found.transposed);
      val tensors = val::object();
      for (const TensorRole& each : found.tensors) tensors.set(each.role, each.tensor);
      layer.set("tensors", tensors);
      push(list, layer);
    }
    return list;
  });
}

// The bytes of a .npy file, to be saved by the page.
val npy_of(const Array& array) {
  return guarded([&] {
    const std::vector<std::byte> bytes = npy_bytes(array.view());
    return val(emscripten::typed_memory_view(bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data())))
        .call<val>("slice");
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(rapt_files) {
  emscripten::class_<File>("File")
      .smart_ptr<std::shared_ptr<File>>("File")
      .class_function("open", &open)
      .class_function("openHeader", &open_header)
      .function("entries", &entries_of)
      .function("metadata", &metadata_of)
      .function("tensor", &tensor_of)
      .function("layers", &layers_of);
  emscripten::function("npy", &npy_of);
}

}  // namespace rapt::wasm
