#include "fuzz/check.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "rapt/npy.h"
#include "rapt/safetensors.h"

namespace rapt::fuzz {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::int64_t kMost = std::int64_t{1} << 24;  // elements: more would only be slow

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// The elements in row-major order. Floats are converted to their bits, so NaNs are preserved.
std::vector<std::byte> elements_of(const ConstTensorView& view) {
  const std::size_t size = size_of(view.dtype());
  std::vector<std::byte> result(static_cast<std::size_t>(view.count()) * size);
  for (std::int64_t place = 0; place < view.count(); ++place) {
    std::int64_t rest = place, offset = 0;
    for (int dim = view.rank() - 1; dim >= 0; --dim) {
      offset += rest % view.size(dim) * view.stride(dim);
      rest /= view.size(dim);
    }
    std::memcpy(result.data() + static_cast<std::size_t>(place) * size,
                static_cast<const std::byte*>(view.data()) + static_cast<std::size_t>(offset) * size, size);
  }
  if (view.dtype() == DType::boolean) {
    for (const std::byte byte : result) require(byte <= std::byte{1}, "a bool is neither 0 nor 1");
  }
  return result;
}

void require_same(const ConstTensorView& a, const ConstTensorView& b) {
  require(a.dtype() == b.dtype(), "another type");
  require(a.shape() == b.shape(), "another shape");
  require(elements_of(a) == elements_of(b), "other elements");
}

// An input rejected with rapt::Error is fine; any other exception is a finding.
template <class Attempt>
bool accepted(const Attempt& attempt) {
  try {
    attempt();
    return true;
  } catch (const Error& error) {
    require(std::strlen(error.what()) > 0 && std::strlen(error.what()) < 2000, "an error has no words, or too many");
    return false;
  }
}

}  // namespace

void check_safetensors(Bytes bytes) {
  std::vector<NamedTensor> tensors;
  const auto read = [&] {
    const SafetensorsFile file(bytes, "fuzz");
    for (const SafetensorsEntry& entry : file.entries()) {
      if (!entry.dtype || entry.shape.size() > Dims::kMaxRank) continue;
      tensors.push_back({entry.name, file.at(entry.name)});
    }
    const std::vector<std::byte> again = safetensors_bytes(tensors, file.metadata());
    const SafetensorsFile second(again, "again");
    require(second.metadata() == file.metadata(), "other metadata");
    require(second.entries().size() == tensors.size(), "another number of tensors");
    for (const NamedTensor& tensor : tensors) require_same(tensor.value, second.at(tensor.name));
    require(safetensors_bytes(tensors, second.metadata()) == again, "other bytes");
  };
  (void)accepted(read);
}

void check_npy(Bytes bytes) {
  for (const NpyOptions& options : {NpyOptions{}, {.integers_as = DType::boolean}, {.integers_as = DType::f32}}) {
    NpyArray array;
    if (!accepted([&] { array = read_npy(bytes, "fuzz", options); })) continue;
    const NpyInfo info = npy_info(bytes, "fuzz");
    require(Dims(std::span<const std::int64_t>(info.shape)) == array.view().shape(), "another shape");
    const std::vector<std::byte> again = npy_bytes(array.view());
    require_same(array.view(), read_npy(again, "again").view());
    require_same(array.view(), array.tensor());
    require(npy_bytes(read_npy(again, "again").view()) == again, "other bytes");
  }
}

void check_npz(Bytes bytes) {
  std::vector<std::string> names;
  std::vector<NpyArray> arrays;
  const auto read = [&] {
    const NpzFile file(bytes, "fuzz");
    for (const std::string& name : file.names()) {
      const auto member = [&] {
        const NpyInfo info = file.info(name);
        std::int64_t count = 1;
        for (const std::int64_t size : info.shape) count = size > kMost || count > kMost ? kMost + 1 : count * size;
        if (count > kMost) return;
        arrays.push_back(file.at(name, {.integers_as = DType::f64}));
        names.push_back(name);
      };
      (void)accepted(member);
    }
  };
  (void)accepted(read);
  if (arrays.empty()) return;
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) tensors.push_back({names[i], arrays[i].view()});
  for (const bool compress : {false, true}) {
    // A name in an archive may be impossible to write, such as one with a zero byte.
    std::vector<std::byte> again;
    if (!accepted([&] { again = npz_bytes(tensors, {.compress = compress}); })) return;
    const NpzFile second(again, "again");
    require(second.names() == names, "other names");
    for (const NamedTensor& tensor : tensors) require_same(tensor.value, second.at(tensor.name).view());
  }
}

}  // namespace rapt::fuzz
