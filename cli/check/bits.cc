#include "cli/check/bits.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "rapt/cuda.h"

namespace rapt::cli {
namespace {

// The arguments of a call, whose inputs are on the case's device.
struct Call {
  ConstTensorView query, key, value;
  AttentionOptions options;
};

// What a call wrote, on the CPU.
struct Result {
  Tensor out, lse;
};

// The outputs of a call that may still be running on its device.
class Running {
 public:
  explicit Running(const Call& call)
      : out_({call.query.size(0), call.query.size(1), call.query.size(2), call.value.size(3)}, call.query.dtype(),
             call.query.device()),
        lse_({call.query.size(0), call.query.size(1), call.query.size(2)},
             call.query.dtype() == DType::f64 ? DType::f64 : DType::f32, call.query.device()) {}

  void start(const Call& call) {
    attention({.out = out_, .lse = lse_}, call.query, call.key, call.value, call.options);
  }
  Result result() const {  // a copy waits for the device
    return {Tensor::copy_of(out_, DType::f64, Device{}), Tensor::copy_of(lse_, DType::f64, Device{})};
  }

 private:
  Tensor out_, lse_;
};

Result run(const Call& call) {
  Running running(call);
  running.start(call);
  return running.result();
}

// Whether two tensors have the same bits. They are compared as f64, which represents every narrower type exactly. All
// NaNs count as equal.
bool same(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.shape() != b.shape()) return false;
  const Tensor left = Tensor::copy_of(a, DType::f64), right = Tensor::copy_of(b, DType::f64);
  return std::ranges::equal(left.values<double>(), right.values<double>(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y) || (std::isnan(x) && std::isnan(y));
  });
}
bool same(const Result& a, const Result& b) { return same(a.out, b.out) && same(a.lse, b.lse); }

// Whether the result of a part of a call equals that part of the whole result.
bool same_part(const Result& whole, int dim, std::int64_t begin, const Result& part) {
  const std::int64_t end = begin + part.out.size(dim);
  return same(whole.out.view().slice(dim, begin, end), part.out) &&
         same(whole.lse.view().slice(dim, begin, end), part.lse);
}

// ---------------------------------------------------------------- parts of calls

bool is_packed(const Call& call) { return !call.options.packed.query_starts.empty(); }
bool is_paged(const Call& call) { return call.options.pages.per_row > 0; }

// The offset of each batch row, so that rows and queries can be computed separately.
std::vector<std::int64_t> offsets_of(const Call& call) {
  const Alignment& alignment = call.options.alignment;
  const std::int64_t keys = is_paged(call) ? call.options.pages.per_row * call.key.size(2) : call.key.size(2);
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b < call.query.size(0); ++b) {
    const auto row = static_cast<std::size_t>(b);
    const std::vector<std::int64_t>& lengths = call.options.key_lengths;
    switch (alignment.kind) {
      case Alignment::Kind::offset: offsets.push_back(alignment.values[alignment.values.size() == 1 ? 0 : row]); break;
      case Alignment::Kind::bottom_right:
        offsets.push_back((lengths.empty() ? keys : lengths[row]) - call.query.size(2));
        break;
      default: offsets.push_back(0);
    }
  }
  return offsets;
}

// The part of a call, which must not be packed, that has the given batch rows, in this order. `from` selects these rows
// of a view.
Call with_rows(const Call& call, const std::vector<std::int64_t>& rows,
               const std::function<ConstTensorView(const ConstTensorView&)>& from) {
  Call part = call;
  AttentionOptions& options = part.options;
  part.query = from(call.query);
  if (!is_paged(call)) {
    part.key = from(call.key), part.value = from(call.value);
    if (options.key_scales.defined()) options.key_scales = from(options.key_scales);
    if (options.value_scales.defined()) options.value_scales = from(options.value_scales);
  }
  for (Mask& mask : options.masks) {
    if (mask.view.rank() == 4 && mask.view.size(0) > 1) mask.view = from(mask.view);
  }
  const auto chosen = [&](const std::vector<std::int64_t>& list) {
    std::vector<std::int64_t> result;
    for (const std::int64_t b : rows) result.push_back(list[static_cast<std::size_t>(b)]);
    return result;
  };
  options.alignment = Alignment::offsets(chosen(offsets_of(call)));
  if (!options.key_lengths.empty()) options.key_lengths = chosen(options.key_lengths);
  return part;
}

std::vector<std::int32_t> table_of(const Call& call, const std::vector<std::int64_t>& rows) {
  std::vector<std::int32_t> table;
  for (const std::int64_t b : rows) {
    const auto row = call.options.pages.table.subspan(static_cast<std::size_t>(b * call.options.pages.per_row),
                                                      static_cast<std::size_t>(call.options.pages.per_row));
    table.insert(table.end(), row.begin(), row.end());
  }
  return table;
}

