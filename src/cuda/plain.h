// The plain kernels: every option in every type but f64, on CUDA cores, for any GPU since Turing and any head size.
//
// They compute the definition in f32 as simply as possible: one warp for each row of a result, no tensor cores, no
// tuning. Fast kernels are debugged against them, and they run every call that no fast kernel supports. They read k and
// v of f32, bf16, f16 and i8, whatever the type of q; masks of bool and any float type; and any strides.
//
// The bits of a row depend only on its own inputs and on the options, not on the batch, on how queries are split into
// calls, or on the location of memory (cuda/contract.h). No launch needs an initialized workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/arguments.h"
#include "cuda/launch.h"

namespace rapt::cuda {

// ---------------------------------------------------------------- forward

// Writes out, and lse if that tensor has data. Needs no workspace and can compute every call.
extern const KernelSet kPlainKernels;

// ---------------------------------------------------------------- selections

// Selected heads or queries (rapt::Selection), in the order of the selection. `chosen` is the byte offset, in the block
// Arguments::lists, of a list of `count` int32. If `count` is 0, all heads or queries are selected and there is no
// list.
struct Chosen {
  std::int32_t count = 0;
  std::uint32_t chosen = 0;
  // The inverse, for gradients only. first_place[x], x < Hq or Lq, is the first n with chosen[n] = x, or −1;
  // next_place[n] is the next such n after n, or −1. Both are lists of int32, given by their byte offsets as `chosen`
  // is.
  std::uint32_t first_place = 0, next_place = 0;
};

enum class CaptureStage : std::uint8_t { raw, capped, masked, weights, dropped_weights };  // rapt::Stage

// Weights or scores: (B, heads, queries, Lk), or (B, queries, Lk) for a mean, whose stride `head` is 0.
struct Selected {
  DeviceTensor tensor;
  Chosen heads, queries;
  CaptureStage stage = CaptureStage::raw;
  bool mean_over_heads = false;
};

// ---------------------------------------------------------------- captures

// Writes each of `captures`. It makes no difference which kernel set computes `out`, because plain_captures computes
// the softmax of each row again, in the workspace.
std::size_t plain_captures_bytes(const Arguments& arguments, std::span<const Selected> captures);
void plain_captures(const Arguments& arguments, std::span<const Selected> captures, const Launch& launch);

// ---------------------------------------------------------------- backward

// Upstream gradients and the gradients to write; a tensor without data is absent. Arguments::out and Arguments::lse are
// not read, because the backward kernels compute the softmax of every row again, in f32.
struct Gradients {
  DeviceTensor dout;  // (B, Hq, Lq, Dv)
  DeviceTensor dlse;  // (B, Hq, Lq): `element` is 0
  // The upstream gradients of weights: `weights` is the byte offset of Selected[weights_count] in Arguments::lists.
  std::uint32_t weights = 0;
  std::int32_t weights_count = 0;
  DeviceTensor dquery, dkey, dvalue;
  DeviceTensor dsinks;  // (Hq): its stride is `head`
};

// The gradient of one Mask::add, in the shape of that mask. The flags say which dimensions are broadcast (absent, or of
// size 1); the strides of those are not used.
struct MaskGradientTerm {
  DeviceTensor to;
  bool one_batch = false, one_head = false, one_query = false, one_key = false;
};

std::size_t plain_backward_bytes(const Arguments& arguments, std::span<const MaskGradientTerm> masks);
void plain_backward(const Arguments& arguments, const Gradients& gradients, std::span<const MaskGradientTerm> masks,
                    const Launch& launch);

}  // namespace rapt::cuda
