// Replaces CUDA's header: the copy engine's description of a tensor.
#pragma once

#include <cstdint>

#include "cuda/arguments.h"

struct CUtensorMap {
  rapt::cuda::DeviceTensor view;  // of 16-bit elements
  std::int64_t batch = 0, heads = 0, rows = 0, elements = 0;
  int box_rows = 0, box_heads = 0;  // a box also has 64 elements
};
