#include "cases/hidden.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <sstream>

namespace rapt::cases {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kDraws = 40;

// Whether two numbers, converted to f64 from a narrower type, have the same bits. All NaNs count as equal.
bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// A view of the number to be replaced.
TensorView place_of(const Case& test, const Spoilt& spoilt) {
  const auto writable = [](const ConstTensorView& view) {  // the case owns these tensors
    return TensorView(const_cast<void*>(view.data()), view.dtype(), view.shape(), view.strides());
  };
  const CaseSpec& spec = test.spec;
  const std::int64_t per_row = spec.page_size > 0 ? spec.keys / spec.page_size : 0;
  const std::int64_t page =
      spec.page_size == 0
          ? spoilt.batch
          : test.options.pages.table[static_cast<std::size_t>(spoilt.batch * per_row + spoilt.key / spec.page_size)];
  const std::int64_t row = spec.page_size == 0 ? spoilt.key : spoilt.key % spec.page_size;
  if (spec.kv_type == DType::i8) {
    const TensorView scales = writable(spoilt.in_value ? test.options.value_scales : test.options.key_scales);
    return scales.select(0, page).select(0, spoilt.kv_head).select(0, row);
  }
  return writable(spoilt.in_value ? test.value : test.key)
      .select(0, page)
      .select(0, spoilt.kv_head)
      .select(0, row)
      .select(0, spoilt.column);
}

// What the replaced numbers may affect: rows that see one of them, and the gradients of the keys that such a row sees.
class Reach {
 public:
  Reach(const CaseSpec& spec, const SeenKeys& seen, const std::vector<Spoilt>& spoilt) : spec_(spec), seen_(seen) {
    const std::int64_t group = spec.query_heads / std::max<std::int64_t>(1, spec.kv_heads);
    for (std::int64_t b = 0; b < spec.batch; ++b) {
      for (std::int64_t h = 0; h < spec.query_heads; ++h) {
        for (std::int64_t i = 0; i < spec.queries; ++i) {
          rows_.push_back(std::any_of(spoilt.begin(), spoilt.end(), [&](const Spoilt& one) {
            return one.batch == b && one.kv_head == h / group && seen(b, h, i, one.key);
          }));
        }
      }
    }
  }

  bool row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return rows_[static_cast<std::size_t>((b * spec_.query_heads + h) * spec_.queries + i)];
  }
  bool pair(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return row(b, h, i) && seen_(b, h, i, j);
  }

 private:
  const CaseSpec& spec_;
  const SeenKeys& seen_;
  std::vector<bool> rows_;
};

// Calls visit(b, h, i) for each row.
template <class Visit>
void for_each_row(const CaseSpec& spec, const Visit& visit) {
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    for (std::int64_t h = 0; h < spec.query_heads; ++h) {
      for (std::int64_t i = 0; i < spec.queries; ++i) visit(b, h, i);
    }
  }
}

