#include "attention/options.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "attention/storage.h"
#include "core/call_counts.h"
#include "core/product.h"

namespace rapt {

namespace {

// Limits positions so that sums of them cannot overflow.
constexpr std::int64_t kLargestOffset = std::int64_t{1} << 40;

// Whether a number is finite in the accumulation type: 1e39 would be infinite in f32.
bool fits_sums(const AttentionProblem& problem, double value) {
  return problem.sums_in_f64() || !(std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()));
}

void resolve_inputs(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const ConstTensorView& query = problem.query;
  const ConstTensorView& key = problem.key;
  const ConstTensorView& value = problem.value;
  const auto check_input = [&](std::string_view name, const ConstTensorView& tensor, std::string_view meaning) {
    checks.usable(name, tensor);
    checks.require(tensor.rank() != 3, name, " has shape ", tensor.shape(), "; it must be ", meaning,
                   "; split_heads(x, heads) converts a (B, L, E) tensor");
    checks.require(tensor.rank() == 4, name, " has shape ", tensor.shape(), "; it must be ", meaning);
  };
  const bool paged = has_pages(options);
  check_input("query", query, "(B, Hq, Lq, D)");
  check_input("key", key, paged ? "(P, Hkv, page size, D)" : "(B, Hkv, Lk, D)");
  check_input("value", value, paged ? "(P, Hkv, page size, Dv)" : "(B, Hkv, Lk, Dv)");
  checks.typed("query", query, {DType::f32, DType::f64, DType::bf16, DType::f16});
  checks.typed("key", key, {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i8});
  checks.typed("value", value, {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i8});

  if (paged) {
    checks.require(value.size(0) == key.size(0), "value has ", value.size(0), " pages, key has ", key.size(0),
                   "; they must be equal");
  } else {
    checks.require(key.size(0) == query.size(0), "key has batch size ", key.size(0), ", query has ", query.size(0),
                   "; they must be equal");
    checks.require(value.size(0) == query.size(0), "value has batch size ", value.size(0), ", query has ",
                   query.size(0), "; they must be equal");
  }
  checks.require(key.size(3) == query.size(3), "key has head size ", key.size(3), ", query has ", query.size(3),
                 "; they must be equal");
  checks.require(value.size(1) == key.size(1), "value has ", value.size(1), " heads, key has ", key.size(1),
                 "; they must be equal");
  checks.require(value.size(2) == key.size(2), "value has length ", value.size(2), ", key has ", key.size(2),
                 "; they must be equal");
  checks.require(query.size(3) > 0, "query has head size 0; it must be at least 1");
  checks.require(value.size(3) > 0, "value has head size 0; it must be at least 1");
  checks.require(query.size(1) == 0 || (key.size(1) > 0 && query.size(1) % key.size(1) == 0), "query has ",
                 query.size(1), " heads, key has ", key.size(1), "; the first must be a multiple of the second");
  checks.require(value.dtype() == key.dtype(), "value is ", value.dtype(), ", key is ", key.dtype(),
                 "; they must be equal");
  checks.require((query.dtype() == DType::f64) == (key.dtype() == DType::f64), "query is ", query.dtype(), ", key is ",
                 key.dtype(), "; f64 does not mix with other types");

  problem.query_heads = query.size(1);
  problem.kv_heads = key.size(1);
  problem.group = problem.query_heads > 0 ? problem.query_heads / problem.kv_heads : 1;
  problem.head_size = query.size(3);
  problem.value_size = value.size(3);
  resolve_storage(checks, options, problem);
}

void check_starts(const Checks& checks, std::string_view name, const std::vector<std::int64_t>& starts,
                  std::int64_t length, std::string_view of) {
  checks.require(starts.size() >= 2, "packed.", name, " has ", starts.size(),
                 " values; N sequences need N + 1, from 0 to the length");
  checks.require(starts.front() == 0, "packed.", name, " starts with ", starts.front(), "; it must start with 0");
  for (std::size_t n = 1; n < starts.size(); ++n) {
    checks.require(starts[n] >= starts[n - 1], "packed.", name, " decreases from ", starts[n - 1], " to ", starts[n],
                   " at index ", n, "; it must not decrease");
  }
  checks.require(starts.back() == length, "packed.", name, " ends with ", starts.back(), ", ", of, " has length ",
                 length, "; they must be equal");
}

// One span for each batch row, or for each packed sequence; the offsets are set later.
void resolve_sequences(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const PackedSequences& packed = options.packed;
  const bool is_packed = !packed.query_starts.empty() || !packed.key_starts.empty();
  const std::int64_t queries = problem.query.size(2);
  const std::int64_t keys = problem.key_length;

  if (is_packed) {
    checks.require(problem.query.size(0) == 1, "packed sequences must be in one batch row; query has batch size ",
                   problem.query.size(0));
    check_starts(checks, "query_starts", packed.query_starts, queries, "query");
    check_starts(checks, "key_starts", packed.key_starts, keys, "key");
    checks.require(packed.query_starts.size() == packed.key_starts.size(), "packed.query_starts defines ",
                   packed.query_starts.size() - 1, " sequences, packed.key_starts ", packed.key_starts.size() - 1,
                   "; they must be equal");
    for (std::size_t n = 0; n < problem.sequences.size(); ++n) {
      problem.sequences[n] = {.batch = 0,
                              .index = static_cast<std::int64_t>(n),
                              .query_begin = packed.query_starts[n],
                              .query_count = packed.query_starts[n + 1] - packed.query_starts[n],
                              .key_begin = packed.key_starts[n],
                              .key_count = packed.key_starts[n + 1] - packed.key_starts[n]};
    }
  } else {
    for (std::int64_t b = 0; b < problem.query.size(0); ++b) {
      problem.sequences[static_cast<std::size_t>(b)] = {
          .batch = b, .index = b, .query_count = queries, .key_count = keys};
    }
  }
}

// Sets the offsets that the caller gives, and requires an alignment where it matters: where it is used and, before
// key_lengths shorten a row, the numbers of queries and keys differ. resolve_key_lengths sets the offsets of
// bottom_right.
void resolve_alignment(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const Alignment& alignment = options.alignment;
  const bool used = problem.hides_by_position() || !options.alibi_slopes.empty();
  const std::size_t rows = problem.sequences.size();

  if (alignment.kind == Alignment::Kind::offset) {
    checks.require(alignment.values.size() == 1 || alignment.values.size() == rows, "alignment has ",
                   alignment.values.size(), " offsets for ", rows, " batch rows; give one, or one for each");
    for (const std::int64_t offset : alignment.values) {
      checks.require(offset >= -kLargestOffset && offset <= kLargestOffset, "alignment has offset ", offset,
                     "; it must be within ±2^40");
    }
    for (std::size_t n = 0; n < rows; ++n) {
      problem.sequences[n].offset = alignment.values[alignment.values.size() == 1 ? 0 : n];
    }
  }
  if (used && alignment.kind == Alignment::Kind::unnamed) {
    for (const SequenceSpan& sequence : problem.sequences) {
      const bool clear = sequence.query_count == sequence.key_count || sequence.query_count == 0;
      checks.require(clear, "causal, window or ALiBi with ", sequence.query_count, " queries and ", sequence.key_count,
                     " keys needs an alignment: Alignment::top_left() (query 0 at key 0) or "
                     "Alignment::bottom_right() (last query at last key)");
    }
  }
}

void resolve_key_lengths(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const std::vector<std::int64_t>& lengths = options.key_lengths;
  if (!lengths.empty()) {
    checks.require(lengths.size() == problem.sequences.size(), "key_lengths has ", lengths.size(), " values for ",
                   problem.sequences.size(), " batch rows; give one for each");
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      checks.require(lengths[n] >= 0, "key_lengths[", n, "] is ", lengths[n], "; it must not be negative");
      checks.require(lengths[n] <= problem.sequences[n].key_count, "key_lengths[", n, "] is ", lengths[n],
                     ", more than the number of keys, ", problem.sequences[n].key_count);
      problem.sequences[n].key_count = lengths[n];
    }
  }
  if (options.alignment.kind == Alignment::Kind::bottom_right) {
    for (SequenceSpan& sequence : problem.sequences) sequence.offset = sequence.key_count - sequence.query_count;
  }
}

