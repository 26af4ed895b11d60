// What kernels are launched with, and what a set of kernels offers the engine. Includes no CUDA header; .cc files see
// launch functions, never a kernel.
//
// A launch function enqueues its kernels and returns. It checks nothing that the engine has checked, allocates nothing,
// and waits for nothing, so that it can be captured in a CUDA graph. If a launch is refused, it throws rapt::Error
// (cuda/errors.h).
#pragma once

#include <cstddef>
#include <span>

#include "cuda/arguments.h"

struct CUstream_st;

namespace rapt::cuda {

using NativeStream = CUstream_st*;  // cudaStream_t; null: the legacy default stream

// The device, the stream and the workspace of a launch.
struct Launch {
  NativeStream stream = nullptr;
  int device = 0;
  int capability = 75;      // compute capability times 10: 90 is Hopper
  int multiprocessors = 1;  // streaming multiprocessors (SMs)
  int shared_bytes = 0;     // the most shared memory that a block may request
  // Device memory of the size that the kernels requested, aligned to 64 bytes. Its contents are not initialized.
  std::span<std::byte> workspace{};
  // The block of lists in host memory, valid during the call. Launch functions read it here, because Arguments::lists
  // refers to device memory if the block is long.
  const std::byte* host_lists = nullptr;

  const Sequence& sequence(const Arguments& arguments, std::int32_t n) const {
    return reinterpret_cast<const Sequence*>(host_lists + arguments.lists.sequences)[n];
  }
  const MaskTerm& mask(const Arguments& arguments, std::int32_t n) const {
    return reinterpret_cast<const MaskTerm*>(host_lists + arguments.lists.masks)[n];
  }
};

// The forward kernels of one kind, as an entry of the engine's table (cuda/kernel_sets.h): the first entry that can
// compute a call is used. What an entry can compute depends on types, sizes, options and the GPU's generation only,
// never on values, addresses or batch, because the bits of an attention row must not depend on those.
struct KernelSet {
  const char* name;  // as RAPT_CUDA_KERNELS names it
  const char* does;  // for `rapt info`
  bool (*runs_on)(int capability);
  // These three functions may read lists of the call through launch.host_lists only. `launch` has no workspace yet when
  // the first two are called.
  bool (*can)(const Arguments& arguments, const Launch& launch);
  std::size_t (*workspace_bytes)(const Arguments& arguments, const Launch& launch);
  void (*forward)(const Arguments& arguments, const Launch& launch);
};

}  // namespace rapt::cuda
