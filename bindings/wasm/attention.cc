// attention(query, key, value, options): the attention of rapt/attention.h, which also returns scores and weights of
// chosen stages; and weightsMap: the weights of one head, reduced to a matrix that is small enough to display.
#include "rapt/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <emscripten/bind.h>

#include "array.h"
#include "errors.h"
#include "options.h"
#include "rapt/cpu.h"

namespace rapt::wasm {

namespace {

// The memory of one capture, with the query's batch size, the chosen heads and queries, and all keys.
Tensor memory_of(const Selection& of, const ConstTensorView& query, const ConstTensorView& key) {
  const auto or_all = [](const std::vector<std::int64_t>& chosen, std::int64_t all) {
    return chosen.empty() ? all : std::ssize(chosen);
  };
  const std::int64_t heads = or_all(of.heads, query.size(1)), queries = or_all(of.queries, query.size(2));
  const DType dtype = query.dtype() == DType::f64 ? DType::f64 : DType::f32;
  if (of.mean_over_heads) return Tensor({query.size(0), queries, key.size(2)}, dtype);
  return Tensor({query.size(0), heads, queries, key.size(2)}, dtype);
}

void require_rank_4(const ConstTensorView& view, const char* name) {
  if (view.rank() != 4)
    throw Error(std::string(name) + " has shape " + to_string(view.shape()) + "; it must be (B, H, L, D)");
}

val attend(const val& query, const val& key, const val& value, const val& given) {
  return guarded([&] {
    const ConstTensorView& q = array_of(query, "query").view();
    const ConstTensorView& k = array_of(key, "key").view();
    const ConstTensorView& v = array_of(value, "value").view();
    require_rank_4(q, "query"), require_rank_4(k, "key"), require_rank_4(v, "value");
    const AttentionOptions options = attention_options(given, {"lse", "captures"});

    Tensor out({q.size(0), q.size(1), q.size(2), v.size(3)}, q.dtype());
    Tensor lse;
    std::vector<Tensor> memory;
    AttentionOutputs outputs{.out = out};
    if (is_given(given) && is_given(given["lse"]) && given["lse"].as<bool>()) {
      lse = Tensor({q.size(0), q.size(1), q.size(2)}, q.dtype() == DType::f64 ? DType::f64 : DType::f32);
      outputs.lse = lse;
    }
    const bool captures = is_given(given) && is_given(given["captures"]);
    const unsigned count = captures ? given["captures"]["length"].as<unsigned>() : 0;
    memory.reserve(count);
    for (unsigned n = 0; n < count; ++n) {
      const val wanted = given["captures"][n];
      require_known(wanted, "a capture", {"stage", "heads", "queries", "mean"});
      Capture capture{.stage = stage_named(wanted["stage"].as<std::string>()), .of = selection_of(wanted)};
      memory.push_back(memory_of(capture.of, q, k));
      capture.to = memory.back();
      outputs.captures.push_back(capture);
    }
    rapt::attention(outputs, q, k, v, options);

    val result = val::object();
    result.set("out", Array(std::move(out)));
    if (outputs.lse.defined()) result.set("lse", Array(std::move(lse)));
    if (captures) {
      val list = val::array();
      for (unsigned n = 0; n < count; ++n) list.set(n, Array(std::move(memory[n])));
      result.set("captures", list);
    }
    return result;
  });
}

struct Range {
  std::int64_t begin, end;

  std::int64_t size() const { return end - begin; }
};

// How one side of a map is divided: into a maximum number of parts of similar size, or into parts of a given size, the
// last of which may be smaller.
class Cut {
 public:
  static Cut into(std::int64_t parts, Range range) { return {range, std::min(parts, range.size()), range.size()}; }
  static Cut every(std::int64_t size, Range range) {
    Cut cut(range, 1, size);
    cut.parts_ = (range.size() + size - 1) / size;
    return cut;
  }
  std::int64_t parts() const { return parts_; }
  const Range& range() const { return range_; }
  std::int64_t part_of(std::int64_t place) const { return (place - range_.begin) * times_ / over_; }

 private:
  Cut(Range range, std::int64_t times, std::int64_t over) : range_(range), times_(times), over_(over), parts_(times) {}

  Range range_;
  std::int64_t times_, over_, parts_;
};

// Weights of one head, reduced: each number is the largest weight in its cell.
class WeightsMap {
 public:
  WeightsMap(const Cut& queries, const Cut& keys)
      : queries_(queries), most_(Dims{queries.parts(), keys.parts()}), columns_(keys.parts()), keys_(keys.range()) {
    for (std::int64_t key = keys_.begin; key < keys_.end; ++key) column_.push_back(keys.part_of(key));
  }

  void add(std::int64_t query, const float* weights) {
    float* row = most_.values<float>().data() + queries_.part_of(query) * columns_;
    for (std::size_t n = 0; n < column_.size(); ++n) {
      const float weight = weights[keys_.begin + static_cast<std::int64_t>(n)];
      float& most = row[column_[n]];
      if (weight > most || std::isnan(weight)) most = weight;  // no number is larger than NaN, so it stays
    }
  }
  Tensor take() { return std::move(most_); }

