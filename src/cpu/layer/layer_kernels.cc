// The kernels of a layer's steps, compiled once for each instruction set that this compiler can target.
// The order of the lines below matters, so no tool may sort them:
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/layer/layer_kernels.cc"
#include "hwy/foreach_target.h"  // includes this file again for each target
#include "hwy/highway.h"
#include "cpu/layer/elementwise-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

LayerKernels GetLayerKernels();
LayerKernels GetLayerKernels() {
  return {.add = AddRow,
          .adam = AdamStep,
          .turn_halves = TurnHalves,
          .turn_neighbours = TurnNeighbours,
          .widen = WidenRow,
          .narrow = NarrowRow,
          .largest = LargestOf,
          .quantize = QuantizeRow};
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
