// The steps of a layer on the CPU: see core/layer_ops.h.
#pragma once

#include "core/layer_ops.h"

namespace rapt::cpu {

extern const LayerOps kLayerOps;

void copy_elements(const ConstTensorView& from, const TensorView& to, const Workers& workers);
void fill(const TensorView& to, double value, const Workers& workers);
void add(const TensorView& to, const ConstTensorView& x, const Workers& workers);
void add_row_sums(const ConstTensorView& rows, const TensorView& sums, const Workers& workers);
void drop_output(const OutputDropoutProblem& problem, const Workers& workers);

void rotate(const RotaryProblem& problem, const Workers& workers);
void fill_rotary_table(const RotaryAngles& angles, std::int64_t positions, float* table, const Workers& workers);

void append(const AppendProblem& problem, const Workers& workers);
std::int64_t find_not_finite(const ConstTensorView& x, std::span<const std::int64_t> counts, const Workers& workers);

void norm(const NormProblem& problem, const Workers& workers);
void norm_backward(const NormBackwardProblem& problem, const Workers& workers);
void gelu(const TensorView& y, const ConstTensorView& x, const Workers& workers);
void gelu_backward(const TensorView& dx, const ConstTensorView& dy, const ConstTensorView& x, const Workers& workers);

void embed(const TensorView& y, std::span<const std::int32_t> tokens, const ConstTensorView& table,
           const Workers& workers);
void embed_backward(const TensorView& dtable, const ConstTensorView& dy, std::span<const std::int32_t> tokens,
                    const Workers& workers);
double cross_entropy(const CrossEntropyProblem& problem, const Workers& workers);
double add_squares(double start, const ConstTensorView& x, const Workers& workers);
void scale(const TensorView& x, double factor, const Workers& workers);
void adam(const AdamProblem& problem, const Workers& workers);

}  // namespace rapt::cpu