 private:
  Cut queries_;
  Tensor most_;
  std::int64_t columns_;
  Range keys_;
  std::vector<std::int64_t> column_;
};

Range range_of(const val& given, std::int64_t size, const char* name) {
  if (!is_given(given)) return {0, size};
  const std::vector<std::int64_t> ends = whole_numbers(given, name);
  if (ends.size() != 2 || ends[0] < 0 || ends[0] >= ends[1] || ends[1] > size) {
    throw Error(std::string(name) + " must be [begin, end] within 0 … " + std::to_string(size));
  }
  return {ends[0], ends[1]};
}

// The position of query 0 in a batch row.
std::int64_t first_position(const Alignment& alignment, int batch, std::int64_t queries, std::int64_t keys) {
  switch (alignment.kind) {
    case Alignment::Kind::bottom_right: return keys - queries;
    case Alignment::Kind::offset:
      return alignment.values.at(alignment.values.size() == 1 ? 0U : static_cast<std::size_t>(batch));
    default: return 0;
  }
}

// Only the displayed queries are computed, a few at a time, so that a long sequence needs little memory.
val weights_map(const val& query, const val& key, const val& given) {
  return guarded([&] {
    const ConstTensorView& q = array_of(query, "query").view();
    const ConstTensorView& k = array_of(key, "key").view();
    require_rank_4(q, "query"), require_rank_4(k, "key");
    AttentionOptions options =
        attention_options(given, {"batch", "head", "queries", "keys", "rows", "columns", "cell"});
    if (!options.masks.empty() || !options.alibi_slopes.empty() || options.sinks.defined() ||
        !options.key_lengths.empty() || options.dropout.rate != 0.0) {
      throw Error("weightsMap does not support masks, alibiSlopes, sinks, keyLengths or dropout");
    }
    const auto whole = [&](const char* name, int otherwise) {
      return is_given(given) && is_given(given[name]) ? given[name].as<int>() : otherwise;
    };
    const int batch = whole("batch", 0), head = whole("head", 0);
    const int rows = whole("rows", 256), columns = whole("columns", 256);
    if (rows < 1 || columns < 1) throw Error("rows and columns must be at least 1");
    const int cell = whole("cell", 0);  // 0: `rows` and `columns` determine the size
    if (cell < 0) throw Error("cell must be at least 1");
    const Range queries = range_of(is_given(given) ? given["queries"] : val::undefined(), q.size(2), "queries");
    const Range keys = range_of(is_given(given) ? given["keys"] : val::undefined(), k.size(2), "keys");
    if (head < 0 || head >= q.size(1)) throw Error("there is no head " + std::to_string(head));
    if (batch < 0 || batch >= q.size(0)) throw Error("there is no batch row " + std::to_string(batch));

    const std::int64_t group = q.size(1) / k.size(1);
    const ConstTensorView one_query = q.slice(0, batch, batch + 1).slice(1, head, head + 1);
    const ConstTensorView one_key = k.slice(0, batch, batch + 1).slice(1, head / group, head / group + 1);
    const ConstTensorView little = one_key.slice(3, 0, 1);  // short values, because their product is not needed

    const std::int64_t start = first_position(options.alignment, batch, q.size(2), k.size(2));

    WeightsMap map(cell > 0 ? Cut::every(cell, queries) : Cut::into(rows, queries),
                   cell > 0 ? Cut::every(cell, keys) : Cut::into(columns, keys));
    constexpr std::int64_t kAtOnce = 64;
    Tensor weights({1, 1, kAtOnce, k.size(2)});
    Tensor out({1, 1, kAtOnce, 1}, q.dtype());
    for (std::int64_t first = queries.begin; first < queries.end; first += kAtOnce) {
      const std::int64_t count = std::min(kAtOnce, queries.end - first);
      options.alignment = Alignment::offset(start + first);
      AttentionOutputs outputs{.out = out.view().slice(2, 0, count)};
      outputs.captures.push_back({.stage = Stage::weights, .to = weights.view().slice(2, 0, count)});
      rapt::attention(outputs, one_query.slice(2, first, first + count), one_key, little, options);
      for (std::int64_t n = 0; n < count; ++n) map.add(first + n, weights.values<float>().data() + n * k.size(2));
    }
    return val(Array(map.take()));
  });
}

val instruction_sets() {
  val list = val::array();
  for (const InstructionSetInfo& set : rapt::instruction_sets()) push(list, std::string(set.name));
  return list;
}

std::string version() { return RAPT_VERSION; }

}  // namespace

EMSCRIPTEN_BINDINGS(rapt_attention) {
  emscripten::function("attention", &attend);
  emscripten::function("weightsMap", &weights_map);
  emscripten::function("instructionSets", &instruction_sets);
  emscripten::function("version", &version);
}

}  // namespace rapt::wasm
