// The layer kernels of one instruction set: loops over contiguous numbers.
#pragma once

#include <cstdint>

#include "rapt/dtype.h"

namespace rapt::cpu {

struct AdamNumbers {
  float keep1, take1, keep2, take2, kept, step, inverse, tiny;
};

// Each evaluates its formula in the same order for every element (`largest` is exact in any order), so the bits do not
// depend on the instruction set.
struct LayerKernels {
  void (*add)(float* to, const float* x, std::int64_t count) = nullptr;
  void (*adam)(const AdamNumbers& with, const float* g, float* first, float* second, float* p,
               std::int64_t count) = nullptr;
  // Pair n is first[n] and second[n]: (x1 · cos − x2 · sin, x2 · cos + x1 · sin). The arrays do not overlap.
  void (*turn_halves)(float* first, float* second, const float* cosines, const float* sines,
                      std::int64_t count) = nullptr;
  // Pair n is x[2n] and x[2n + 1]; `sign` is −1 for the inverse rotation.
  void (*turn_neighbours)(float* x, float sign, const float* cosines, const float* sines, std::int64_t count) = nullptr;
  // Conversions between f32 and a 16-bit type, rounded once; f32 is copied.
  void (*widen)(const void* from, DType dtype, float* to, std::int64_t count) = nullptr;
  void (*narrow)(const float* from, void* to, DType dtype, std::int64_t count) = nullptr;
  // The largest |x|; NaN or infinity if an element is not finite.
  float (*largest)(const float* x, std::int64_t count) = nullptr;
  // x / scale to nearest, ties to even, within ±127; zeros if the scale is 0.
  void (*quantize)(const float* x, float scale, std::int8_t* to, std::int64_t count) = nullptr;
};

// The kernels of the instruction set in use.
const LayerKernels& layer_kernels();

}  // namespace rapt::cpu