void resolve_window(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const auto check = [&](std::string_view name, std::int64_t& keys, const char* advice) {
    checks.require(keys >= 0, "window.", name, " is ", keys, "; it must not be negative", advice);
    keys = std::min(keys, AttentionProblem::kOpen);
  };
  problem.causal = options.causal;
  problem.window = options.window;
  for_each_field(problem.window, [&](std::string_view name, auto& field) {
    if constexpr (std::is_same_v<decltype(field), std::int64_t&>) {
      check(name, field, "");
    } else if (field) {
      check(name, *field, " (leave it unset for no limit)");
      if (*field == AttentionProblem::kOpen) field.reset();  // it reaches past every key
    }
  });
}

void resolve_masks(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const Dims full{problem.query.size(0), problem.query_heads, problem.query.size(2), problem.key_length};
  for (std::size_t n = 0; n < options.masks.size(); ++n) {
    const Mask& mask = options.masks[n];
    const Name name("masks", n);
    checks.usable(name, mask.view);
    checks.require(mask.view.rank() != 3, name, " has shape ", mask.view.shape(),
                   ", which is ambiguous; make it (B, 1, Lq, Lk) with unsqueeze(1) or (1, Hq, Lq, Lk) with "
                   "unsqueeze(0)");
    checks.require(mask.view.rank() == 2 || mask.view.rank() == 4, name, " has shape ", mask.view.shape(),
                   "; it must be (Lq, Lk) or broadcast to (B, Hq, Lq, Lk) = ", full);
    for (int dim = 0; dim < mask.view.rank(); ++dim) {
      const std::int64_t wanted = full[dim + 4 - mask.view.rank()];
      checks.require(mask.view.size(dim) == wanted || mask.view.size(dim) == 1, name, " has shape ", mask.view.shape(),
                     ", which does not broadcast to (B, Hq, Lq, Lk) = ", full);
    }
    if (mask.kind == Mask::Kind::add) {
      checks.require(mask.view.dtype() != DType::boolean, name,
                     " is a Mask::add of bool; use Mask::keep or Mask::drop to define the meaning of true");
      checks.typed(name, mask.view, {DType::f32, DType::f64, DType::bf16, DType::f16});
    } else {
      checks.require(mask.view.dtype() == DType::boolean, name, " is ", mask.view.dtype(),
                     "; a mask that selects keys must be bool (a float mask is a Mask::add)");
    }
    if (mask.kind == Mask::Kind::fill) {
      checks.require(!std::isnan(mask.value) && mask.value < std::numeric_limits<double>::infinity(), name,
                     " fills with ", mask.value, "; it must be finite or −inf");
      checks.require(std::isinf(mask.value) || fits_sums(problem, mask.value), name, " fills with ", mask.value,
                     ", which overflows f32, the accumulation type");
    }
    problem.masks[n] = {mask.kind, mask.view.expand(full), mask.value};
  }
}

