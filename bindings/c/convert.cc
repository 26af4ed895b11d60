#include "convert.h"

#include <algorithm>
#include <exception>
#include <mutex>

namespace rapt::c {

std::string Place::text() const {
  std::string words = name;
  if (index != kNone) words.append("[").append(std::to_string(index)).append("]");
  if (*field != '\0') words.append(".").append(field);
  return words;
}

void Caller::refuse(const std::string& why) const { throw Error(std::string(function_) + ": " + why); }

void Caller::refuse_null(const char* name) const { refuse(std::string(name) + " is null"); }

void Caller::refuse_list(const Place& place, std::size_t count) const {
  refuse(place.text() + " is null, but must have " + std::to_string(count) + " values");
}

void Caller::refuse_choice(const Place& place, std::int32_t value, std::int32_t last) const {
  refuse(place.text() + " is " + std::to_string(value) + "; it must be one of its constants, from 0 to " +
         std::to_string(last));
}

void Caller::require_index(std::size_t index, std::size_t count) const {
  if (index >= count) refuse("index is " + std::to_string(index) + "; there are " + std::to_string(count));
}

void Caller::require_zero(const Place& place, std::int32_t reserved) const {
  if (reserved != 0) refuse(place.text() + ".reserved is " + std::to_string(reserved) + "; it must be 0");
}

void Caller::require_size(const Place& place, std::size_t size, std::size_t known) const {
  // Fields of 4 bytes come in pairs, without padding, so every version of a struct has a size that is a multiple of 8.
  if (size != 0 && size % sizeof(std::int64_t) == 0 && size <= known) return;
  refuse(place.text() + ".struct_size is " + std::to_string(size) + "; this library expects " + std::to_string(known) +
         (size > known ? ": initialize the struct with its init function, or use a newer library"
                       : ": initialize the struct with its init function"));
}

// ---------------------------------------------------------------- tensors

namespace {

struct TypePair {
  DType dtype;
  std::uint8_t code, bits;
};

// DLPack's type codes as numbers: a <dlpack/dlpack.h> that was included before may be too old to name them all.
constexpr std::uint8_t kInt = 0, kFloat = 2, kBfloat = 4, kBool = 6;
constexpr int kCpu = 1, kCuda = 2;

constexpr TypePair kTypes[] = {
    {DType::f32, kFloat, 32}, {DType::f64, kFloat, 64},   {DType::bf16, kBfloat, 16},
    {DType::f16, kFloat, 16}, {DType::boolean, kBool, 8}, {DType::i8, kInt, 8},
};

DType dtype_of_tensor(const Caller& caller, const Place& place, const DLDataType& given) {
  for (const TypePair& type : kTypes) {
    if (type.code == given.code && type.bits == given.bits && given.lanes == 1) return type.dtype;
  }
  caller.refuse(place.text() + " has DLPack type code " + std::to_string(given.code) + " of " +
                std::to_string(given.bits) + " bits and " + std::to_string(given.lanes) +
                " lanes; it must be f32, f64 or f16 (code 2), bf16 (code 4), bool (code 6, 8 bits) or i8 (code 0), of "
                "1 lane");
}

Device device_of(const Caller& caller, const Place& place, const DLDevice& given) {
  // Read as a number, because the caller's value may be outside the enum.
  std::int32_t type = 0;
  static_assert(sizeof(type) == sizeof(given.device_type));
  std::memcpy(&type, &given.device_type, sizeof(type));
  if (type == kCpu) return {Device::Kind::cpu, given.device_id};
  if (type == kCuda) return {Device::Kind::cuda, given.device_id};
  caller.refuse(place.text() + " is on a device of DLPack type " + std::to_string(type) +
                "; it must be 1, the CPU, or 2, CUDA");
}

}  // namespace

TensorView Caller::view(const Place& place, const DLTensor* tensor) const {
  if (tensor == nullptr) return {};
  const DType dtype = dtype_of_tensor(*this, place, tensor->dtype);
  const Device device = device_of(*this, place, tensor->device);
  if (tensor->ndim < 0 || (tensor->ndim > 0 && tensor->shape == nullptr)) {
    refuse(place.text() + " has " + std::to_string(tensor->ndim) + " dimensions and " +
           (tensor->shape == nullptr ? "no shape" : "a shape"));
  }
  const auto rank = static_cast<std::size_t>(tensor->ndim);
  const Dims shape(std::span<const std::int64_t>(tensor->shape, rank));
  auto* data = static_cast<std::byte*>(tensor->data);
  if (data != nullptr) data += tensor->byte_offset;
  if (tensor->strides == nullptr) return {data, dtype, shape, device};
  return {data, dtype, shape, Dims(std::span<const std::int64_t>(tensor->strides, rank)), device};
}

DLTensor describe(const void* data, DType dtype, std::span<const std::int64_t> shape, std::int64_t* strides) {
  const TypePair& type = *std::ranges::find(kTypes, dtype, &TypePair::dtype);
  DLTensor tensor{};
  // A DLTensor has no const data pointer; the header documents that it is read-only.
  tensor.data = const_cast<void*>(data);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  tensor.device.device_type = static_cast<DLDeviceType>(kCpu);
  tensor.ndim = static_cast<std::int32_t>(shape.size());
  tensor.dtype = {type.code, type.bits, 1};
  tensor.shape = const_cast<std::int64_t*>(shape.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  tensor.strides = strides;
  return tensor;
}

DLTensor describe(const ConstTensorView& view, DimsMemory& memory) {
  std::ranges::copy(view.shape(), memory.shape.begin());
  std::ranges::copy(view.strides(), memory.strides.begin());
  return describe(view.data(), view.dtype(), {memory.shape.data(), static_cast<std::size_t>(view.rank())},
                  memory.strides.data());
}

// ---------------------------------------------------------------- threads

namespace {

// The tasks of one call. If several tasks throw, the exception of the lowest index is kept, as in the library's own
// pool.
struct Tasks {
  const Task& task;
  std::mutex mutex{};
  std::int64_t failed = 0;
  std::exception_ptr exception{};

  static void run(void* tasks, std::int64_t index) noexcept {
    auto& self = *static_cast<Tasks*>(tasks);
    try {
      self.task(index);
    } catch (...) {
      const std::lock_guard lock(self.mutex);
      if (self.exception != nullptr && self.failed < index) return;
      self.failed = index;
      self.exception = std::current_exception();
    }
  }
};

}  // namespace

ParallelFor parallel_for_of(rapt_parallel_for function, void* context) {
  if (function == nullptr) return {};
  return [function, context](std::int64_t count, const Task& task) {
    Tasks tasks{task};
    function(context, count, &Tasks::run, &tasks);
    if (tasks.exception != nullptr) std::rethrow_exception(tasks.exception);
  };
}

}  // namespace rapt::c
