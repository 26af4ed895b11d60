// The kernels, compiled once for each instruction set that this compiler can target.
// The order of the lines below matters, so no tool may sort them:
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels.cc"
#include "hwy/foreach_target.h"  // includes this file again for each target
#include "hwy/highway.h"
#include "cpu/forward/attend-inl.h"
#include "cpu/forward/attend_means-inl.h"
#include "cpu/forward/capture-inl.h"
#include "cpu/product/packed_product-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

BackwardKernels GetBackwardKernels();  // backward/backward_kernels.cc, a separate file so that both compile in parallel

LayerKernels GetLayerKernels();  // layer/layer_kernels.cc

const Kernels& SharedKernels() {
  static const Kernels kKernels = {.rows_per_tile = kTileRows,
                                   .lanes = kLanes,
                                   .scratch_bytes = ScratchBytes,
                                   .attend = Attend,
                                   .partial_floats = RowState::floats,
                                   .attend_chunks = AttendChunks,
                                   .combine = Combine,
                                   .means_scratch_bytes = MeansScratchBytes,
                                   .attend_means = AttendMeans,
                                   .capture_scratch_bytes = CaptureScratchBytes,
                                   .capture = CaptureQueries,
                                   .product_scratch_bytes = ProductScratchBytes,
                                   .multiply = MultiplyBlock,
                                   .backward = GetBackwardKernels()};
  return kKernels;
}

const LayerKernels& SharedLayerKernels() {
  static const LayerKernels kKernels = GetLayerKernels();
  return kKernels;
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <array>
#include <vector>

namespace rapt::cpu {

namespace {

// Which of these are used depends on the sets that are compiled.
[[maybe_unused]] bool anywhere() { return true; }

#if HWY_ARCH_X86
[[maybe_unused]] bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
}
[[maybe_unused]] bool has_sse4() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }
[[maybe_unused]] bool has_ssse3() { return __builtin_cpu_supports("ssse3"); }
#endif

}  // namespace

std::span<const InstructionSet> instruction_sets() {
  static const std::vector<InstructionSet> kSets = [] {
    std::vector<InstructionSet> sets;
#if HWY_TARGETS & HWY_AVX3_DL  // only if the compiler's baseline includes it
    sets.push_back({"avx512dl", has_avx512, N_AVX3_DL::SharedKernels, N_AVX3_DL::SharedLayerKernels});
#endif
#if HWY_TARGETS & HWY_AVX3
    sets.push_back({"avx512", has_avx512, N_AVX3::SharedKernels, N_AVX3::SharedLayerKernels});
#endif
#if HWY_TARGETS & HWY_AVX2
    sets.push_back({"avx2", has_avx2, N_AVX2::SharedKernels, N_AVX2::SharedLayerKernels});
#endif
#if HWY_TARGETS & HWY_SSE4
    sets.push_back({"sse4", has_sse4, N_SSE4::SharedKernels, N_SSE4::SharedLayerKernels});
#endif
#if HWY_TARGETS & HWY_SSSE3
    sets.push_back({"ssse3", has_ssse3, N_SSSE3::SharedKernels, N_SSSE3::SharedLayerKernels});
#endif
#if HWY_TARGETS & HWY_NEON
    sets.push_back({"neon", anywhere, N_NEON::SharedKernels, N_NEON::SharedLayerKernels});
#endif
#if HWY_TARGETS & HWY_WASM
    sets.push_back({"wasm", anywhere, N_WASM::SharedKernels, N_WASM::SharedLayerKernels});
#endif
#if HWY_TARGETS & HWY_EMU128
    sets.push_back({"emu128", anywhere, N_EMU128::SharedKernels, N_EMU128::SharedLayerKernels});
#endif
#if HWY_TARGETS & HWY_SCALAR
    sets.push_back({"scalar", anywhere, N_SCALAR::SharedKernels, N_SCALAR::SharedLayerKernels});
#endif
    return sets;
  }();
  return kSets;
}

const LayerKernels& layer_kernels() { return chosen_instruction_set().layer(); }

}  // namespace rapt::cpu

#endif  // HWY_ONCE
