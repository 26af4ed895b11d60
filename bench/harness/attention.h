// A benchmark case as a call: the memory it reads and writes, the call itself, and the check of its result.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "bench/harness/case.h"
#include "rapt/attention.h"
#include "rapt/tensor.h"

namespace rapt::bench {

// Tensors that all cases share, each as large as the largest case needs. Cases run one at a time, so a sweep of twenty
// cases does not need twenty times the memory.
class BenchMemory {
 public:
  explicit BenchMemory(const std::vector<BenchCase>& cases, Device device = {});

  ConstTensorView query(const BenchCase& c) const;
  ConstTensorView key(const BenchCase& c) const;
  ConstTensorView value(const BenchCase& c) const;
  ConstTensorView mask(const BenchCase& c) const;  // undefined if the case has none
  TensorView out(const BenchCase& c);
  TensorView weights(const BenchCase& c);  // undefined if the case has none
  // For backward cases.
  ConstTensorView dout(const BenchCase& c) const;
  TensorView dquery(const BenchCase& c);
  TensorView dkey(const BenchCase& c);
  TensorView dvalue(const BenchCase& c);

  Device device() const { return device_; }

 private:
  struct OfType {
    DType dtype;
    Tensor query, key, value, out, weights;
    Tensor dout, dquery, dkey, dvalue;
  };
  const OfType& of(DType dtype) const;
  OfType& of(DType dtype);

  Device device_;
  std::vector<OfType> types_;
  Tensor bool_mask_;
  Tensor float_mask_;
};

// The library call of a case. The views point into `memory`.
struct BenchCall {
  BenchCall(const BenchCase& c, BenchMemory& memory, Engine engine);

  // The timed call: forward, or backward on the results of the last forward(). On a GPU it returns as soon as its work
  // is enqueued.
  void run() const;
  void forward() const { attention(outputs, query, key, value, options); }
  void wait() const;  // until the device has finished

  // The same call with copies of all of its tensors on the CPU.
  BenchCall on_cpu() const;

  bool backward = false;
  ConstTensorView query, key, value;
  Tensor own_out, own_lse;  // for a backward case: no other case may write to them
  AttentionOutputs outputs;
  AttentionUpstream upstream;
  AttentionGradients gradients;
  AttentionOptions options;

 private:
  BenchCall() = default;

  Tensor own_workspace_;       // on a device other than the CPU
  std::deque<Tensor> copies_;  // the copies on the CPU that on_cpu made
};

// The error of a result, in its worst row or gradient: the norm of the difference divided by the norm of the expected
// numbers.
struct BenchCheck {
  double error = 0.0;
  double limit = 0.0;
  bool good() const { return error <= limit; }  // false for NaN too
};
// Runs the case and compares some of its rows, including the first and last ones, with the reference engine. A backward
// case is checked as backward.h says.
BenchCheck check(const BenchCase& c, const BenchCall& call);

// The error limit for a type: the error of one rounding to a 16-bit type, or that of sums in f32 or f64.
double error_limit(DType dtype);

}  // namespace rapt::bench