// Collects errors: how many numbers of a result changed, and the first position.
class Findings {
 public:
  // Compares all numbers of `before` and `after` that `may_change(flat index)` does not exempt.
  template <class MayChange>
  void compare(const std::string& what, const Tensor& before, const Tensor& after, const MayChange& may_change) {
    std::int64_t changed = 0, first = 0;
    for (std::int64_t n = 0; n < before.count(); ++n) {
      const auto at = static_cast<std::size_t>(n);
      if (same(before.values<double>()[at], after.values<double>()[at]) || may_change(n)) continue;
      if (changed++ == 0) first = n;
    }
    if (changed > 0) {
      text_ << changed << " of " << before.count() << " numbers of " << what << " changed, the first at " << first
            << "; ";
    }
  }
  void add(const std::string& what) { text_ << what << "; "; }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

void compare_captures(const CaseSpec& spec, const Answer& before, const Answer& after, const Reach& reach,
                      const std::vector<Spoilt>& spoilt, Findings& findings) {
  for (std::size_t n = 0; n < before.captures.size(); ++n) {
    const Stage stage = spec.captures[n].first;
    const Selection& of = spec.captures[n].second;
    const bool unmasked = stage == Stage::raw || stage == Stage::capped;
    const auto chosen = [](const std::vector<std::int64_t>& list, std::int64_t place) {
      return list.empty() ? place : list[static_cast<std::size_t>(place)];
    };
    const Dims shape = before.captures[n].shape();
    const std::int64_t heads = of.heads.empty() ? spec.query_heads : std::ssize(of.heads);
    const std::int64_t queries = shape[shape.rank() - 2];
    findings.compare("capture " + std::to_string(n), before.captures[n], after.captures[n], [&](std::int64_t at) {
      const std::int64_t j = at % spec.keys;
      const std::int64_t i = chosen(of.queries, at / spec.keys % queries);
      const std::int64_t rest = at / spec.keys / queries;
      const std::int64_t b = of.mean_over_heads ? rest : rest / heads;
      // Before masks are applied, a hidden key still has the score that its k gives.
      const auto reads = [&](const Spoilt& one) { return one.batch == b && one.key == j; };
      if (unmasked && std::any_of(spoilt.begin(), spoilt.end(), reads)) return true;
      if (!of.mean_over_heads) return reach.row(b, chosen(of.heads, rest % heads), i);
      for (std::int64_t h = 0; h < heads; ++h) {
        if (reach.row(b, chosen(of.heads, h), i)) return true;
      }
      return false;
    });
  }
}

void compare_gradients(const CaseSpec& spec, const Gradients& before, const Gradients& after, const Case& test,
                       const Reach& reach, Findings& findings) {
  const std::int64_t group = spec.query_heads / std::max<std::int64_t>(1, spec.kv_heads);
  std::vector<bool> keys(static_cast<std::size_t>(spec.batch * spec.kv_heads * spec.keys));
  std::vector<bool> sinks(static_cast<std::size_t>(spec.query_heads));
  std::vector<const Mask*> masks;
  for (const Mask& mask : test.options.masks) {
    if (mask.kind == Mask::Kind::add) masks.push_back(&mask);
  }
  std::vector<std::vector<bool>> biases;
  for (const Mask* mask : masks) biases.emplace_back(static_cast<std::size_t>(mask->view.count()));
  for_each_row(spec, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    if (!reach.row(b, h, i)) return;
    sinks[static_cast<std::size_t>(h)] = true;
    for (std::int64_t j = 0; j < spec.keys; ++j) {
      if (!reach.pair(b, h, i, j)) continue;
      keys[static_cast<std::size_t>((b * spec.kv_heads + h / group) * spec.keys + j)] = true;
      for (std::size_t n = 0; n < masks.size(); ++n) {
        const Dims& shape = masks[n]->view.shape();
        const std::int64_t place[] = {b, h, i, j};
        std::int64_t at = 0;
        for (int dim = 0; dim < shape.rank(); ++dim) {
          at = at * shape[dim] + (shape[dim] == 1 ? 0 : place[4 - shape.rank() + dim]);
        }
        biases[n][static_cast<std::size_t>(at)] = true;
      }
    }
  });
  std::size_t mask = 0;
  for (std::size_t n = 0; n < before.size(); ++n) {
    const std::string& name = before[n].name;
    const auto compare = [&](const auto& may_change) {
      findings.compare(name, before[n].values, after[n].values, may_change);
    };
    const auto at = [](const std::vector<bool>& list, std::int64_t place) {
      return list[static_cast<std::size_t>(place)];
    };
    if (name == "dquery") {
      compare([&](std::int64_t place) {
        const std::int64_t row = place / spec.head_size;
        return reach.row(row / spec.queries / spec.query_heads, row / spec.queries % spec.query_heads,
                         row % spec.queries);
      });
    } else if (name == "dkey") {
      compare([&](std::int64_t place) { return at(keys, place / spec.head_size); });
    } else if (name == "dvalue") {
      compare([&](std::int64_t place) { return at(keys, place / spec.value_size); });
    } else if (name == "dsinks") {
      compare([&](std::int64_t place) { return at(sinks, place); });
    } else {
      const std::vector<bool>& reached = biases[mask++];
      compare([&](std::int64_t place) { return at(reached, place); });
    }
  }
}

}  // namespace

SeenKeys::SeenKeys(const Case& test)
    : heads_(test.spec.query_heads), queries_(test.spec.queries), keys_(test.spec.keys) {
  AttentionOptions options = test.options;
  options.engine = Engine::reference;
  options.workspace = {};
  Tensor out({test.spec.batch, heads_, queries_, test.spec.value_size}, test.spec.query_type);
  Tensor masked({test.spec.batch, heads_, queries_, keys_});
  attention({.out = out, .captures = {{Stage::masked, masked, {}}}}, test.query, test.key, test.value, options);
  for (const float score : masked.values<float>()) seen_.push_back(score != -std::numeric_limits<float>::infinity());
}

