#include "attention/storage.h"

#include <bit>

namespace rapt {

namespace {

// Limits the keys of a row so that sums of positions cannot overflow.
constexpr std::int64_t kMostKeys = std::int64_t{1} << 40;
constexpr std::int64_t kSmallestPage = 16;

void resolve_pages(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  const Pages& pages = options.pages;
  const std::int64_t batch = problem.query.size(0);
  const std::int64_t size = problem.key.size(2);
  const auto places = static_cast<std::int64_t>(pages.table.size());

  checks.require(pages.per_row > 0, "pages.per_row is ", pages.per_row, "; it must be positive");
  checks.require(places % pages.per_row == 0 && places / pages.per_row == batch, "pages.table has ", places,
                 " values for ", batch, " batch rows; each needs per_row = ", pages.per_row);
  const bool power = size >= kSmallestPage && std::has_single_bit(static_cast<std::uint64_t>(size));
  checks.require(power || pages.per_row == 1, "key has pages of ", size,
                 " keys; the page size must be a power of two from ", kSmallestPage,
                 ", or any size where pages.per_row is 1");
  checks.require(size == 0 || pages.per_row <= kMostKeys / size, "pages.per_row is ", pages.per_row, "; with pages of ",
                 size, " keys, a row must have at most 2^40 keys");
  checks.require(options.packed.query_starts.empty() && options.packed.key_starts.empty(),
                 "pages and packed sequences cannot be combined");
  checks.require(batch == 0 || !options.key_lengths.empty(),
                 "pages need key_lengths, one for each batch row: how many of its keys exist");

  problem.pages = {true, pages.table, pages.per_row, PagesInUse::kOnePage};
  if (pages.per_row > 1) problem.pages.shift = std::countr_zero(static_cast<std::uint64_t>(size));
  const std::int64_t most = pages.per_row * size;
  checks.require(pages.keys >= 0 && pages.keys <= most, "pages.keys is ", pages.keys, "; it must be between 0 and ",
                 most, ", per_row · page size");
  problem.key_length = pages.keys > 0 ? pages.keys : most;
}

ConstTensorView resolve_scales(const Checks& checks, std::string_view name, std::string_view of,
                               const ConstTensorView& scales, const ConstTensorView& tensor, bool paged) {
  const std::string_view meaning = paged ? "(P, Hkv, page size)" : "(B, Hkv, Lk)";
  if (tensor.dtype() == DType::i8) {
    checks.require(scales.defined(), of, " is i8 and has no ", name, "; give them, ", meaning, " in f32");
    checks.shaped(name, scales, {tensor.size(0), tensor.size(1), tensor.size(2)}, meaning);
    checks.typed(name, scales, {DType::f32});
  } else {
    checks.require(!scales.defined(), name, " are given, but ", of, " is ", tensor.dtype(), "; only i8 has scales");
  }
  return scales;
}

}  // namespace

void resolve_storage(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem) {
  problem.key_length = problem.key.size(2);
  if (has_pages(options)) resolve_pages(checks, options, problem);
  const bool paged = problem.pages.used;
  problem.key_scales = resolve_scales(checks, "key_scales", "key", options.key_scales, problem.key, paged);
  problem.value_scales = resolve_scales(checks, "value_scales", "value", options.value_scales, problem.value, paged);
}

void check_page_table(const Checks& checks, const AttentionProblem& problem) {
  if (!problem.pages.used) return;
  const std::int64_t pages = problem.key.size(0);
  for (const SequenceSpan& sequence : problem.sequences) {
    if (sequence.key_count == 0) continue;
    const std::int64_t in_use = ((sequence.key_count - 1) >> problem.pages.shift) + 1;
    for (std::int64_t n = 0; n < in_use; ++n) {
      const std::int32_t page =
          problem.pages.table[static_cast<std::size_t>(sequence.batch * problem.pages.per_row + n)];
      checks.require(page >= 0 && page < pages, "pages.table contains page ", page, " for batch row ", sequence.batch,
                     ", index ", n, "; valid pages are 0 to ", pages - 1);
    }
  }
}

void require_plain_storage(const Checks& checks, const ConstTensorView& key, const ConstTensorView& value,
                           const AttentionOptions& options) {
  checks.require(!has_pages(options), "pages are given; gradients need k and v as (B, H, L, D) tensors");
  const auto require = [&](std::string_view name, const ConstTensorView& tensor) {
    checks.require(tensor.dtype() != DType::i8, name, " is i8; gradients need f32, f64, bf16 or f16");
  };
  require("key", key);
  require("value", value);
}

}  // namespace rapt
