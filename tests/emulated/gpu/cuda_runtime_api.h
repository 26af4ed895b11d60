// Replaces CUDA's header: the part of the runtime that launches kernels.
#pragma once

#include <cstddef>

struct CUstream_st;
using cudaStream_t = CUstream_st*;

enum cudaError_t : int { cudaSuccess = 0 };
enum cudaFuncAttribute : int { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  explicit dim3(unsigned count) : x(count) {}
};

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** parameters, std::size_t shared_bytes,
                             cudaStream_t stream);
