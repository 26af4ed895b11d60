// What the rows kernel takes by value, and what its instantiations offer to cuda/rows.cc.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/rows_plan.h"

namespace rapt::cuda {

struct RowsArguments {
  Arguments call;
  CUtensorMap query, key, value;
  RowsPlan plan;
  std::int32_t* next_tile = nullptr;  // a counter on the device, 0 when the kernel starts
  const TileEntry* list = nullptr;    // tiles of a column, longest first, if the plan is listed
  float* totals = nullptr;     // chunk totals of all blocks, where shared memory is too small
  float scale = 1.0F;          // of scores: scale · log2 e
  float minus_zero = -0.0F;    // see hand_over in cuda/rows.cuh
  bool window = false;         // a window's left side or initial keys
  bool store_vectors = false;  // rows of out can be written in 16 bytes
};

// An instantiation: a __global__ function of const RowsArguments, and what a launch of it needs.
struct RowsKernel {
  const void* function;
  int threads, shared_bytes;
};

RowsKernel rows_bf16_64(bool general);
RowsKernel rows_bf16_128(bool general);
RowsKernel rows_bf16_256(bool general);
RowsKernel rows_f16_64(bool general);
RowsKernel rows_f16_128(bool general);
RowsKernel rows_f16_256(bool general);

}  // namespace rapt::cuda
