// The packed matrix: validate, choose an engine, pack; validate, find a workspace, multiply.
#include "rapt/packed_matrix.h"

#include "attention/apart.h"
#include "attention/call_workers.h"
#include "attention/checks.h"
#include "attention/engines.h"
#include "attention/workspace.h"
#include "core/memory.h"

namespace rapt {

namespace {

void check_types(const Checks& checks, std::string_view name, const ConstTensorView& tensor, DType stored) {
  if (stored == DType::f64) {
    checks.require(tensor.dtype() == DType::f64, name, " is ", tensor.dtype(),
                   ", the matrix is stored in f64; f64 does not mix with other types");
  } else {
    checks.typed(name, tensor, {DType::f32, DType::bf16, DType::f16});
  }
}

void check_call(const Checks& checks, const PackedWeights& weights, const ConstTensorView& x, const ConstTensorView& y,
                const ProductOptions& options) {
  const ConstTensorView &bias = options.bias, &start = options.start;
  checks.usable("x", x);
  checks.require(x.rank() == 2 && x.size(1) == weights.inputs, "x has shape ", x.shape(),
                 "; it must be (M, K), with K = ", weights.inputs, " as in the matrix");
  check_types(checks, "x", x, weights.dtype);
  checks.shaped("y", y, {x.size(0), weights.outputs}, "(M, N)");
  check_types(checks, "y", y, weights.dtype);
  if (bias.defined()) {
    checks.shaped("bias", bias, {weights.outputs}, "(N)");
    check_types(checks, "bias", bias, weights.dtype);
  }
  if (start.defined()) {
    checks.require(!bias.defined(), "bias and start are both given; sums start from one of them");
    checks.shaped("start", start, {x.size(0), weights.outputs}, "(M, N)");
    check_types(checks, "start", start, weights.dtype);
  }
  Apart tensors(checks);
  tensors.add_input("x", x);
  tensors.add_input("bias", bias);
  const bool in_place = start.data() == y.data() && start.dtype() == y.dtype() && start.strides() == y.strides();
  if (!in_place) tensors.add_input("start", start);
  tensors.add_output("y", y);
}

}  // namespace

struct PackedMatrix::Packed {
  const ProductTable& engine;
  PackedWeights weights;
  std::size_t bytes = 0;
  core::Bytes memory;
};

PackedMatrix::PackedMatrix(const ConstTensorView& weights, const PackOptions& options) {
  const Checks checks("PackedMatrix");
  checks.usable("weight", weights);
  checks.require(weights.rank() == 2, "weight has shape ", weights.shape(), "; it must be (N, K)");
  checks.typed("weight", weights, {DType::f32, DType::f64, DType::bf16, DType::f16});
  const DType dtype = options.dtype.value_or(weights.dtype());
  checks.require(is_float(dtype), "dtype is ", dtype, "; it must be f32, f64, bf16 or f16");
  const CallWorkers workers(checks, options.threads, options.parallel_for);

  const ProductTable& engine = choose_product(checks, options.engine, dtype);
  PackedWeights packed{weights.size(0), weights.size(1), dtype, engine.variant(), nullptr};
  const std::size_t bytes = engine.packed_bytes(packed);
  core::Bytes memory = core::allocate(bytes);
  packed.data = memory.get();
  engine.pack(weights, packed, workers.get());
  packed_ = std::make_shared<const Packed>(Packed{engine, packed, bytes, std::move(memory)});
}

std::int64_t PackedMatrix::outputs() const { return packed_ ? packed_->weights.outputs : 0; }
std::int64_t PackedMatrix::inputs() const { return packed_ ? packed_->weights.inputs : 0; }
DType PackedMatrix::dtype() const { return packed_ ? packed_->weights.dtype : DType::f32; }
std::size_t PackedMatrix::bytes() const { return packed_ ? packed_->bytes : 0; }

void PackedMatrix::multiply(const ConstTensorView& x, const TensorView& y, const ProductOptions& options) const {
  const Checks checks("PackedMatrix::multiply");
  checks.require(packed_ != nullptr, "the matrix is empty; give it weights first");
  check_call(checks, packed_->weights, x, y, options);
  const CallWorkers workers(checks, options.threads, options.parallel_for);
  const ProductProblem problem{packed_->weights, x, options.bias, options.start, y, workers.get()};
  CallMemory memory("PackedMatrix::multiply", options.workspace);
  packed_->engine.multiply(problem, memory.for_engine(packed_->engine.workspace(problem)));
}

std::size_t PackedMatrix::workspace_bytes(const ConstTensorView& x, const TensorView& y,
                                          const ProductOptions& options) const {
  const Checks checks("PackedMatrix::workspace_bytes");
  checks.require(packed_ != nullptr, "the matrix is empty; give it weights first");
  check_call(checks, packed_->weights, x, y, options);
  const CallWorkers workers(checks, options.threads, options.parallel_for);
  return packed_->engine.workspace({packed_->weights, x, options.bias, options.start, y, workers.get()}) +
         CallMemory::kSlack;
}

}  // namespace rapt
