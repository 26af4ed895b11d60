// A matrix packed once for many products: y = x · Wᵀ + bias, as a linear layer computes it.
//
// W is (N, K), as in nn.Linear; x is (M, K) and y is (M, N), M from 0 to anything. Every number of y is one chain of
// fused multiply-adds in f32, k ascending, that starts from its bias (or 0) and is rounded once, into y's type. So a
// row has the same bits alone as among a thousand, with any number of threads, and wherever memory lies. A product that
// starts from another's y, in f32, goes on with its chains: two halves of k, one after the other, give the bits of one.
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
  std::optional<DType> dtype{};  // what the packed numbers are stored in: f32, bf16, f16 or f64; absent: W's own
  Engine engine = Engine::automatic;
  int threads = 0;             // at most so many; 0: thread_count()
  ParallelFor parallel_for{};  // absent: the library's pool
};

struct ProductOptions {
  ConstTensorView bias{};            // (N), f32, bf16 or f16; undefined: none
  int threads = 0;                   // at most so many; 0: thread_count()
  ParallelFor parallel_for{};        // absent: the library's pool
  std::span<std::byte> workspace{};  // absent: allocated for the call; see PackedMatrix::workspace_bytes
  ConstTensorView start{};           // (M, N): what the sums start from, instead of a bias; it may be y itself
};

// Copies share the packed numbers, which never change. One matrix may serve several threads at once.
class PackedMatrix {
 public:
  PackedMatrix() = default;  // empty: (0, 0)
  // W is (N, K) with any strides, and is not needed any more afterwards. Packing belongs to the instruction set in use
  // now, and so do all products of this matrix, even if another is chosen later.
  explicit PackedMatrix(const ConstTensorView& weights, const PackOptions& options = {});

  std::int64_t outputs() const;  // N
  std::int64_t inputs() const;   // K
  DType dtype() const;           // as stored
  std::size_t bytes() const;     // of the packed numbers, what pads them included

  // x (M, K) and y (M, N) are f32, bf16 or f16, each of its own type, with any strides. A matrix stored in f64 takes
  // f64 for all of them, and multiplies in f64. y may overlap nothing that is read, except that `start` may be y.
  void multiply(const ConstTensorView& x, const TensorView& y, const ProductOptions& options = {}) const;

  // How many bytes options.workspace needs for exactly this call. It need not be aligned.
  std::size_t workspace_bytes(const ConstTensorView& x, const TensorView& y, const ProductOptions& options = {}) const;

 private:
  struct [[gnu::visibility("hidden")]] Packed;
  std::shared_ptr<const Packed> packed_;
};

}  // namespace rapt
#pragma GCC visibility pop
