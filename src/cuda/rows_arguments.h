// What the rows kernel takes by value, and what its instantiations offer to cuda/rows.cc.
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
  float* totals = nullptr;            // chunk totals of all blocks, where shared memory is too small
  float scale = 1.0F;                 // factor to exponents of 2: scale · log2 e, or log2 e if terms apply the scale
  float out_scale = 1.0F;             // 1 / (1 − rate) of dropout
  float minus_zero = -0.0F;           // see hand_over in cuda/rows.cuh
  bool window = false;                // there is a window's left side, or there are initial keys
  bool masks_hide = false;            // some key of any step may be hidden by a mask
  bool store_vectors = false;         // rows of out can be written in 16 bytes
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
