// What a small transformer needs besides attention: functions and their backward passes. There is no autograd graph and
// no tape: a model calls the forward functions in order, and the backward functions in reverse order.
//
//   rapt::linear(y, x, weight, bias);                           y = x · Wᵀ + b
//   rapt::linear_backward({dx, dweight, dbias}, dy, x, weight);
//
// Tensors are all f32 or all f64, and all on one device. Rows are tokens: (T, E). Backward functions *write* the
// gradient of their input and *accumulate* into the gradients of parameters. A parameter's gradient is summed over rows
// in ascending order, so micro-batches processed in order give the same bits as one batch. Undefined gradients are
// skipped. Results have the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// ---------------------------------------------------------------- linear

// y (T, N) = x (T, K) · Wᵀ + b, with W (N, K) and b (N); an undefined bias means none.
void linear(const TensorView& y, const ConstTensorView& x, const ConstTensorView& weight,
            const ConstTensorView& bias = {});

struct LinearGradients {
  TensorView dx{};
  TensorView dweight{}, dbias{};
};
void linear_backward(const LinearGradients& gradients, const ConstTensorView& dy, const ConstTensorView& x,
                     const ConstTensorView& weight);

// ---------------------------------------------------------------- layer norm

// y = (x − mean) / sqrt(variance + epsilon) · weight + bias, per row. y may alias x.
void layer_norm(const TensorView& y, const ConstTensorView& x, const ConstTensorView& weight,
                const ConstTensorView& bias = {}, double epsilon = 1e-5);

struct LayerNormGradients {
  TensorView dx{};  // may alias dy
  TensorView dweight{}, dbias{};
};
void layer_norm_backward(const LayerNormGradients& gradients, const ConstTensorView& dy, const ConstTensorView& x,
                         const ConstTensorView& weight, double epsilon = 1e-5);

// ---------------------------------------------------------------- GELU

// y = x · Φ(x), with Φ the standard normal CDF: PyTorch's GELU without approximation. y may alias x.
void gelu(const TensorView& y, const ConstTensorView& x);
void gelu_backward(const TensorView& dx, const ConstTensorView& dy, const ConstTensorView& x);  // dx may alias dy

// ---------------------------------------------------------------- embedding

// Row t of y (T, E) is row tokens[t] of the table (V, E).
void embed(const TensorView& y, std::span<const std::int32_t> tokens, const ConstTensorView& table);
void embed_backward(const TensorView& dtable, const ConstTensorView& dy, std::span<const std::int32_t> tokens);

// ---------------------------------------------------------------- loss

// The target of a position that is ignored.
inline constexpr std::int32_t kNoTarget = -1;

// Returns the mean over targets of −log softmax(logits)[target]. If `dlogits` is defined, writes the gradient of the
// mean, times `scale`. logits and dlogits are (T, V) and may alias. If every target is kNoTarget, the mean is 0.
double cross_entropy(const TensorView& dlogits, const ConstTensorView& logits, std::span<const std::int32_t> targets,
                     double scale = 1.0);

// ---------------------------------------------------------------- training step

// Scales all gradients by one factor so that their global norm is at most `largest`. Returns the norm before clipping.
double clip_gradients(std::span<Tensor> gradients, double largest);

struct AdamOptions {
  double rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // decoupled from the gradient (AdamW)
};

// The state of Adam for one parameter: the moments and the number of steps.
class Adam {
 public:
  // `device` is the device of the parameter.
  explicit Adam(const Dims& shape, DType dtype = DType::f32, Device device = {});

  // Updates `parameter` by one step.
  void step(const TensorView& parameter, const ConstTensorView& gradient, const AdamOptions& options);

  std::int64_t steps() const { return steps_; }
  // Both moments, in the shape of the parameter. With steps(), they are the state to save in a checkpoint.
  const Tensor& first() const { return first_; }
  const Tensor& second() const { return second_; }
  void restore(std::int64_t steps, const ConstTensorView& first, const ConstTensorView& second);

 private:
  std::int64_t steps_ = 0;
  Tensor first_, second_;
};

}  // namespace rapt
#pragma GCC visibility pop
