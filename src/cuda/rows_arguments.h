// The arguments that the rows kernel takes by value, and its instantiations for cuda/rows.cc.
#pragma once

#include <cstdint>
#include <cuda.h>

#include "cuda/rows_plan.h"

namespace rapt::cuda {

inline constexpr float kLog2E = 1.4426950408889634F;

struct RowsArguments {
  Arguments call;
  CUtensorMap query, key, value;
  RowsPlan plan;
  std::int32_t* next_tile = nullptr;  // a counter on the device, 0 when the kernel starts
  const TileEntry* list = nullptr;    // tiles of a column, longest first, if the plan is listed
  float* totals = nullptr;            // chunk totals of all blocks, if they do not fit in shared memory
  float scale = 1.0F;          // turns scores into exponents of 2: scale · log2 e; log2 e in the general variant
  float out_scale = 1.0F;      // 1 / (1 − rate) of dropout
  float minus_zero = -0.0F;    // see hand_over in cuda/rows.cuh
  bool window = false;         // the window has a left side or initial keys
  bool masks_hide = false;     // masks may hide keys in every step
  bool store_vectors = false;  // rows of out can be written 16 bytes at a time
};

// An instantiation: a __global__ function that takes a const RowsArguments, and what its launch needs.
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
