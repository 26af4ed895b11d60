#include "cuda/build_arguments.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "core/text.h"

namespace rapt::cuda {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
// The largest page_shift, for a page that holds a whole batch row. A paged call has at most 2^30 keys, so kernels may
// shift 32-bit numbers.
constexpr int kOnePageShift = 30;

// The enumerators that kernels use have the same values as those of the options.
template <class To, class From>
To same(From value) {
  return static_cast<To>(value);
}
static_assert(static_cast<int>(MaskKind::keep) == static_cast<int>(Mask::Kind::keep) &&
              static_cast<int>(MaskKind::drop) == static_cast<int>(Mask::Kind::drop) &&
              static_cast<int>(MaskKind::add) == static_cast<int>(Mask::Kind::add) &&
              static_cast<int>(MaskKind::fill) == static_cast<int>(Mask::Kind::fill));
static_assert(static_cast<int>(CaptureStage::raw) == static_cast<int>(Stage::raw) &&
              static_cast<int>(CaptureStage::capped) == static_cast<int>(Stage::capped) &&
              static_cast<int>(CaptureStage::masked) == static_cast<int>(Stage::masked) &&
              static_cast<int>(CaptureStage::weights) == static_cast<int>(Stage::weights) &&
              static_cast<int>(CaptureStage::dropped_weights) == static_cast<int>(Stage::dropped_weights));

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

// Writes lists one after another. Without a block it only counts their bytes, so the size of the block is computed by
// the same code that fills it.
class ListWriter {
 public:
  explicit ListWriter(std::byte* block) : block_(block) {}

  // Writes a list of make(0) … make(count − 1), and returns its place in the block.
  template <class Make>
  std::uint32_t list(std::size_t count, const Make& make) {
    using T = std::invoke_result_t<Make, std::size_t>;
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = used_;
    used_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    for (std::size_t n = 0; n < count && block_ != nullptr; ++n) {
      const T element = make(n);
      std::memcpy(block_ + at + n * sizeof(T), &element, sizeof(T));
    }
    return static_cast<std::uint32_t>(at);
  }

