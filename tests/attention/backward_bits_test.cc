// Same bits in backward: gradients do not depend on threads, on the other rows of a batch, on the other heads, or on
// packing; and gradients summed over a batch are the sums of its rows' gradients, in order.
#include <algorithm>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "cases/list.h"
#include "support/every_instruction_set.h"
#include "support/part_call.h"
#include "support/settings.h"

namespace rapt::test {
namespace {

using cases::Case;
using cases::CaseSpec;

class BackwardBits : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(BackwardBits);

// Calls that cover several chunks of keys, several tiles of rows, groups of heads, and combinations of options.
std::vector<CaseSpec> settings(std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  return settings_of_many_heads(
      batch, queries, keys,
      {
          [](CaseSpec& s) {
            s.masks = {{.kind = Mask::Kind::fill, .value = -2.0}, {.kind = Mask::Kind::add, .plane_only = true}};
            s.window = {150, 40}, s.sinks = true;
          },
          [](CaseSpec& s) { s.masks = {{.kind = Mask::Kind::add, .one_batch = true, .one_query = true}}; },
          [](CaseSpec& s) { s.query_heads = 2, s.spread = 8.0, s.head_size = s.value_size = 64; },
      });
}

struct Gradients {
  Tensor dquery, dkey, dvalue, dsinks;
  std::deque<Tensor> dmasks;
};

Tensor numbers(const Dims& shape, DType dtype, std::uint32_t number) {
  cases::Stream stream(5, number);
  Tensor tensor(shape, DType::f64);
  for (double& x : tensor.values<double>()) x = 2.0 * stream.uniform() - 1.0;
  return tensor.to(dtype);
}

// The upstream gradients of a whole call.
struct Arriving {
  explicit Arriving(const CaseSpec& spec)
      : dout(numbers({spec.batch, spec.query_heads, spec.queries, spec.value_size}, spec.query_type, 1)),
        dlse(numbers({spec.batch, spec.query_heads, spec.queries}, DType::f32, 2)) {}
  Tensor dout, dlse;
};

Gradients differentiate(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                        const AttentionUpstream& upstream, const AttentionOptions& options) {
  Gradients all{Tensor(query.shape(), query.dtype()),
                Tensor(key.shape(), key.dtype()),
                Tensor(value.shape(), value.dtype()),
                Tensor(),
                {}};
  AttentionGradients gradients{.dquery = all.dquery, .dkey = all.dkey, .dvalue = all.dvalue};
  if (options.sinks.defined()) {
    all.dsinks = Tensor(options.sinks.shape(), options.sinks.dtype());
    gradients.dsinks = all.dsinks;
  }
  for (std::size_t n = 0; n < options.masks.size(); ++n) {
    const Mask& mask = options.masks[n];
    if (mask.kind != Mask::Kind::add) continue;
    gradients.dmasks.push_back({n, all.dmasks.emplace_back(mask.view.shape(), mask.view.dtype()).view()});
  }
  attention_backward(gradients, upstream, query, key, value, options);
  return all;
}

// The gradients of some batch rows and kv heads alone.
Gradients of_part(const Case& test, const Arriving& arriving, Range batch, Range kv_heads) {
  const CaseSpec& spec = test.spec;
  const std::int64_t group = spec.query_heads / spec.kv_heads;
  const Range heads{kv_heads.begin * group, kv_heads.end * group};
  AttentionOptions options = test.options;
  const auto cut = [](const ConstTensorView& view, int dim, Range range) {
    return view.size(dim) == 1 ? view : view.slice(dim, range.begin, range.end);
  };
  for (Mask& mask : options.masks) {
    if (mask.view.rank() == 4) mask.view = cut(cut(mask.view, 0, batch), 1, heads);
  }
  if (!options.key_lengths.empty()) {
    const std::vector<std::int64_t> all = options.key_lengths;
    options.key_lengths.assign(all.begin() + batch.begin, all.begin() + batch.end);
  }
  if (!options.alibi_slopes.empty()) {
    const std::vector<double> all = options.alibi_slopes;
    options.alibi_slopes.assign(all.begin() + heads.begin, all.begin() + heads.end);
  }
  if (options.sinks.defined()) options.sinks = options.sinks.slice(0, heads.begin, heads.end);
  options.dropout.batch_start += batch.begin;
  options.dropout.head_start += heads.begin;
  const auto part = [&](const ConstTensorView& view, Range of) {
    return view.slice(0, batch.begin, batch.end).slice(1, of.begin, of.end);
  };
  const AttentionUpstream upstream{.dout = part(arriving.dout, heads), .dlse = part(arriving.dlse, heads)};
  return differentiate(part(test.query, heads), part(test.key, kv_heads), part(test.value, kv_heads), upstream,
                       options);
}

Gradients of_whole(const Case& test, const Arriving& arriving) {
  return differentiate(test.query, test.key, test.value, {.dout = arriving.dout, .dlse = arriving.dlse}, test.options);
}

void expect_same(const Gradients& got, const Gradients& wanted, const std::string& where) {
  EXPECT_TRUE(same_bits(got.dquery, wanted.dquery)) << "dquery, " << where;
  EXPECT_TRUE(same_bits(got.dkey, wanted.dkey)) << "dkey, " << where;
  EXPECT_TRUE(same_bits(got.dvalue, wanted.dvalue)) << "dvalue, " << where;
  EXPECT_TRUE(same_bits(got.dsinks, wanted.dsinks)) << "dsinks, " << where;
  ASSERT_EQ(got.dmasks.size(), wanted.dmasks.size());
  for (std::size_t n = 0; n < got.dmasks.size(); ++n) {
    EXPECT_TRUE(same_bits(got.dmasks[n], wanted.dmasks[n])) << "dmask, " << where;
  }
}

TEST_P(BackwardBits, ForAnyNumberOfThreads) {
  for (const CaseSpec& spec : settings(2, 150, 600)) {
    Case test(spec);
    const Arriving arriving(spec);
    test.options.threads = 1;
    const Gradients wanted = of_whole(test, arriving);
    for (const int threads : {2, 3, 7}) {
      test.options.threads = threads;
      expect_same(of_whole(test, arriving), wanted, std::to_string(threads) + " threads: " + describe(spec));
    }
  }
}

// One head on several threads: they process chunks of the same head, and add dq in order.
TEST_P(BackwardBits, ForOneHeadOnManyThreads) {
  for (const bool causal : {false, true}) {
    CaseSpec spec{.name = "OneHead", .batch = 1, .query_heads = 1, .kv_heads = 1, .queries = 700, .keys = 1500};
    spec.head_size = spec.value_size = 16, spec.causal = causal, spec.alignment = Alignment::bottom_right();
    Case test(spec);
    const Arriving arriving(spec);
    test.options.threads = 1;
    const Gradients wanted = of_whole(test, arriving);
    for (const int threads : {2, 3, 7, 16}) {
      test.options.threads = threads;
      expect_same(of_whole(test, arriving), wanted, std::to_string(threads) + " threads");
    }
  }
}

TEST_P(BackwardBits, ForARowAloneAndInsideABatchOfEight) {
  for (CaseSpec& spec : settings(8, 40, 300)) {
    if (spec.seed % 2 == 0) spec.key_lengths = {300, 7, 256, 257, 299, 1, 0, 128};
    const Case test(spec);
    const Arriving arriving(spec);
    const Gradients whole = of_whole(test, arriving);
    for (std::int64_t b = 0; b < 8; ++b) {
      const Gradients alone = of_part(test, arriving, {b, b + 1}, {0, spec.kv_heads});
      const auto row = [&](const Tensor& tensor) { return tensor.view().slice(0, b, b + 1); };
      EXPECT_TRUE(same_bits(alone.dquery, row(whole.dquery))) << "dquery, row " << b << ": " << describe(spec);
      EXPECT_TRUE(same_bits(alone.dkey, row(whole.dkey))) << "dkey, row " << b << ": " << describe(spec);
      EXPECT_TRUE(same_bits(alone.dvalue, row(whole.dvalue))) << "dvalue, row " << b << ": " << describe(spec);
    }
  }
}

// Gradients that are summed over the batch have the same bits as the sum, in order, of the gradients of eight calls
// with one row each, as with micro-batches.
TEST_P(BackwardBits, ForABatchOfEightAndItsRowsAddedUpInOrder) {
  for (const CaseSpec& spec : settings(8, 60, 290)) {
    const Case test(spec);
    const Arriving arriving(spec);
    const Gradients whole = of_whole(test, arriving);
    std::vector<Tensor> sums;
    std::vector<const Tensor*> wanted;
    if (test.options.sinks.defined()) wanted.push_back(&whole.dsinks);
    for (const Tensor& dmask : whole.dmasks) {
      if (dmask.shape().rank() == 2 || dmask.size(0) == 1) wanted.push_back(&dmask);
    }
    for (const Tensor* sum : wanted) sums.emplace_back(sum->shape(), sum->dtype());
    for (std::int64_t b = 0; b < 8 && !wanted.empty(); ++b) {
      const Gradients alone = of_part(test, arriving, {b, b + 1}, {0, spec.kv_heads});
      std::vector<const Tensor*> parts;
      if (test.options.sinks.defined()) parts.push_back(&alone.dsinks);
      for (const Tensor& dmask : alone.dmasks) parts.push_back(&dmask);
      ASSERT_EQ(parts.size(), sums.size());
      for (std::size_t n = 0; n < parts.size(); ++n) {
        for (std::size_t i = 0; i < sums[n].values<float>().size(); ++i) {
          sums[n].values<float>()[i] += parts[n]->values<float>()[i];
        }
      }
    }
    for (std::size_t n = 0; n < sums.size(); ++n) EXPECT_TRUE(same_bits(sums[n], *wanted[n])) << describe(spec);
  }
}

TEST_P(BackwardBits, ForSlicesOfTheHeads) {
  for (const CaseSpec& spec : settings(2, 70, 300)) {
    const Case test(spec);
    const Arriving arriving(spec);
    const Gradients whole = of_whole(test, arriving);
    const std::int64_t group = spec.query_heads / spec.kv_heads;
    for (std::int64_t head = 0; head < spec.kv_heads; ++head) {
      const Gradients alone = of_part(test, arriving, {0, 2}, {head, head + 1});
      const auto of = [&](const Tensor& tensor, std::int64_t heads) {
        return tensor.view().slice(1, head * heads, (head + 1) * heads);
      };
      EXPECT_TRUE(same_bits(alone.dquery, of(whole.dquery, group))) << "dquery: " << describe(spec);
      EXPECT_TRUE(same_bits(alone.dkey, of(whole.dkey, 1))) << "dkey: " << describe(spec);
      EXPECT_TRUE(same_bits(alone.dvalue, of(whole.dvalue, 1))) << "dvalue: " << describe(spec);
    }
  }
}

// A row of dq depends on that row alone. (dk and dv are sums over all queries of a call.)
TEST_P(BackwardBits, OfDqForQueriesCutIntoSeveralCalls) {
  for (const CaseSpec& spec : settings(1, 120, 600)) {
    const Case test(spec);
    const Arriving arriving(spec);
    const Gradients whole = of_whole(test, arriving);
    for (const std::int64_t step : {1, 7, 50}) {
      for (std::int64_t first = 0; first < spec.queries; first += step) {
        if (step == 1 && first % 17 != 0) continue;  // a sample of single queries
        const Range part{first, std::min(first + step, spec.queries)};
        const auto cut = [&](const ConstTensorView& view) { return view.slice(2, part.begin, part.end); };
        AttentionOptions options = test.options;
        options.alignment = Alignment::offset(first);
        options.dropout.query_start += first;
        for (Mask& mask : options.masks) {
          const int dim = mask.view.rank() - 2;
          if (mask.view.size(dim) > 1) mask.view = mask.view.slice(dim, part.begin, part.end);
        }
        const Gradients alone = differentiate(cut(test.query), test.key, test.value,
                                              {.dout = cut(arriving.dout), .dlse = cut(arriving.dlse)}, options);
        EXPECT_TRUE(same_bits(alone.dquery, cut(whole.dquery))) << "queries from " << first << ": " << describe(spec);
      }
    }
  }
}

TEST_P(BackwardBits, ForPackedSequencesAndEachAlone) {
  const std::vector<std::int64_t> query_starts = {0, 5, 5, 80, 200}, key_starts = {0, 5, 300, 300, 900};
  for (CaseSpec& spec : settings(1, 200, 900)) {
    if (!spec.masks.empty()) continue;
    const Case plain(spec);
    spec.packed = {query_starts, key_starts};
    const Case packed(spec);
    const Arriving arriving(spec);
    const Gradients whole = of_whole(packed, arriving);
    for (std::size_t n = 0; n < 4; ++n) {
      const auto queries = [&](const ConstTensorView& view) {
        return view.slice(2, query_starts[n], query_starts[n + 1]);
      };
      const auto keys = [&](const ConstTensorView& view) { return view.slice(2, key_starts[n], key_starts[n + 1]); };
      AttentionOptions options = plain.options;
      options.dropout.batch_start += static_cast<std::int64_t>(n);
      const Gradients alone = differentiate(queries(packed.query), keys(packed.key), keys(packed.value),
                                            {.dout = queries(arriving.dout), .dlse = queries(arriving.dlse)}, options);
      EXPECT_TRUE(same_bits(alone.dquery, queries(whole.dquery))) << "dquery " << n << ": " << describe(spec);
      EXPECT_TRUE(same_bits(alone.dkey, keys(whole.dkey))) << "dkey " << n << ": " << describe(spec);
      EXPECT_TRUE(same_bits(alone.dvalue, keys(whole.dvalue))) << "dvalue " << n << ": " << describe(spec);
    }
  }
}

// A gradient has the same bits for any set of requested gradients.
TEST_P(BackwardBits, ForOneGradientAloneAndWithAllOthers) {
  for (const CaseSpec& spec : settings(1, 100, 300)) {
    const Case test(spec);
    const Arriving arriving(spec);
    const Gradients whole = of_whole(test, arriving);
    const AttentionUpstream upstream{.dout = arriving.dout, .dlse = arriving.dlse};
    const auto alone = [&](const Tensor& wanted, TensorView AttentionGradients::*which) {
      Tensor got(wanted.shape(), wanted.dtype());
      AttentionGradients gradients;
      gradients.*which = got;
      attention_backward(gradients, upstream, test.query, test.key, test.value, test.options);
      EXPECT_TRUE(same_bits(got, wanted)) << describe(spec);
    };
    alone(whole.dquery, &AttentionGradients::dquery);
    alone(whole.dkey, &AttentionGradients::dkey);
    alone(whole.dvalue, &AttentionGradients::dvalue);
  }
}

}  // namespace
}  // namespace rapt::test
