#include "support/part_call.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

namespace rapt::test {

Result call(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
            const AttentionOptions& options, const std::vector<Wanted>& wanted) {
  const std::int64_t batch = query.size(0), heads = query.size(1), queries = query.size(2);
  const std::int64_t keys = key.size(2) * std::max<std::int64_t>(1, options.pages.per_row);
  Result result{Tensor({batch, heads, queries, value.size(3)}, query.dtype()), Tensor({batch, heads, queries}), wanted};
  AttentionOutputs outputs{.out = result.out, .lse = result.lse};
  for (const Wanted& each : wanted) {
    result.captures.emplace_back(each.mean ? Dims{batch, queries, keys} : Dims{batch, heads, queries, keys});
    outputs.captures.push_back({each.stage, result.captures.back(), {.mean_over_heads = each.mean}});
  }
  attention(outputs, query, key, value, options);
  return result;
}

Part whole_of(const cases::CaseSpec& spec) {
  return {{0, spec.batch}, {0, spec.kv_heads}, {0, spec.queries}, spec.keys};
}

namespace {

ConstTensorView cut(const ConstTensorView& view, int dim, Range range) {
  return view.size(dim) == 1 ? view : view.slice(dim, range.begin, range.end);  // 1: broadcast, or the only one
}

Range query_heads_of(const cases::CaseSpec& spec, const Part& part) {
  const std::int64_t group = spec.query_heads / spec.kv_heads;
  return {part.kv_heads.begin * group, part.kv_heads.end * group};
}

}  // namespace

Result call_part(const cases::Case& test, const Part& part, const std::vector<Wanted>& wanted) {
  const Range heads = query_heads_of(test.spec, part);
  AttentionOptions options = test.options;
  const bool paged = test.spec.page_size > 0;  // Lk stays, and key lengths give the number of keys
  for (Mask& mask : options.masks) {
    if (mask.view.rank() == 4) mask.view = cut(cut(mask.view, 0, part.batch), 1, heads);
    mask.view = cut(mask.view, mask.view.rank() - 2, part.queries);
    if (!paged) mask.view = cut(mask.view, mask.view.rank() - 1, {0, part.keys});
  }
  const std::int64_t offset = options.alignment.values.empty() ? 0 : options.alignment.values[0];
  options.alignment = Alignment::offset(offset + part.queries.begin);
  if (!options.key_lengths.empty()) {
    const std::vector<std::int64_t> all = options.key_lengths;
    options.key_lengths.assign(all.begin() + part.batch.begin, all.begin() + part.batch.end);
    for (std::int64_t& length : options.key_lengths) length = std::min(length, part.keys);
  }
  if (!options.alibi_slopes.empty()) {
    const std::vector<double> all = options.alibi_slopes;
    options.alibi_slopes.assign(all.begin() + heads.begin, all.begin() + heads.end);
  }
  if (options.sinks.defined()) options.sinks = options.sinks.slice(0, heads.begin, heads.end);
  options.dropout.batch_start += part.batch.begin;
  options.dropout.head_start += heads.begin;
  options.dropout.query_start += part.queries.begin;

  const auto kv = [&](const ConstTensorView& view) {
    if (!view.defined()) return view;
    const ConstTensorView some_heads = view.slice(1, part.kv_heads.begin, part.kv_heads.end);
    if (paged) return some_heads;
    return some_heads.slice(0, part.batch.begin, part.batch.end).slice(2, 0, part.keys);
  };
  options.key_scales = kv(options.key_scales), options.value_scales = kv(options.value_scales);
  const auto per_row = static_cast<std::size_t>(options.pages.per_row);
  options.pages.table =
      options.pages.table.subspan(static_cast<std::size_t>(part.batch.begin) * per_row,
                                  static_cast<std::size_t>(part.batch.end - part.batch.begin) * per_row);
  const ConstTensorView query = test.query.slice(0, part.batch.begin, part.batch.end)
                                    .slice(1, heads.begin, heads.end)
                                    .slice(2, part.queries.begin, part.queries.end);
  return call(query, kv(test.key), kv(test.value), options, wanted);
}

void expect_part_has_bits_of(const Result& whole, const cases::Case& test, const Part& part) {
  const Range heads = query_heads_of(test.spec, part);
  const auto of_whole = [&](const Tensor& tensor) {
    return tensor.view()
        .slice(0, part.batch.begin, part.batch.end)
        .slice(1, heads.begin, heads.end)
        .slice(2, part.queries.begin, part.queries.end);
  };
  const Result alone = call_part(test, part, whole.wanted);
  const auto where = [&] {
    return describe(test.spec) + ", queries " + std::to_string(part.queries.begin) + " to " +
           std::to_string(part.queries.end) + " of " + std::to_string(part.keys) + " keys, " +
           std::to_string(test.options.threads) + " threads";
  };
  EXPECT_TRUE(same_bits(alone.out, of_whole(whole.out))) << "out: " << where();
  EXPECT_TRUE(same_bits(alone.lse, of_whole(whole.lse))) << "lse: " << where();
  for (std::size_t n = 0; n < whole.captures.size(); ++n) {
    const ConstTensorView of_all = whole.wanted[n].mean ? whole.captures[n]
                                                              .view()
                                                              .slice(1, part.queries.begin, part.queries.end)
                                                              .slice(0, part.batch.begin, part.batch.end)
                                                        : of_whole(whole.captures[n]);
    const int last = of_all.rank() - 1;
    EXPECT_TRUE(same_bits(alone.captures[n].view().slice(last, 0, part.keys), of_all.slice(last, 0, part.keys)))
        << "capture " << n << ": " << where();
  }
}

}  // namespace rapt::test