void resolve_head_terms(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const std::vector<double>& slopes = options.alibi_slopes;
  checks.require(slopes.empty() || static_cast<std::int64_t>(slopes.size()) == problem.query_heads, "alibi_slopes has ",
                 slopes.size(), " values for ", problem.query_heads, " query heads; give one for each");
  for (std::size_t h = 0; h < slopes.size(); ++h) {
    checks.require(std::isfinite(slopes[h]) && fits_sums(problem, slopes[h]), "alibi_slopes[", h, "] is ", slopes[h],
                   "; it must be finite");
  }
  problem.alibi_slopes = slopes;

  if (options.sinks.defined()) {
    checks.shaped("sinks", options.sinks, Dims{problem.query_heads}, "(Hq)");
    if (problem.sums_in_f64()) {
      checks.typed("sinks", options.sinks, {DType::f64});
    } else {
      checks.typed("sinks", options.sinks, {DType::f32, DType::bf16, DType::f16});
    }
    problem.sinks = options.sinks;
  }
}

// A start index for the dropout counter, whose words have 32 bits.
std::uint32_t counter_start(const Checks& checks, std::string_view name, std::int64_t start, std::int64_t count) {
  constexpr std::int64_t kEnd = std::int64_t{1} << 32;
  checks.require(start >= 0 && start <= kEnd - count, "dropout.", name, " is ", start, "; with ", count,
                 " more it must stay within 0 to 2^32");
  return static_cast<std::uint32_t>(start);
}

