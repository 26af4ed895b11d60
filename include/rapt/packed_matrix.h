// A matrix packed once for many products: y = x · Wᵀ + bias, as in a linear layer.
//
// W is (N, K), as in nn.Linear; x is (M, K) and y is (M, N), with any M, including 0. Every element of y is one chain
// of fused multiply-adds in f32, k ascending, that starts from its bias (or 0) and is rounded once, to y's type. So a
// row has the same bits for any M, any number of threads and any memory layout. A product that starts from the f32 y of
// another product continues its chains: two products over the two halves of K, in order, give the same bits as one
// product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "rapt/attention.h"
#include "rapt/parallel.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

struct PackOptions {
  std::optional<DType> dtype{};  // storage type: f32, bf16, f16 or f64; absent: W's type
  Engine engine = Engine::automatic;
  int threads = 0;             // maximum number; 0: thread_count()
  ParallelFor parallel_for{};  // absent: the library's pool
};

struct ProductOptions {
  ConstTensorView bias{};      // (N), f32, bf16 or f16; undefined: none
  int threads = 0;             // maximum number; 0: thread_count()
  ParallelFor parallel_for{};  // absent: the library's pool
  // Memory on the tensors' device; absent: allocated for the call; see PackedMatrix::workspace_bytes
  std::span<std::byte> workspace{};
  ConstTensorView start{};  // (M, N): initial value of the sums, instead of a bias; may be y itself
};

// Copies share the packed data, which is immutable. Several threads may use one matrix at once.
class PackedMatrix {
 public:
  PackedMatrix() = default;  // empty: (0, 0)
  // W is (N, K) with any strides, and is not needed afterwards. The packed layout belongs to the instruction set in use
  // now; all products of this matrix use that set, even if another one is selected later.
  explicit PackedMatrix(const ConstTensorView& weights, const PackOptions& options = {});

  std::int64_t outputs() const;  // N
  std::int64_t inputs() const;   // K
  DType dtype() const;           // as stored
  std::size_t bytes() const;     // of the packed data, padding included

  // x (M, K) and y (M, N) are f32, bf16 or f16, with independent types and any strides. If the matrix is stored in f64,
  // all tensors must be f64, and the product is computed in f64. y must not overlap any input, except that `start` may
  // be y.
  void multiply(const ConstTensorView& x, const TensorView& y, const ProductOptions& options = {}) const;

  // The size in bytes that options.workspace needs for exactly this call. The workspace need not be aligned.
  std::size_t workspace_bytes(const ConstTensorView& x, const TensorView& y, const ProductOptions& options = {}) const;

 private:
  struct [[gnu::visibility("hidden")]] Packed;
  std::shared_ptr<const Packed> packed_;
};

}  // namespace rapt
#pragma GCC visibility pop
