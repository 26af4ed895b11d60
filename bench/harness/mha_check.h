// Memory shared by the variants of the layer, and the check of their results.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "bench/harness/attention.h"
#include "bench/harness/mha_variants.h"
#include "rapt/multi_head_attention.h"
#include "rapt/tensor.h"

namespace rapt::bench {

// x and the output in each type, and one buffer for weights or scores, which all variants share.
class MhaMemory {
 public:
  MhaMemory(const MhaSizes& sizes, const std::vector<MhaVariant>& variants);

  // Views of the first tokens of the first rows of the batch.
  MhaCall call(MhaVariant variant, int threads, std::int64_t batch, std::int64_t tokens);

 private:
  std::int64_t heads_;
  std::map<DType, Tensor> x_, out_;
  Tensor plane_;
  Tensor dout_, dx_;  // in f32
};

class MhaChecker {
 public:
  MhaChecker(const MhaSizes& sizes, MhaMemory& memory);

  const MultiHeadAttention& parameters() const { return parameters_; }

  // Checks a call on a few tokens against the reference: the output, and the other results of the variant.
  BenchCheck check_few(MhaVariant variant, MhaLayer& layer, int threads);
  // Checks the result of a full call, which is still in memory, against packed qkv in f32, which is itself checked
  // against the formula.
  BenchCheck check_all(MhaVariant variant, const MhaCall& call);

 private:
  const LayerResult& reference(MhaVariant variant, const ConstTensorView& x);
  BenchCheck check_few_back(MhaVariant variant, const MhaCall& call, const MhaLayer& layer) const;
  BenchCheck expect(const MhaCall& call);
  double f32_limit() const;

  MhaSizes sizes_;
  MhaMemory& memory_;
  MultiHeadAttention parameters_;
  std::int64_t few_ = 1;  // the number of tokens that check_few computes
  std::map<std::pair<DType, ReturnWeights>, LayerResult> references_;
  Tensor expected_;  // of packed qkv in f32: (B, L, E)
  BenchCheck expected_check_;
};

// The worse of two checks, each relative to its own limit.
BenchCheck worse_check(const BenchCheck& a, const BenchCheck& b);

}  // namespace rapt::bench