  std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t kAlignment = 16;
  std::byte* block_;
  std::size_t used_ = 0;
};

// A view as a DeviceTensor. `places` names the members that receive the strides, one for each dimension.
DeviceTensor placed(const ConstTensorView& view, std::initializer_list<std::int64_t DeviceTensor::*> places) {
  DeviceTensor tensor;
  if (!view.defined()) return tensor;
  tensor.data = const_cast<void*>(view.data());
  tensor.dtype = view.dtype();
  int dim = 0;
  for (const auto place : places) tensor.*place = view.stride(dim++);
  return tensor;
}

// (B, H, L, D), (B, H, L) and (H)
DeviceTensor vectors_of(const ConstTensorView& view) {
  return placed(view, {&DeviceTensor::batch, &DeviceTensor::head, &DeviceTensor::row, &DeviceTensor::element});
}
DeviceTensor rows_of(const ConstTensorView& view) {
  return placed(view, {&DeviceTensor::batch, &DeviceTensor::head, &DeviceTensor::row});
}
DeviceTensor heads_of(const ConstTensorView& view) { return placed(view, {&DeviceTensor::head}); }

// ---------------------------------------------------------------- lists

void write_lists(const AttentionProblem& problem, Lists& lists, ListWriter& writer) {
  lists.sequences = writer.list(problem.sequences.size(), [&](std::size_t n) {
    const SequenceSpan& from = problem.sequences[n];
    return Sequence{.batch = narrow(from.batch),
                    .index = narrow(from.index),
                    .query_begin = narrow(from.query_begin),
                    .query_count = narrow(from.query_count),
                    .key_begin = narrow(from.key_begin),
                    .key_count = narrow(from.key_count),
                    .offset = narrow(from.offset)};
  });
  lists.masks = writer.list(problem.masks.size(), [&](std::size_t n) {
    const Mask& mask = problem.masks[n];
    return MaskTerm{.view = vectors_of(mask.view), .value = mask.value, .kind = same<MaskKind>(mask.kind)};
  });
  lists.slopes = writer.list(problem.alibi_slopes.size(),
                             [&](std::size_t h) { return static_cast<float>(problem.alibi_slopes[h]); });
  lists.pages = writer.list(problem.pages.table.size(), [&](std::size_t n) { return problem.pages.table[n]; });
}

Chosen chosen_of(const std::vector<std::int64_t>& indices, ListWriter& writer) {
  return {.count = narrow(std::ssize(indices)),
          .chosen = writer.list(indices.size(), [&](std::size_t n) { return narrow(indices[n]); })};
}

// Also writes the lists of the inverse; `all` is the number of heads or queries.
Chosen chosen_of(const std::vector<std::int64_t>& indices, std::int64_t all, ListWriter& writer) {
  Chosen chosen = chosen_of(indices, writer);
  if (indices.empty()) return chosen;
  std::vector<std::int32_t> first(static_cast<std::size_t>(all), -1), next(indices.size());
  for (std::size_t n = indices.size(); n-- > 0;) {
    std::int32_t& place = first[static_cast<std::size_t>(indices[n])];
    next[n] = place, place = narrow(static_cast<std::int64_t>(n));
  }
  chosen.first_place = writer.list(first.size(), [&](std::size_t x) { return first[x]; });
  chosen.next_place = writer.list(next.size(), [&](std::size_t n) { return next[n]; });
  return chosen;
}

DeviceTensor planes_of(const ConstTensorView& view, bool mean) {
  if (!mean) return vectors_of(view);
  return placed(view, {&DeviceTensor::batch, &DeviceTensor::row, &DeviceTensor::element});
}

Selected selected_of(const Capture& capture, ListWriter& writer) {
  return {.tensor = planes_of(capture.to, capture.of.mean_over_heads),
          .heads = chosen_of(capture.of.heads, writer),
          .queries = chosen_of(capture.of.queries, writer),
          .stage = same<CaptureStage>(capture.stage),
          .mean_over_heads = capture.of.mean_over_heads};
}

Selected selected_of(const WeightsGradient& gradient, const AttentionProblem& problem, ListWriter& writer) {
  return {.tensor = planes_of(gradient.from, gradient.of.mean_over_heads),
          .heads = chosen_of(gradient.of.heads, problem.query_heads, writer),
          .queries = chosen_of(gradient.of.queries, problem.query.size(2), writer),
          .stage = same<CaptureStage>(gradient.stage),
          .mean_over_heads = gradient.of.mean_over_heads};
}

// ---------------------------------------------------------------- the two calls

void fill(Arguments& arguments, const AttentionProblem& problem) {
  arguments.query = vectors_of(problem.query);
  arguments.key = vectors_of(problem.key);
  arguments.value = vectors_of(problem.value);
  arguments.key_scales = rows_of(problem.key_scales);
  arguments.value_scales = rows_of(problem.value_scales);
  arguments.sinks = heads_of(problem.sinks);

  arguments.batch = narrow(problem.query.size(0));
  arguments.query_heads = narrow(problem.query_heads);
  arguments.kv_heads = narrow(problem.kv_heads);
  arguments.group = narrow(problem.group);
  arguments.queries = narrow(problem.query.size(2));
  arguments.keys = narrow(problem.key_length);
  arguments.head_size = narrow(problem.head_size);
  arguments.value_size = narrow(problem.value_size);
  arguments.sequence_count = narrow(std::ssize(problem.sequences));
  arguments.mask_count = narrow(std::ssize(problem.masks));
  arguments.scale = static_cast<float>(problem.scale);
  arguments.softcap = static_cast<float>(problem.softcap);
  const Window& window = problem.window;
  arguments.left = window.left.value_or(AttentionProblem::kOpen);
  arguments.right = problem.causal ? 0 : window.right.value_or(AttentionProblem::kOpen);
  arguments.first_keys = window.left || window.right ? window.first : 0;
  arguments.right_of_first = problem.causal ? 0 : AttentionProblem::kOpen;
  arguments.has_alibi = !problem.alibi_slopes.empty();
  arguments.paged = problem.pages.used;
  arguments.pages_per_row = narrow(problem.pages.per_row);
  arguments.page_shift = std::min(problem.pages.shift, kOnePageShift);

  const ResolvedDropout& dropout = problem.dropout;
  arguments.dropout = {.on = dropout.on,
                       .threshold = dropout.threshold,
                       .keep_scale = static_cast<float>(dropout.keep_scale),
                       .key = {dropout.key[0], dropout.key[1]},
                       .batch_start = dropout.batch_start,
                       .head_start = dropout.head_start,
                       .query_start = dropout.query_start};
}

void write(ForwardCall& call, const ForwardProblem& problem, ListWriter& writer) {
  write_lists(problem, call.arguments.lists, writer);
  call.captures.clear();
  for (const Capture& capture : problem.outputs.captures) call.captures.push_back(selected_of(capture, writer));
}

void write(BackwardCall& call, const BackwardProblem& problem, ListWriter& writer) {
  write_lists(problem, call.arguments.lists, writer);
  std::vector<Selected> weights;
  for (const WeightsGradient& gradient : problem.upstream.dweights) {
    weights.push_back(selected_of(gradient, problem, writer));
  }
  call.gradients.weights_count = narrow(std::ssize(weights));
  call.gradients.weights = writer.list(weights.size(), [&](std::size_t n) { return weights[n]; });
}

template <class Call, class Problem>
std::size_t counted_bytes(Call& call, const Problem& problem) {
  ListWriter counter(nullptr);
  write(call, problem, counter);
  return counter.used() <= Lists::kInline ? 0 : counter.used();
}

template <class Call, class Problem>
Call call_with_lists(const Problem& problem, const ListBlock& block) {
  Call call;
  fill(call.arguments, problem);
  const bool is_inline = counted_bytes(call, problem) == 0;
  Lists& lists = call.arguments.lists;
  if (!is_inline) lists.in_workspace = block.device;
  ListWriter writer(is_inline ? lists.bytes : block.host.data());
  write(call, problem, writer);
  return call;
}

}  // namespace

