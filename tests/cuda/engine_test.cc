// The CUDA engine as callers see it. Most test machines have no GPU; on those, the engine must say so. `rapt check
// --engine cuda` checks what a GPU computes, and the tests here only what that command cannot check.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "rapt/cuda.h"
#include "rapt/multi_head_attention.h"
#include "rapt/packed_matrix.h"
#include "support/cuda/has_cuda.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"
#include "support/same_bits.h"

namespace rapt {
namespace {

using test::expect_error;
using test::random;
using test::refusal;
using test::same_bits;

constexpr Device kGpu{Device::Kind::cuda, 0};

Tensor on_cpu(const ConstTensorView& view) { return Tensor::copy_of(view, view.dtype(), Device{}); }

TEST(CudaEngine, SaysWhyThereIsNoGpu) {
  if (cuda::available()) GTEST_SKIP() << "there is one";
  const std::string reason = cuda::unavailable_because();
  EXPECT_NE(reason, "");
  EXPECT_EQ(reason == "this build has no cuda engine", !test::has_cuda());
  EXPECT_TRUE(cuda::devices().empty());
  EXPECT_NE(refusal([] { const cuda::Stream stream; }).find(reason), std::string::npos);
  EXPECT_NE(refusal([] { const Tensor x({2}, DType::f32, kGpu); }), "");
  if (test::has_cuda()) {
    expect_error([] { const Tensor x({2}, DType::f32, kGpu); }, "cuda:0: " + reason);
    EXPECT_FALSE(cuda::kernel_sets().empty());
    for (const cuda::KernelSetInfo& set : cuda::kernel_sets()) EXPECT_FALSE(set.runs_here) << set.name;
  } else {
    EXPECT_TRUE(cuda::kernel_sets().empty());
  }
}

TEST(CudaEngine, IsNotForTensorsOnTheCpu) {
  const Tensor x = random({1, 2, 3, 8});
  expect_error([&] { (void)attention(x, x, x, {.engine = Engine::cuda}); },
               test::with_cuda("attention: the cuda engine reads cuda memory; the tensors are on cpu",
                               "attention: this build has no cuda engine"));
  int somewhere = 0;
  expect_error([&] { (void)attention(x, x, x, {.stream = {&somewhere}}); },
               "attention: a stream is given, but the tensors are on cpu; streams belong to GPUs");
}

TEST(CudaEngine, AGpuThatIsNotThereIsRefusedInWords) {
  if (!test::has_cuda() || cuda::available()) GTEST_SKIP() << "for builds with the engine, without a GPU";
  const Tensor memory = random({1, 2, 3, 8});
  TensorView x(const_cast<void*>(memory.view().data()), DType::f32, {1, 2, 3, 8}, kGpu);
  const std::string message = "cuda:0: " + cuda::unavailable_because();
  Tensor out({1, 2, 3, 8});
  const TensorView there(out.view().data(), DType::f32, {1, 2, 3, 8}, kGpu);
  expect_error([&] { attention({.out = there}, x, x, x); }, message);
  expect_error([&] { copy(x, out); }, message);
}

// ---------------------------------------------------------------- with a GPU

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::available()) GTEST_SKIP() << cuda::unavailable_because();
  }
};

TEST_F(OnGpu, CopiesConvertAndKeepAnyStrides) {
  const Tensor x = random({3, 4, 5});
  for (const DType from : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i8, DType::boolean}) {
    const Tensor here = x.to(from), there = here.to(kGpu);
    EXPECT_TRUE(same_bits(on_cpu(there), here));
    for (const DType to : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i8, DType::boolean}) {
      EXPECT_TRUE(same_bits(on_cpu(there.to(to)), here.to(to))) << name_of(from) << " to " << name_of(to);
      EXPECT_TRUE(same_bits(on_cpu(Tensor::copy_of(there.view().transpose(0, 2), to)),
                            Tensor::copy_of(here.view().transpose(0, 2), to)));
    }
  }
  Tensor wide({3, 8, 5}, DType::f32, kGpu), wide_here({3, 8, 5});
  copy(x, wide.view().slice(1, 2, 6));
  copy(x, wide_here.view().slice(1, 2, 6));
  EXPECT_TRUE(same_bits(on_cpu(wide), wide_here));
}

struct Call {
  Tensor q = random({2, 4, 33, 64}, DType::bf16, 1).to(kGpu), k = random({2, 2, 77, 64}, DType::bf16, 2).to(kGpu),
         v = random({2, 2, 77, 64}, DType::bf16, 3).to(kGpu);
  Tensor out{{2, 4, 33, 64}, DType::bf16, kGpu};

  Tensor answer(const AttentionOptions& options) {
    attention({.out = out}, q, k, v, options);
    return on_cpu(out);
  }
};

TEST_F(OnGpu, HostListsAreReadBeforeTheCallReturns) {
  Call call;
  AttentionOptions options{.key_lengths = {30, 60}};
  const Tensor wanted = call.answer(options);
  const cuda::Stream stream;
  options.stream = stream;
  std::vector<Tensor> outs;
  for (int n = 0; n < 20; ++n) outs.emplace_back(Dims{2, 4, 33, 64}, DType::bf16, kGpu);
  for (Tensor& out : outs) {
    auto given = std::make_unique<AttentionOptions>(options);
    attention({.out = out}, call.q, call.k, call.v, *given);
    std::memset(given->key_lengths.data(), 0x7F, 2 * sizeof(std::int64_t));
  }
  stream.wait();
  for (const Tensor& out : outs) EXPECT_TRUE(same_bits(on_cpu(out), wanted));
}

TEST_F(OnGpu, WrongMemoryIsRefusedAndTheStreamStaysUsable) {
  Call call;
  const Tensor here = random({2, 4, 33, 64}, DType::bf16);
  const ConstTensorView lie(here.view().data(), DType::bf16, {2, 4, 33, 64}, kGpu);
  const Tensor wanted = call.answer({});
  const cuda::Stream stream;
  expect_error(
      [&] { attention({.out = call.out}, lie, call.k, call.v, {.stream = stream}); },
      "query was passed as a tensor on cuda:0, but it is in host memory (or was freed); the GPU cannot read it");
  expect_error([&] { attention({.out = call.out}, here, here, here, {.stream = stream}); },
               "attention: out is on cuda:0, this call works on cpu; all its tensors must be on one device");
  attention({.out = call.out}, call.q, call.k, call.v, {.stream = stream});
  stream.wait();
  EXPECT_TRUE(same_bits(on_cpu(call.out), wanted));
  const auto count = static_cast<int>(cuda::devices().size());
  expect_error(
      [&] {
        Tensor({2}, DType::f32, Device{Device::Kind::cuda, count});
      },
      "cuda:" + std::to_string(count) + ": there is no such GPU; this machine has " + std::to_string(count) +
          ", numbered from cuda:0");
}

TEST_F(OnGpu, WhatItCannotDoYetIsSaid) {
  const Tensor x = random({1, 1, 3, 8}, DType::f64).to(kGpu), w = random({4, 8}).to(kGpu);
  expect_error([&] { (void)attention(x, x, x); },
               "attention: the cuda engine does not compute in f64; copy the tensors to the CPU, where the reference "
               "engine does");
  EXPECT_NE(refusal([&] { const PackedMatrix packed(w); }).find("the cuda engine has no matrix products yet"),
            std::string::npos);
}

}  // namespace
}  // namespace rapt
