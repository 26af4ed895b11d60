#include "cuda/device.h"

#include <cuda_runtime_api.h>
#include <deque>
#include <fstream>
#include <mutex>
#include <utility>

#include "core/text.h"
#include "cuda/errors.h"
#include "cuda/kernel_sets.h"
#include "rapt/cuda.h"

namespace rapt::cuda {

namespace {

// The number of GPUs, or the error, that the runtime reports. It is asked once per process, so a driver that is
// installed later is not noticed.
struct Found {
  Found() {
    code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
      count = 0;
      (void)cudaGetLastError();  // clears the error, which `code` keeps
    }
  }
  int count = 0;
  cudaError_t code = cudaSuccess;
};

const Found& found() {
  static const Found the_devices;
  return the_devices;
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute", device);
  return value;
}

Limits query_limits(int device) {
  return {.capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
                        attribute(cudaDevAttrComputeCapabilityMinor, device),
          .multiprocessors = attribute(cudaDevAttrMultiProcessorCount, device),
          .shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device)};
}

}  // namespace

int device_count() { return found().count; }

const Limits& limits_of(int device) {
  if (device < 0 || device >= device_count()) {
    const std::string reason = unavailable_because();
    if (!reason.empty()) throw Error(text("cuda:", device, ": ", reason));
    throw Error(
        text("cuda:", device, ": there is no such GPU; this machine has ", device_count(), ", numbered from cuda:0"));
  }
  static const std::deque<Limits> all = [] {
    std::deque<Limits> limits;
    for (int each = 0; each < device_count(); ++each) limits.push_back(query_limits(each));
    return limits;
  }();
  return all[static_cast<std::size_t>(device)];
}

Current::Current(int device) {
  (void)limits_of(device);
  int current = 0;
  require(cudaGetDevice(&current), "cudaGetDevice", device);
  if (current == device) return;
  require(cudaSetDevice(device), "cudaSetDevice", device);
  before_ = current;
}

Current::~Current() {
  if (before_ >= 0) (void)cudaSetDevice(before_);
}

Launch launch_on(int device, StreamHandle stream) {
  const Limits& limits = limits_of(device);
  return {.stream = stream_of(stream),
          .device = device,
          .capability = limits.capability,
          .multiprocessors = limits.multiprocessors,
          .shared_bytes = limits.shared_bytes};
}

// ---------------------------------------------------------------- rapt/cuda.h

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all;
  for (int device = 0; device < device_count(); ++device) {
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties", device);
    all.push_back({.index = device,
                   .name = properties.name,
                   .capability_major = properties.major,
                   .capability_minor = properties.minor,
                   .memory_bytes = properties.totalGlobalMem,
                   .multiprocessors = properties.multiProcessorCount});
  }
  return all;
}

std::string unavailable_because() {
  if (device_count() > 0) return {};
  int driver_version = 0;
  if (cudaDriverGetVersion(&driver_version) != cudaSuccess) driver_version = 0;
  (void)cudaGetLastError();
  // For a missing driver, the runtime reports that the driver is too old.
  if (driver_version == 0) return "no NVIDIA driver was found";
  if (found().code == cudaSuccess || found().code == cudaErrorNoDevice) {
    return "an NVIDIA driver was found, but no GPU";
  }
  return "no GPU can be used: " + words_of(found().code);
}

std::string driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
    (void)cudaGetLastError();
    return {};
  }
  std::string name;
  std::ifstream("/sys/module/nvidia/version") >> name;
  return text(name, name.empty() ? "" : ", ", "CUDA ", version / 1000, ".", version % 1000 / 10);
}

std::vector<KernelSetInfo> kernel_sets() {
  const KernelSet* forced = forced_set();
  std::vector<KernelSetInfo> all;
  for (const KernelSet* set : all_sets()) {
    const bool runs_here = device_count() > 0 && set->runs_on(limits_of(0).capability);
    all.push_back({.name = set->name,
                   .does = set->does,
                   .runs_here = runs_here,
                   .in_use = runs_here && (forced == nullptr || forced == set)});
  }
  return all;
}

Stream::Stream(int device) : device_(device), owned_(true) {
  const Current current(device);
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", device);
  handle_.handle = stream;
}

Stream::Stream(Stream&& other) noexcept
    : handle_(other.handle_), device_(other.device_), owned_(std::exchange(other.owned_, false)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(device_, other.device_);
  std::swap(owned_, other.owned_);
  return *this;
}

Stream::~Stream() {
  if (owned_) (void)cudaStreamDestroy(stream_of(handle_));  // does not wait: work on the stream continues
}

void Stream::wait() const { require(cudaStreamSynchronize(stream_of(handle_)), "cudaStreamSynchronize", device_); }

}  // namespace rapt::cuda
