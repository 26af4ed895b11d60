// GPUs: the devices that this build can use, the reason if there are none, and streams to run calls on.
//
//   const rapt::Device gpu{rapt::Device::Kind::cuda, 0};
//   rapt::cuda::Stream stream(gpu.index);
//   rapt::Tensor q = x.to(gpu), …;
//   rapt::attention({.out = out}, q, k, v, {.causal = true, .stream = stream});  // returns when the work is enqueued
//   stream.wait();
//
// Including this header requires no CUDA header, and linking and running require no CUDA library. Without a GPU, or in
// a build without the cuda engine, available() is false, and unavailable_because() reports why.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt::cuda {

struct DeviceInfo {
  int index = 0;     // Device::index
  std::string name;  // "NVIDIA H200"
  int capability_major = 0, capability_minor = 0;
  std::size_t memory_bytes = 0;
  int multiprocessors = 0;
};

// The GPUs that the engine can use; none without a driver.
std::vector<DeviceInfo> devices();
inline bool available() { return !devices().empty(); }
// Why no GPU can be used: "this build has no cuda engine", "no NVIDIA driver was found", …; empty if one can.
std::string unavailable_because();
// The driver's version and the newest CUDA that it supports: "580.159.04, CUDA 13.0"; empty without a driver.
std::string driver();

// A set of kernels of this build. A call uses the first set that can compute it, or only the one that RAPT_CUDA_KERNELS
// names.
struct KernelSetInfo {
  std::string name;        // "rows", "plain"
  std::string does;        // what it computes, in one line
  bool runs_here = false;  // on device 0
  bool in_use = false;
};
std::vector<KernelSetInfo> kernel_sets();

// A stream of a GPU. Work on one stream runs in call order. Different streams run concurrently, and do not synchronize
// with the default stream.
class Stream {
 public:
  explicit Stream(int device = 0);
  // Another library's cudaStream_t, which must outlive this object and is not destroyed by it.
  static Stream of(void* handle) { return Stream(StreamHandle{handle}); }

  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();  // NOLINT(performance-trivially-destructible): a build with an engine destroys the stream

  void wait() const;  // returns when the stream's work is done; throws if some of the work failed
  StreamHandle handle() const { return handle_; }
  operator StreamHandle() const { return handle_; }  // NOLINT(google-explicit-constructor): an option takes a stream

 private:
  explicit Stream(StreamHandle handle) : handle_(handle) {}

  StreamHandle handle_;
  int device_ = 0;
  bool owned_ = false;
};

}  // namespace rapt::cuda
#pragma GCC visibility pop
