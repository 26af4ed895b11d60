// What a small transformer needs besides attention: each step, and the way back from it. There is no graph and no tape:
// a model calls the steps in order, and their ways back in the opposite order.
//
//   rapt::linear(y, x, weight, bias);                           y = x · Wᵀ + b
//   rapt::linear_backward({dx, dweight, dbias}, dy, x, weight);
//
// Tensors are f32, or all f64; rows are tokens: (T, E). Ways back *write* the gradient of their input and *add to* the
// gradients of parameters, each a sum over rows in ascending order: micro-batches in order have the bits of one batch.
// What is undefined is left out. Results have the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// ---------------------------------------------------------------- linear

// y (T, N) = x (T, K) · Wᵀ + b, with W (N, K) and b (N); no bias where it is undefined.
void linear(const TensorView& y, const ConstTensorView& x, const ConstTensorView& weight,
            const ConstTensorView& bias = {});

struct LinearGradients {
  TensorView dx{};
  TensorView dweight{}, dbias{};
};
void linear_backward(const LinearGradients& gradients, const ConstTensorView& dy, const ConstTensorView& x,
                     const ConstTensorView& weight);

// ---------------------------------------------------------------- layer norm

// y = (x − mean) / sqrt(variance + epsilon) · weight + bias, for each row. x and y may be the same memory.
void layer_norm(const TensorView& y, const ConstTensorView& x, const ConstTensorView& weight,
                const ConstTensorView& bias = {}, double epsilon = 1e-5);

struct LayerNormGradients {
  TensorView dx{};  // may be dy's memory
  TensorView dweight{}, dbias{};
};
void layer_norm_backward(const LayerNormGradients& gradients, const ConstTensorView& dy, const ConstTensorView& x,
                         const ConstTensorView& weight, double epsilon = 1e-5);

// ---------------------------------------------------------------- GELU

// y = x · Φ(x), Φ the normal distribution: PyTorch's GELU without approximation. y may be x's memory.
void gelu(const TensorView& y, const ConstTensorView& x);
void gelu_backward(const TensorView& dx, const ConstTensorView& dy, const ConstTensorView& x);  // dx may be dy's memory

// ---------------------------------------------------------------- embedding

// Row t of y (T, E) is row tokens[t] of the table (V, E).
void embed(const TensorView& y, std::span<const std::int32_t> tokens, const ConstTensorView& table);
void embed_backward(const TensorView& dtable, const ConstTensorView& dy, std::span<const std::int32_t> tokens);

// ---------------------------------------------------------------- loss

// A target that does not count.
inline constexpr std::int32_t kNoTarget = -1;

// The mean over targets of −log softmax(logits)[target], and where `dlogits` is defined its gradient, times `scale`.
// logits and dlogits are (T, V), maybe the same memory. Without any target the mean is 0.
double cross_entropy(const TensorView& dlogits, const ConstTensorView& logits, std::span<const std::int32_t> targets,
                     double scale = 1.0);

// ---------------------------------------------------------------- a step of training

// Multiplies all gradients by one number such that the norm of them all is `largest` at most; returns what it was.
double clip_gradients(std::span<Tensor> gradients, double largest);

struct AdamOptions {
  double rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // of the parameter itself, apart from its gradient (AdamW)
};

// The moments of one parameter. A pure function of the gradients it was given.
class Adam {
 public:
  explicit Adam(const Dims& shape, DType dtype = DType::f32);

  // Changes `parameter` by one step.
  void step(const TensorView& parameter, const ConstTensorView& gradient, const AdamOptions& options);

  std::int64_t steps() const { return steps_; }
  // What a checkpoint holds: both moments, shaped as the parameter.
  const Tensor& first() const { return first_; }
  const Tensor& second() const { return second_; }
  void restore(std::int64_t steps, const ConstTensorView& first, const ConstTensorView& second);

 private:
  std::int64_t steps_ = 0;
  Tensor first_, second_;
};

}  // namespace rapt
#pragma GCC visibility pop
