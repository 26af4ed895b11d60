// The host decides when a tensor is created and destroyed, and knows nothing about streams. So freeing a tensor's
// memory, and copying it, waits for all work of the device. The memory of one call is taken from a pool and returned to
// the pool in the order of the call's stream, without waiting.
#include "cuda/memory.h"

#include <array>
#include <cuda_runtime_api.h>
#include <limits>
#include <mutex>
#include <new>

#include "cuda/device.h"
#include "cuda/errors.h"
#include "cuda/small.h"

namespace rapt::cuda {

namespace {

std::byte* allocated(void* memory, cudaError_t code, const char* call, int device) {
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw std::bad_alloc();
  }
  require(code, call, device);
  return static_cast<std::byte*>(memory);
}

// The pool of a GPU for the memory of calls. The pool keeps the memory that it has taken from the system. Null if the
// GPU supports no pools, or if its index is kMostDevices or more.
cudaMemPool_t pool_of(int device) {
  constexpr std::size_t kMostDevices = 64;
  struct Pool {
    std::once_flag made;
    cudaMemPool_t pool = nullptr;
  };
  static std::array<Pool, kMostDevices> pools;  // never destroyed, because CUDA may be gone at exit
  if (static_cast<std::size_t>(device) >= kMostDevices) return nullptr;
  Pool& mine = pools[static_cast<std::size_t>(device)];
  std::call_once(mine.made, [&] {
    int supported = 0;
    require(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device), "cudaDeviceGetAttribute",
            device);
    if (supported == 0) return;
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {.type = cudaMemLocationTypeDevice, .id = device};
    require(cudaMemPoolCreate(&mine.pool, &properties), "cudaMemPoolCreate", device);
    std::uint64_t kept = std::numeric_limits<std::uint64_t>::max();
    require(cudaMemPoolSetAttribute(mine.pool, cudaMemPoolAttrReleaseThreshold, &kept), "cudaMemPoolSetAttribute",
            device);
  });
  return mine.pool;
}

std::byte* allocate(int device, std::size_t bytes) {
  const Current current(device);
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, bytes);
  return allocated(memory, code, "cudaMalloc", device);
}

// Errors are ignored, because this function cannot report them; an error of earlier work is reported by the next call.
void free_memory(int device, std::byte* memory) noexcept {
  int before = device;
  (void)cudaGetDevice(&before);
  if (before != device) (void)cudaSetDevice(device);
  (void)cudaFree(memory);  // waits for the device
  if (before != device) (void)cudaSetDevice(before);
}

std::byte* allocate_for_call(int device, std::size_t bytes, StreamHandle stream) {
  const Current current(device);
  void* memory = nullptr;
  cudaMemPool_t pool = pool_of(device);
  const cudaError_t code =
      pool == nullptr ? cudaMalloc(&memory, bytes) : cudaMallocFromPoolAsync(&memory, bytes, pool, stream_of(stream));
  return allocated(memory, code, "cudaMallocFromPoolAsync", device);
}

void free_after_call(int device, std::byte* memory, StreamHandle stream) noexcept {
  int before = device;
  (void)cudaGetDevice(&before);
  if (before != device) (void)cudaSetDevice(device);
  if (cudaMemPool_t pool = pool_of(device); pool == nullptr) {
    (void)cudaFree(memory);
  } else {
    (void)cudaFreeAsync(memory, stream_of(stream));
  }
  if (before != device) (void)cudaSetDevice(before);
}

void wait(int device) {
  const Current current(device);
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize", device);
}

cudaMemcpyKind kind_of(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::from_host: return cudaMemcpyHostToDevice;
    case CopyDirection::to_host: return cudaMemcpyDeviceToHost;
    case CopyDirection::within_device: break;
  }
  return cudaMemcpyDeviceToDevice;
}

void copy_bytes(int device, void* to, const void* from, std::size_t bytes, CopyDirection direction) {
  wait(device);
  const Current current(device);
  require(cudaMemcpy(to, from, bytes, kind_of(direction)), "cudaMemcpy", device);
}

void zero(int device, void* memory, std::size_t bytes) {
  wait(device);
  const Current current(device);
  require(cudaMemset(memory, 0, bytes), "cudaMemset", device);
  wait(device);
}

// ---------------------------------------------------------------- steps of a layer

// A step that the device does not support yet.
template <auto kStep>
struct Absent;
template <class Result, class... Given, Result (*LayerOps::*kStep)(Given...)>
struct Absent<kStep> {
  [[noreturn]] static Result run(Given... /*given*/) {
    throw Error(
        "the cuda engine does not support layers, caches or training yet; on a GPU rapt computes attention and its "
        "gradients, and copies tensors");
  }
};

void copy_elements(const ConstTensorView& from, const TensorView& to, const Workers& /*workers*/) {
  const int device = to.device().index;
  wait(device);
  const Current current(device);
  launch_copy(from, to, launch_on(device, {}));
  wait(device);
}

void fill(const TensorView& to, double value, const Workers& /*workers*/) {
  const int device = to.device().index;
  wait(device);
  const Current current(device);
  launch_fill(to, value, launch_on(device, {}));
  wait(device);
}

}  // namespace

constinit const MemoryOps kMemory = {
    .allocate = allocate,
    .free = free_memory,
    .allocate_for_call = allocate_for_call,
    .free_after_call = free_after_call,
    .copy = copy_bytes,
    .zero = zero,
    .wait = wait,
};

constinit const LayerOps kLayer = {
    .copy = copy_elements,
    .fill = fill,
    .rotate = Absent<&LayerOps::rotate>::run,
    .fill_rotary_table = Absent<&LayerOps::fill_rotary_table>::run,
    .append = Absent<&LayerOps::append>::run,
    .find_not_finite = Absent<&LayerOps::find_not_finite>::run,
    .drop_output = Absent<&LayerOps::drop_output>::run,
    .add = Absent<&LayerOps::add>::run,
    .add_row_sums = Absent<&LayerOps::add_row_sums>::run,
    .norm = Absent<&LayerOps::norm>::run,
    .norm_backward = Absent<&LayerOps::norm_backward>::run,
    .gelu = Absent<&LayerOps::gelu>::run,
    .gelu_backward = Absent<&LayerOps::gelu_backward>::run,
    .embed = Absent<&LayerOps::embed>::run,
    .embed_backward = Absent<&LayerOps::embed_backward>::run,
    .cross_entropy = Absent<&LayerOps::cross_entropy>::run,
    .add_squares = Absent<&LayerOps::add_squares>::run,
    .scale = Absent<&LayerOps::scale>::run,
    .adam = Absent<&LayerOps::adam>::run,
};

}  // namespace rapt::cuda
