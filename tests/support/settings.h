// Cases for tests of exact bits: a plain call and changes of it, which cover combinations of options.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cases/case.h"

namespace rapt::test {

using Change = std::function<void(cases::CaseSpec&)>;

// One case for each change of `plain`, after its kv heads, head sizes and alignment are set here.
inline std::vector<cases::CaseSpec> settings_of(cases::CaseSpec plain, const std::vector<Change>& changes) {
  plain.kv_heads = 2, plain.head_size = plain.value_size = 20, plain.alignment = Alignment::top_left();
  std::vector<cases::CaseSpec> list;
  for (const Change& change : changes) {
    cases::CaseSpec spec = plain;
    spec.name = "Setting" + std::to_string(list.size()), spec.seed = plain.seed + list.size();
    change(spec);
    list.push_back(spec);
  }
  return list;
}

// Settings that attention and its gradients share, followed by `more`.
inline std::vector<cases::CaseSpec> settings_of_many_heads(std::int64_t batch, std::int64_t queries, std::int64_t keys,
                                                           const std::vector<Change>& more) {
  using cases::CaseSpec;
  std::vector<Change> changes = {
      [](CaseSpec&) {},
      [](CaseSpec& s) { s.causal = true; },
      [](CaseSpec& s) { s.causal = true, s.window.left = 100, s.sinks = true; },
      [](CaseSpec& s) { s.causal = true, s.softcap = 3.0, s.alibi = true, s.spread = 3.0; },
      [](CaseSpec& s) { s.causal = true, s.dropout = {.rate = 0.3, .seed = 77, .head_start = 2}; },
      [](CaseSpec& s) {
        s.causal = true;
        s.masks = {{.kind = Mask::Kind::keep, .one_head = true}, {.kind = Mask::Kind::add, .one_batch = true}};
      },
      [](CaseSpec& s) { s.causal = true, s.query_type = s.kv_type = DType::bf16, s.value_size = 9; },
      [](CaseSpec& s) { s.causal = true, s.kv_type = DType::f16, s.layout = cases::MemoryLayout::gaps; },
      [](CaseSpec& s) { s.causal = true, s.window = {.left = 30, .first = 5}; },
      [](CaseSpec& s) { s.window = {.left = 20, .right = 3, .first = 270}, s.sinks = true; },
  };
  changes.insert(changes.end(), more.begin(), more.end());
  return settings_of({.name = "Plain", .batch = batch, .query_heads = 6, .queries = queries, .keys = keys, .seed = 50},
                     changes);
}

}  // namespace rapt::test