// Runs one batch row repeated `count` times, as views with a stride of 0.
Result run_repeated(const Call& call, std::int64_t b, std::int64_t count) {
  const std::vector<std::int64_t> rows(static_cast<std::size_t>(count), b);
  Call part = with_rows(call, rows, [&](const ConstTensorView& view) {
    const ConstTensorView row = view.slice(0, b, b + 1);
    Dims shape = row.shape();
    shape[0] = count;
    return row.expand(shape);
  });
  const std::vector<std::int32_t> table = is_paged(call) ? table_of(call, rows) : std::vector<std::int32_t>();
  if (is_paged(call)) part.options.pages.table = table;
  part.options.dropout.batch_start += b;
  return run(part);
}

Result run_reversed(const Call& call) {
  std::vector<std::int64_t> rows;
  for (std::int64_t b = call.query.size(0); b-- > 0;) rows.push_back(b);
  Call part = with_rows(call, rows, [](const ConstTensorView& view) {
    Dims strides = view.strides();
    const std::int64_t last = (view.size(0) - 1) * strides[0] * static_cast<std::int64_t>(size_of(view.dtype()));
    strides[0] = -strides[0];
    return ConstTensorView(static_cast<const std::byte*>(view.data()) + last, view.dtype(), view.shape(), strides,
                           view.device());
  });
  const std::vector<std::int32_t> table = is_paged(call) ? table_of(call, rows) : std::vector<std::int32_t>();
  if (is_paged(call)) part.options.pages.table = table;
  return run(part);
}

Result run_queries(const Call& call, std::int64_t begin, std::int64_t end) {
  Call part = call;
  part.query = call.query.slice(2, begin, end);
  for (Mask& mask : part.options.masks) {
    const int dim = mask.view.rank() - 2;
    if (mask.view.size(dim) > 1) mask.view = mask.view.slice(dim, begin, end);
  }
  std::vector<std::int64_t> offsets = offsets_of(call);
  for (std::int64_t& offset : offsets) offset += begin;
  part.options.alignment = Alignment::offsets(std::move(offsets));
  part.options.dropout.query_start += begin;
  return run(part);
}

// ---------------------------------------------------------------- the ways

// Whether computing the rows in another way gave the same bits; nullopt if the case does not allow this way.
using Way = std::optional<bool> (*)(const cases::Case& test, const Call& call, const Result& whole);

std::optional<bool> twice(const cases::Case& /*test*/, const Call& call, const Result& whole) {
  return same(run(call), whole);
}

std::optional<bool> gradients_twice(const cases::Case& test, const Call& /*call*/, const Result& /*whole*/) {
  if (!cases::has_backward(test.spec)) return std::nullopt;
  const cases::Gradients first = cases::run_backward(test), second = cases::run_backward(test);
  return std::ranges::equal(
      first, second, [](const cases::Gradient& a, const cases::Gradient& b) { return same(a.values, b.values); });
}

template <std::int64_t kCount>
std::optional<bool> in_a_batch_of(const cases::Case& /*test*/, const Call& call, const Result& whole) {
  constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;  // larger calls would only take longer
  if (is_packed(call) || whole.out.count() == 0) return std::nullopt;
  if (kCount > 1 && call.options.dropout.rate > 0.0) return std::nullopt;  // dropout depends on b
  if (kCount * call.query.size(1) * call.query.size(2) * call.key.size(2) > kMostPairs) return std::nullopt;
  for (std::int64_t b = 0; b < call.query.size(0); ++b) {
    const Result part = run_repeated(call, b, kCount);
    for (std::int64_t n = 0; n < kCount; ++n) {
      const Result one{Tensor::copy_of(part.out.view().slice(0, n, n + 1)),
                       Tensor::copy_of(part.lse.view().slice(0, n, n + 1))};
      if (!same_part(whole, 0, b, one)) return false;
    }
  }
  return true;
}

std::optional<bool> in_reverse_order(const cases::Case& /*test*/, const Call& call, const Result& whole) {
  if (is_packed(call) || whole.out.count() == 0 || call.query.size(0) < 2 || call.options.dropout.rate > 0.0) {
    return std::nullopt;
  }
  const Result reversed = run_reversed(call);
  const std::int64_t last = call.query.size(0) - 1;
  for (std::int64_t b = 0; b <= last; ++b) {
    const Result one{Tensor::copy_of(reversed.out.view().slice(0, last - b, last - b + 1)),
                     Tensor::copy_of(reversed.lse.view().slice(0, last - b, last - b + 1))};
    if (!same_part(whole, 0, b, one)) return false;
  }
  return true;
}