void resolve_dropout(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const Dropout& dropout = options.dropout;
  checks.require(dropout.rate >= 0.0 && dropout.rate <= 1.0, "dropout.rate is ", dropout.rate,
                 "; it must be from 0 to 1");
  const auto rows = static_cast<std::int64_t>(problem.sequences.size());
  ResolvedDropout& resolved = problem.dropout;
  resolved.batch_start = counter_start(checks, "batch_start", dropout.batch_start, rows);
  resolved.head_start = counter_start(checks, "head_start", dropout.head_start, problem.query_heads);
  resolved.query_start = counter_start(checks, "query_start", dropout.query_start, problem.query.size(2));
  resolved.on = dropout.rate > 0.0;
  resolved.threshold = static_cast<std::uint64_t>(std::floor(dropout.rate * 0x1p32));
  resolved.keep_scale = dropout.rate < 1.0 ? 1.0 / (1.0 - dropout.rate) : 0.0;
  resolved.key = philox_key(dropout.seed);
}

}  // namespace

ProblemLists::ProblemLists(Arena& arena, const ConstTensorView& query, const AttentionOptions& options) {
  // An invalid call may give any numbers here; it is rejected before they are used.
  const bool packed = options.packed.query_starts.size() > 1;
  const std::int64_t batch = query.rank() > 0 ? std::max<std::int64_t>(0, query.size(0)) : 0;
  sequences =
      arena.make<SequenceSpan>(packed ? static_cast<std::int64_t>(options.packed.query_starts.size()) - 1 : batch);
  masks = arena.make<Mask>(static_cast<std::int64_t>(options.masks.size()));
}

void resolve_options(const Checks& checks, const ConstTensorView& query, const ConstTensorView& key,
                     const ConstTensorView& value, const AttentionOptions& options, const ProblemLists& lists,
                     AttentionProblem& problem) {
  core::count_call(&core::CallCounts::attention);
  problem.query = query, problem.key = key, problem.value = value;
  problem.sequences = lists.sequences, problem.masks = lists.masks;
  resolve_inputs(checks, options, problem);

  const double scale = options.scale.value_or(0.0);
  checks.require(std::isfinite(scale), "scale is ", scale, "; it must be finite");
  checks.require(fits_sums(problem, scale), "scale is ", scale, ", which overflows f32, the accumulation type");
  problem.scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(problem.head_size)));
  checks.require(std::isfinite(options.softcap) && options.softcap >= 0.0, "softcap is ", options.softcap,
                 "; it must be positive, or 0 for none");
  checks.require(
      options.softcap == 0.0 || (fits_sums(problem, options.softcap) && fits_sums(problem, 1.0 / options.softcap)),
      "softcap is ", options.softcap, "; it and 1/softcap must be finite in f32, the accumulation type");
  problem.softcap = options.softcap;

  resolve_sequences(checks, options, problem);
  resolve_window(checks, options, problem);
  resolve_head_terms(checks, options, problem);
  resolve_alignment(checks, options, problem);
  resolve_key_lengths(checks, options, problem);
  check_page_table(checks, problem);
  resolve_masks(checks, options, problem);
  resolve_dropout(checks, options, problem);

  checks.require(options.stream == StreamHandle() || query.device().kind != Device::Kind::cpu,
                 "a stream is given, but the tensors are on cpu; streams belong to GPUs");
  problem.stream = options.stream;
  checks.require(options.threads >= 0, "threads is ", options.threads, "; it must be positive, or 0 for all");
  const Workers pool = core::pool_workers(options.threads);
  problem.threads = pool.threads;
  problem.parallel_for = options.parallel_for ? &options.parallel_for : pool.parallel_for;
}

}  // namespace rapt
