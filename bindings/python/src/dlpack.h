// The structs of DLPack, the protocol for sharing memory between array libraries.
// https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once

#include <cstdint>

namespace rapt::python::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2 };

enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kOpaque = 3, kBfloat = 4, kComplex = 5, kBool = 6 };

struct Device {
  std::int32_t type;
  std::int32_t index;
};

struct Type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t rank;
  Type type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

// In a capsule named "dltensor"; the consumer renames the capsule and calls the deleter.
struct ManagedTensor {
  static constexpr const char* kName = "dltensor";
  static constexpr const char* kUsedName = "used_dltensor";

  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor* self);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

// Since DLPack version 1: in a capsule named "dltensor_versioned", for consumers that pass max_version.
struct ManagedTensorVersioned {
  static constexpr const char* kName = "dltensor_versioned";
  static constexpr const char* kUsedName = "used_dltensor_versioned";
  static constexpr std::uint64_t kReadOnly = 1;

  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};

// The same exchange without going through Python, for types that have __dlpack_c_exchange_api__. PyTorch's __dlpack__
// takes microseconds, this exchange a fraction of a microsecond.
struct ExchangeApi {
  static constexpr const char* kName = "dlpack_exchange_api";

  Version version;
  ExchangeApi* previous;
  int (*allocate)(Tensor* prototype, ManagedTensorVersioned** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*from_object)(void* object, ManagedTensorVersioned** out);  // not 0: a Python exception is set
  int (*to_object)(ManagedTensorVersioned* tensor, void** object);
  int (*borrow)(void* object, Tensor* out);
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

}  // namespace rapt::python::dlpack