std::optional<bool> with_queries_cut(const cases::Case& /*test*/, const Call& call, const Result& whole) {
  const std::int64_t queries = call.query.size(2);
  if (is_packed(call) || whole.out.count() == 0 || queries < 2) return std::nullopt;
  for (const std::int64_t cut : {std::int64_t{1}, queries / 3, queries / 2, queries - 1}) {
    if (cut == 0) continue;
    if (!same_part(whole, 2, 0, run_queries(call, 0, cut))) return false;
    if (!same_part(whole, 2, cut, run_queries(call, cut, queries))) return false;
  }
  return true;
}

std::optional<bool> in_other_memory(const cases::Case& test, const Call& /*call*/, const Result& whole) {
  using cases::MemoryLayout;
  for (const MemoryLayout layout : {MemoryLayout::bhld, MemoryLayout::blhd, MemoryLayout::lbhd, MemoryLayout::gaps,
                                    MemoryLayout::backwards, MemoryLayout::shifted}) {
    cases::CaseSpec spec = test.spec;
    spec.layout = layout, spec.lse = true, spec.captures = {};
    cases::Case other(spec);
    other.device = test.device;
    other.options.engine = test.options.engine;
    const cases::Answer answer = cases::run(other);
    if (!same(answer.out, whole.out) || !same(answer.lse, whole.lse)) return false;
  }
  return true;
}

std::optional<bool> on_two_streams(const cases::Case& test, const Call& call, const Result& whole) {
  if (test.device.kind != Device::Kind::cuda) return std::nullopt;
  const cuda::Stream streams[2] = {cuda::Stream(test.device.index), cuda::Stream(test.device.index)};
  Call calls[2] = {call, call};
  std::deque<Running> running;
  for (int n = 0; n < 2; ++n) calls[n].options.stream = streams[n];
  constexpr int kTimes = 4;
  for (int n = 0; n < 2 * kTimes; ++n) running.emplace_back(call);
  for (int n = 0; n < 2 * kTimes; ++n) running[static_cast<std::size_t>(n)].start(calls[n % 2]);
  for (const cuda::Stream& stream : streams) stream.wait();
  return std::ranges::all_of(running, [&](const Running& one) { return same(one.result(), whole); });
}

constexpr std::pair<const char*, Way> kWays[] = {
    {"twice", twice},
    {"gradients, twice", gradients_twice},
    {"alone in a batch of 1", in_a_batch_of<1>},
    {"in a batch of 3", in_a_batch_of<3>},
    {"in a batch of 64", in_a_batch_of<64>},
    {"in reverse order", in_reverse_order},
    {"with queries split into two calls", with_queries_cut},
    {"in every memory layout", in_other_memory},
    {"on two streams at once", on_two_streams},
};

void add_case(cases::Case& test, std::span<BitsScore> scores, std::int64_t& wrong) {
  cases::Placed placed(test.device);
  const cases::Case::Inputs inputs = test.inputs(placed);
  const Call call{inputs.query, inputs.key, inputs.value, inputs.options};
  const Result whole = run(call);
  for (std::size_t n = 0; n < std::size(kWays); ++n) {
    const std::optional<bool> equal = kWays[n].second(test, call, whole);
    if (!equal) continue;
    ++scores[n].cases;
    if (*equal) continue;
    ++wrong;
    if (scores[n].differ++ == 0) scores[n].first_case = test.spec.name;
  }
}

}  // namespace

bool BitsReport::good() const {
  return std::ranges::all_of(scores, [](const BitsScore& score) { return score.differ == 0; });
}

BitsReport run_bits(const CheckPlan& plan, const CheckProgress& progress) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const std::vector<cases::CaseSpec> specs = planned_cases(plan);
  const std::vector<CheckTarget> targets = planned_targets(plan);
  BitsReport report;
  for (const CheckTarget& target : targets) {
    for (const auto& way : kWays) report.scores.push_back({.target = target, .what = way.first});
  }
  const InstructionSetInUse before;
  std::int64_t done = 0, wrong = 0;
  for (const cases::CaseSpec& spec : specs) {
    cases::Case test(spec);
    for (std::size_t n = 0; n < targets.size(); ++n) {
      if (!targets[n].leaves_out(spec).empty()) {
        ++report.left_out;
        continue;
      }
      use(targets[n], test);
      add_case(test, std::span(report.scores).subspan(n * std::size(kWays), std::size(kWays)), wrong);
    }
    progress(++done, static_cast<std::int64_t>(specs.size()), wrong);
  }
  std::erase_if(report.scores, [](const BitsScore& score) { return score.cases == 0; });
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace rapt::cli