std::string cannot(const AttentionProblem& problem) {
  if (problem.sums_in_f64()) {
    return "the cuda engine does not compute in f64; copy the tensors to the CPU, where the reference engine does";
  }
  std::string reason;
  const auto fits = [&](const char* what, std::int64_t number, std::int64_t most = kMost) {
    if (number <= most && number >= -most) return;
    reason = text("the cuda engine counts in 32 bits; ", what, " is ", number, ", beyond the limit of ", most);
  };
  fits("the batch size", problem.query.size(0));
  fits("the number of queries", problem.query.size(2));
  fits("the number of keys", problem.key_length, problem.pages.used ? std::int64_t{1} << kOnePageShift : kMost);
  fits("the number of query heads", problem.query_heads);
  fits("the head size", problem.head_size);
  fits("the head size of value", problem.value_size);
  fits("the number of pages", problem.pages.used ? problem.key.size(0) : 0);
  fits("pages.per_row", problem.pages.per_row);
  fits("the number of sequences", std::ssize(problem.sequences));
  // The position of a query (its index plus the offset) must also fit into 32 bits.
  for (const SequenceSpan& sequence : problem.sequences) fits("an alignment's offset", sequence.offset, kMost / 2);
  return reason;
}

std::size_t list_bytes(const ForwardProblem& problem) {
  ForwardCall call;
  return counted_bytes(call, problem);
}

std::size_t list_bytes(const BackwardProblem& problem) {
  BackwardCall call;
  return counted_bytes(call, problem);
}

ForwardCall call_of(const ForwardProblem& problem, const ListBlock& block) {
  auto call = call_with_lists<ForwardCall>(problem, block);
  call.arguments.out = vectors_of(problem.outputs.out);
  call.arguments.lse = rows_of(problem.outputs.lse);
  return call;
}

BackwardCall call_of(const BackwardProblem& problem, const ListBlock& block) {
  auto call = call_with_lists<BackwardCall>(problem, block);
  call.gradients.dout = vectors_of(problem.upstream.dout);
  call.gradients.dlse = rows_of(problem.upstream.dlse);
  call.gradients.dquery = vectors_of(problem.gradients.dquery);
  call.gradients.dkey = vectors_of(problem.gradients.dkey);
  call.gradients.dvalue = vectors_of(problem.gradients.dvalue);
  call.gradients.dsinks = heads_of(problem.gradients.dsinks);
  for (const MaskGradient& gradient : problem.gradients.dmasks) {
    const TensorView& to = gradient.to;
    const bool plane = to.rank() == 2;
    call.masks.push_back({.to = plane ? placed(to, {&DeviceTensor::row, &DeviceTensor::element}) : vectors_of(to),
                          .one_batch = plane || to.size(0) == 1,
                          .one_head = plane || to.size(1) == 1,
                          .one_query = to.size(plane ? 0 : 2) == 1,
                          .one_key = to.size(plane ? 1 : 3) == 1});
  }
  return call;
}

}  // namespace rapt::cuda