std::vector<Spoilt> draw_spoilt(const Case& test, const SeenKeys& seen) {
  const CaseSpec& spec = test.spec;
  const std::int64_t group = spec.query_heads / std::max<std::int64_t>(1, spec.kv_heads);
  Stream stream(spec.seed, kDraws);
  const auto exists = [&](std::int64_t b, std::int64_t j) {
    if (spec.key_lengths.empty()) return true;
    const std::vector<std::int64_t>& starts = spec.packed.key_starts;
    if (starts.empty()) return j < spec.key_lengths[static_cast<std::size_t>(b)];
    const auto sequence = std::upper_bound(starts.begin(), starts.end() - 1, j) - starts.begin() - 1;
    return j - starts[static_cast<std::size_t>(sequence)] < spec.key_lengths[static_cast<std::size_t>(sequence)];
  };
  const auto is_hidden = [&](std::int64_t b, std::int64_t kv_head, std::int64_t j) {
    for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      for (std::int64_t i = 0; i < spec.queries; ++i) {
        if (!seen(b, h, i, j)) return true;
      }
    }
    return false;
  };
  std::vector<Spoilt> all;
  constexpr double kValues[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity};
  if (spec.batch == 0 || spec.keys == 0 || spec.queries == 0) return all;
  for (int draw = 0; draw < 12 && all.size() < 3; ++draw) {
    Spoilt one;
    one.in_value = stream.chance(0.6);
    one.batch = stream.integer(0, spec.batch - 1);
    one.kv_head = stream.integer(0, spec.kv_heads - 1);
    one.key = stream.integer(0, spec.keys - 1);
    one.column = stream.integer(0, (one.in_value ? spec.value_size : spec.head_size) - 1);
    one.value = kValues[stream.integer(0, 2)];
    // At most one per key: an infinite k may mask its key in rows that saw it.
    const bool taken = std::any_of(all.begin(), all.end(), [&](const Spoilt& other) { return other.key == one.key; });
    if (!taken && exists(one.batch, one.key) && is_hidden(one.batch, one.kv_head, one.key)) all.push_back(one);
  }
  return all;
}

std::string leaks(Case& test, const SeenKeys& seen, const std::vector<Spoilt>& spoilt) {
  const CaseSpec& spec = test.spec;
  const bool backward = has_backward(spec);
  const auto gradients = [&] { return backward ? run_backward(test) : Gradients(); };
  const Answer before = run(test);
  const Gradients gradients_before = gradients();
  std::vector<Tensor> saved;
  for (const Spoilt& one : spoilt) {
    const TensorView place = place_of(test, one);
    saved.push_back(Tensor::copy_of(place));
    copy(ConstTensorView(&one.value, Dims{}), place);
  }
  const Answer after = run(test);
  const Gradients gradients_after = gradients();
  for (std::size_t n = spoilt.size(); n-- > 0;) copy(saved[n], place_of(test, spoilt[n]));

  Findings findings;
  const Reach reach(spec, seen, spoilt);
  const auto reached = [&](std::int64_t row) {
    return reach.row(row / spec.queries / spec.query_heads, row / spec.queries % spec.query_heads, row % spec.queries);
  };
  findings.compare("out", before.out, after.out, [&](std::int64_t at) { return reached(at / spec.value_size); });
  if (spec.lse) findings.compare("lse", before.lse, after.lse, reached);
  compare_captures(spec, before, after, reach, spoilt, findings);
  if (backward) compare_gradients(spec, gradients_before, gradients_after, test, reach, findings);

  const std::int64_t group = spec.query_heads / std::max<std::int64_t>(1, spec.kv_heads);
  std::int64_t not_nan = 0;
  for (const Spoilt& one : spoilt) {
    if (!one.in_value || !std::isnan(one.value)) continue;
    for_each_row(spec, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
      if (b != one.batch || h / group != one.kv_head || !seen(b, h, i, one.key)) return;
      if (!std::isnan(after.out.view().at<double>(b, h, i, one.column))) ++not_nan;
    });
  }
  if (not_nan > 0) findings.add(std::to_string(not_nan) + " rows see a NaN in v and are not NaN there");
  return findings.text();
}

}  // namespace rapt::cases
