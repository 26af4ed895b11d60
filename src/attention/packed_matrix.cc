// The packed matrix. The constructor validates, chooses an engine and packs. A product validates, plans, finds a
// workspace and multiplies.
#include "rapt/packed_matrix.h"

#include "attention/apart.h"
#include "attention/call_workers.h"
#include "attention/checks.h"
#include "attention/engine_matrix.h"
#include "attention/engines.h"
#include "attention/workspace.h"
#include "core/call_counts.h"

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
  core::count_call(&core::CallCounts::product);
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
    checks.require(!bias.defined(), "bias and start are both given; give only one");
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
  EngineMatrix matrix;
};

namespace {

const EngineMatrix& filled(const EngineMatrix* matrix, const char* function) {
  Checks(function).require(matrix != nullptr, "the matrix is empty; give it weights first");
  return *matrix;
}

}  // namespace

PackedMatrix::PackedMatrix(const ConstTensorView& weights, const PackOptions& options) {
  const Checks checks("PackedMatrix", weights.device());
  checks.usable("weight", weights);
  checks.require(weights.rank() == 2, "weight has shape ", weights.shape(), "; it must be (N, K)");
  checks.typed("weight", weights, {DType::f32, DType::f64, DType::bf16, DType::f16});
  const DType dtype = options.dtype.value_or(weights.dtype());
  checks.require(is_float(dtype), "dtype is ", dtype, "; it must be f32, f64, bf16 or f16");
  const Workers workers = call_workers(checks, options.threads, options.parallel_for);
  const EngineRow& engine = choose_engine(checks, options.engine, dtype, weights.device());
  packed_ = std::make_shared<const Packed>(Packed{EngineMatrix(engine, weights, dtype, workers)});
}

std::int64_t PackedMatrix::outputs() const { return packed_ ? packed_->matrix.weights().outputs : 0; }
std::int64_t PackedMatrix::inputs() const { return packed_ ? packed_->matrix.weights().inputs : 0; }
DType PackedMatrix::dtype() const { return packed_ ? packed_->matrix.weights().dtype : DType::f32; }
std::size_t PackedMatrix::bytes() const { return packed_ ? packed_->matrix.bytes() : 0; }

void PackedMatrix::multiply(const ConstTensorView& x, const TensorView& y, const ProductOptions& options) const {
  const EngineMatrix& matrix = filled(packed_ ? &packed_->matrix : nullptr, "PackedMatrix::multiply");
  const Checks checks("PackedMatrix::multiply", matrix.device());
  check_call(checks, matrix.weights(), x, y, options);
  const Workers workers = call_workers(checks, options.threads, options.parallel_for);
  const ProductProblem problem{matrix.weights(), x, options.bias, options.start, y, workers};
  core::count_call(&core::CallCounts::product_plans);
  const Plan plan = matrix.engine().product.plan(problem);
  CallMemory memory("PackedMatrix::multiply", matrix.device(), options.workspace);
  matrix.engine().product.run(problem, plan, memory.for_engine(plan.sizes));
}

std::size_t PackedMatrix::workspace_bytes(const ConstTensorView& x, const TensorView& y,
                                          const ProductOptions& options) const {
  const EngineMatrix& matrix = filled(packed_ ? &packed_->matrix : nullptr, "PackedMatrix::workspace_bytes");
  const Checks checks("PackedMatrix::workspace_bytes", matrix.device());
  check_call(checks, matrix.weights(), x, y, options);
  const Workers workers = call_workers(checks, options.threads, options.parallel_for);
  core::count_call(&core::CallCounts::product_plans);
  const Plan plan = matrix.engine().product.plan({matrix.weights(), x, options.bias, options.start, y, workers});
  return CallMemory("PackedMatrix::workspace_bytes", matrix.device(), options.workspace).workspace_bytes(plan.sizes);
}

}  // namespace rapt
