#include "rapt/kv_cache.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "attention/checks.h"
#include "core/call_counts.h"
#include "nn/kv_cache_state.h"

namespace rapt {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

KvCacheConfig checked(KvCacheConfig config) {
  const Checks checks("KvCache");
  const auto positive = [&](std::string_view name, std::int64_t value) {
    checks.require(value > 0, name, " is ", value, "; it must be positive");
  };
  positive("kv_heads", config.kv_heads);
  positive("head_size", config.head_size);
  if (config.value_size == 0) config.value_size = config.head_size;
  positive("value_size", config.value_size);
  positive("sequences", config.sequences);
  checks.require(config.sequences <= kMost && config.pages <= kMost, "sequences is ", config.sequences,
                 " and pages is ", config.pages, "; each must be below 2^31");
  const DType dtype = config.dtype;
  checks.require(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::i8, "dtype is ",
                 dtype, "; it must be f32, bf16, f16 or i8");
  if (config.page_size == 0) {
    checks.require(config.pages == 0, "pages is ", config.pages, ", but page_size is 0; give both, or neither");
    positive("length", config.length);
    return config;
  }
  checks.require(config.page_size >= 16 && config.page_size <= kMost &&
                     std::has_single_bit(static_cast<std::uint64_t>(config.page_size)),
                 "page_size is ", config.page_size, "; it must be a power of two from 16 to 2^30, or 0 for no pages");
  positive("pages", config.pages);
  checks.require(config.length >= 0, "length is ", config.length, "; it must be positive, or 0 for all pages");
  const std::int64_t all = config.pages * config.page_size;
  config.length = config.length == 0 ? all : std::min(config.length, all);
  return config;
}

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.count()) * size_of(tensor.dtype());
}

void check_tensors(const KvCacheConfig& config, Device device, std::span<const std::int64_t> ids,
                   const ConstTensorView& key, const ConstTensorView& value, std::span<const std::int64_t> counts) {
  core::count_call(&core::CallCounts::cache);
  const Checks checks("KvCache::append", device);
  const auto batch = static_cast<std::int64_t>(ids.size());
  checks.usable("key", key);
  checks.require(key.rank() == 4, "key has shape ", key.shape(), "; it must be (B, Hkv, L, D)");
  checks.shaped("key", key, {batch, config.kv_heads, key.size(2), config.head_size}, "(B, Hkv, L, D)");
  checks.shaped("value", value, {batch, config.kv_heads, key.size(2), config.value_size}, "(B, Hkv, L, Dv)");
  checks.typed("key", key, {DType::f32, DType::bf16, DType::f16});
  checks.typed("value", value, {DType::f32, DType::bf16, DType::f16});
  checks.require(counts.empty() || counts.size() == ids.size(), "counts has ", counts.size(), " values for ",
                 ids.size(), " sequences; give one for each");
  for (std::size_t b = 0; b < counts.size(); ++b) {
    checks.require(counts[b] >= 0 && counts[b] <= key.size(2), "counts[", b, "] is ", counts[b],
                   "; it must be from 0 to ", key.size(2), ", the number of tokens in a row of key");
  }
}

}  // namespace

void CacheView::apply(AttentionOptions& options) const {
  options.key_lengths.assign(key_lengths.begin(), key_lengths.end());
  options.pages = {page_table, pages_per_row, pages_per_row > 0 ? keys : 0};
  options.key_scales = key_scales;
  options.value_scales = value_scales;
}

KvCache::State::State(const KvCacheConfig& given, Device where) : config(checked(given)), device(where) {
  // The pages of one head are adjacent, so that a sequence in consecutive pages is read as contiguous memory.
  const Dims heads = paged() ? Dims{config.kv_heads, config.pages, config.page_size}
                             : Dims{config.sequences, config.kv_heads, config.length};
  const auto make = [&](std::int64_t width) {
    return Store{Tensor({heads[0], heads[1], heads[2], width}, config.dtype, device),
                 Tensor(config.dtype == DType::i8 ? heads : Dims{0}, DType::f32, device)};
  };
  key = make(config.head_size);
  value = make(config.value_size);
  sequences.resize(static_cast<std::size_t>(config.sequences));
  page_users.resize(static_cast<std::size_t>(config.pages));
  for (std::int64_t page = config.pages; page > 0; --page) free_pages.push_back(static_cast<std::int32_t>(page - 1));
}

// ---------------------------------------------------------------- sequences

std::int64_t KvCache::State::new_sequence(const char* function) {
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    Sequence& free = sequences[n];
    if (free.used) continue;
    // Capacity for all pages that the sequence may get, so that appending does not allocate.
    if (paged()) free.pages.reserve(static_cast<std::size_t>(pages_for(config.length)));
    free.used = true;
    return static_cast<std::int64_t>(n);
  }
  Checks(function).fail("all ", config.sequences, " sequences are in use; remove one first");
}

std::size_t KvCache::State::index(const char* function, std::int64_t id) const {
  const bool known = id >= 0 && id < config.sequences && sequences[static_cast<std::size_t>(id)].used;
  if (!known) Checks(function).fail("there is no sequence ", id, "; add() creates one");
  return static_cast<std::size_t>(id);
}

std::int64_t KvCache::State::fork(std::int64_t id, std::int64_t length) {
  const Sequence& from = sequences[index("KvCache::fork", id)];
  Checks("KvCache::fork")
      .require(length >= 0 && length <= from.length, "sequence ", id, " has ", from.length,
               " tokens; a fork cannot start with ", length, " of them");
  const std::int64_t forked = new_sequence("KvCache::fork");
  Sequence& to = sequences[static_cast<std::size_t>(forked)];
  to.length = length;
  if (paged()) {
    to.pages.assign(from.pages.begin(), from.pages.begin() + pages_for(length));
    for (const std::int32_t page : to.pages) ++page_users[static_cast<std::size_t>(page)];
  } else {
    copy_rows(id, forked, length, core::pool_workers());
  }
  return forked;
}

void KvCache::State::truncate(std::int64_t id, std::int64_t length) {
  const Sequence& changed = sequences[index("KvCache::truncate", id)];
  Checks("KvCache::truncate")
      .require(length >= 0 && length <= changed.length, "sequence ", id, " has ", changed.length,
               " tokens; it cannot be truncated to ", length);
  shorten(id, length);
}

std::int64_t KvCache::State::room(std::int64_t id) const {
  const Sequence& of = sequences[index("KvCache::room", id)];
  const std::int64_t limit = config.length - of.length;
  if (!paged()) return limit;
  const std::int64_t in_last = pages_for(of.length) * config.page_size - of.length;
  const std::int64_t copies = shares_last_page(of) ? 1 : 0;
  if (page_count() < copies) return 0;
  return std::min(limit, in_last + (page_count() - copies) * config.page_size);
}

// ---------------------------------------------------------------- pages

std::int64_t KvCache::State::pages_for(std::int64_t tokens) const {
  return (tokens + config.page_size - 1) / config.page_size;
}

// Whether the next token would be written to a page that another sequence shares.
bool KvCache::State::shares_last_page(const Sequence& sequence) const {
  return paged() && sequence.length % config.page_size != 0 &&
         page_users[static_cast<std::size_t>(sequence.pages.back())] > 1;
}

KvCache::State::Place KvCache::State::place(std::int64_t id, std::int64_t token) const {
  if (!paged()) return {id, token};
  const Sequence& of = sequences[static_cast<std::size_t>(id)];
  return {of.pages[static_cast<std::size_t>(token / config.page_size)], token % config.page_size};
}

std::int32_t KvCache::State::take_page() {
  const std::int32_t page = free_pages.back();
  free_pages.pop_back();
  page_users[static_cast<std::size_t>(page)] = 1;
  return page;
}

void KvCache::State::give_back(std::int32_t page) {
  if (--page_users[static_cast<std::size_t>(page)] == 0) free_pages.push_back(page);
}

void KvCache::State::shorten(std::int64_t id, std::int64_t length) {
  Sequence& sequence = sequences[static_cast<std::size_t>(id)];
  sequence.length = length;
  if (!paged()) return;
  while (static_cast<std::int64_t>(sequence.pages.size()) > pages_for(length)) {
    give_back(sequence.pages.back());
    sequence.pages.pop_back();
  }
}

// Copies the first rows of a page, or of a sequence without pages, to another.
void KvCache::State::copy_rows(std::int64_t from_page, std::int64_t to_page, std::int64_t rows,
                               const Workers& workers) {
  const LayerOps& ops = *device_row(device).layer;
  const auto copy_heads = [&](const TensorView& all) {
    ops.copy(all.select(0, from_page).slice(1, 0, rows), all.select(0, to_page).slice(1, 0, rows), workers);
  };
  for (Store* store : {&key, &value}) {
    copy_heads(by_page(store->numbers));
    if (config.dtype == DType::i8) copy_heads(by_page(store->scales));
  }
}

// ---------------------------------------------------------------- writing

void KvCache::State::check_room(std::span<const std::int64_t> ids, std::int64_t length,
                                std::span<const std::int64_t> counts) {
  const Checks checks("KvCache::append");
  const auto count_of = [&](std::size_t b) { return counts.empty() ? length : counts[b]; };
  for (std::size_t b = 0; b < ids.size(); ++b) {
    const Sequence& of = sequences[static_cast<std::size_t>(ids[b])];
    checks.require(count_of(b) <= config.length - of.length, "sequence ", ids[b], " has ", of.length,
                   " tokens and gets ", count_of(b), " more; a sequence has room for ", config.length);
  }
  if (!paged()) return;
  std::int64_t needed = 0;
  std::size_t over = ids.size();  // the first row whose pages do not fit
  for (std::size_t b = 0; b < ids.size(); ++b) {
    Sequence& of = sequences[static_cast<std::size_t>(ids[b])];
    // Among sequences that share a page, the last one to write keeps it, so page_users is decremented here and restored
    // below.
    of.copies_last = count_of(b) > 0 && shares_last_page(of);
    if (of.copies_last) --page_users[static_cast<std::size_t>(of.pages.back())];
    needed += pages_for(of.length + count_of(b)) - pages_for(of.length) + (of.copies_last ? 1 : 0);
    if (needed > page_count()) over = std::min(over, b);
  }
  for (const std::int64_t id : ids) {
    const Sequence& of = sequences[static_cast<std::size_t>(id)];
    if (of.copies_last) ++page_users[static_cast<std::size_t>(of.pages.back())];
  }
  if (over == ids.size()) return;
  checks.fail("sequence ", ids[over], " has no room for ", count_of(over), " more tokens: this call needs ", needed,
              " pages, ", page_count(), " of ", config.pages, " are free");
}

void KvCache::State::check_finite(const char* name, const ConstTensorView& view, std::span<const std::int64_t> counts,
                                  const Workers& workers) const {
  const std::int64_t row = device_row(device).layer->find_not_finite(view, counts, workers);
  if (row < 0) return;
  Checks("KvCache::append")
      .fail(name, " has a non-finite number at row ", row / (view.size(1) * view.size(2)), ", head ",
            row / view.size(2) % view.size(1), ", token ", row % view.size(2), "; i8 cannot store it");
}

// Allocates pages for `count` more tokens. If the last page is shared, the sequence gets its own copy.
void KvCache::State::reserve(Sequence& sequence, std::int64_t count, const Workers& workers) {
  if (count > 0 && shares_last_page(sequence)) {
    const std::int32_t shared = sequence.pages.back();
    sequence.pages.back() = take_page();
    copy_rows(shared, sequence.pages.back(), sequence.length % config.page_size, workers);
    give_back(shared);
  }
  while (static_cast<std::int64_t>(sequence.pages.size()) < pages_for(sequence.length + count)) {
    sequence.pages.push_back(take_page());
  }
}

// The destinations of the first `count` tokens of a batch row, after the end of a sequence that has room for them.
void KvCache::State::list_runs(std::int64_t batch, std::int64_t id, std::int64_t count) {
  const std::int64_t length = sequences[static_cast<std::size_t>(id)].length;
  for (std::int64_t token = 0; token < count;) {
    const Place at = place(id, length + token);
    const std::int64_t in_page = paged() ? config.page_size - at.row : count;
    const std::int64_t run = std::min(count - token, in_page);
    runs_.push_back({batch, token, at.page, at.row, run});
    token += run;
  }
}

void KvCache::State::write(const ConstTensorView& from, Store& to, const Workers& workers) {
  device_row(device).layer->append({.from = from,
                                    .to = by_page(to.numbers),
                                    .scales = config.dtype == DType::i8 ? by_page(to.scales) : TensorView(),
                                    .runs = runs_},
                                   workers);
}

void KvCache::State::append(std::span<const std::int64_t> ids, const ConstTensorView& new_keys,
                            const ConstTensorView& new_values, std::span<const std::int64_t> counts,
                            const Workers& workers) {
  ++appends_;
  for (const std::int64_t id : ids) {
    Sequence& named = sequences[index("KvCache::append", id)];
    Checks("KvCache::append")
        .require(named.last_append != appends_, "sequence ", id, " is listed twice; give its tokens in one row");
    named.last_append = appends_;
  }
  check_room(ids, new_keys.size(2), counts);
  if (config.dtype == DType::i8) {
    check_finite("key", new_keys, counts, workers);
    check_finite("value", new_values, counts, workers);
  }
  runs_.clear();
  for (std::size_t b = 0; b < ids.size(); ++b) {
    Sequence& to = sequences[static_cast<std::size_t>(ids[b])];
    const std::int64_t count = counts.empty() ? new_keys.size(2) : counts[b];
    if (paged()) reserve(to, count, workers);
    list_runs(static_cast<std::int64_t>(b), ids[b], count);
    to.length += count;
  }
  write(new_keys, key, workers);
  write(new_values, value, workers);
}

// ---------------------------------------------------------------- reading

void KvCache::State::view(std::span<const std::int64_t> ids, CacheView& to) const {
  to.key_lengths.clear();
  to.page_table.clear();
  to.pages_per_row = to.keys = 0;
  bool in_order = true;
  for (const std::int64_t id : ids) {
    const Sequence& of = sequences[index("KvCache::view", id)];
    in_order = in_order && id == ids[0] + static_cast<std::int64_t>(to.key_lengths.size());
    to.key_lengths.push_back(of.length);
    to.keys = std::max(to.keys, of.length);
    to.pages_per_row = std::max(to.pages_per_row, static_cast<std::int64_t>(of.pages.size()));
  }
  // Room for the largest table, so that no later view of as many sequences allocates.
  const std::int64_t most = paged() ? pages_for(config.length) : 1;
  to.page_table.reserve(ids.size() * static_cast<std::size_t>(most));
  const bool plain = !paged() && in_order;
  const std::int64_t first = ids.empty() ? 0 : ids[0];
  const auto rows = [&](const Tensor& all) {
    const ConstTensorView pages = by_page(all);
    if (!plain) return pages;
    return pages.slice(0, first, first + static_cast<std::int64_t>(ids.size())).slice(2, 0, to.keys);
  };
  to.key = rows(key.numbers), to.value = rows(value.numbers);
  to.key_scales = config.dtype == DType::i8 ? rows(key.scales) : ConstTensorView();
  to.value_scales = config.dtype == DType::i8 ? rows(value.scales) : ConstTensorView();
  if (plain) return;

  to.pages_per_row = std::max<std::int64_t>(1, to.pages_per_row);  // without pages, a sequence is one page
  to.page_table.resize(ids.size() * static_cast<std::size_t>(to.pages_per_row), 0);
  for (std::size_t b = 0; b < ids.size(); ++b) {
    const Sequence& of = sequences[static_cast<std::size_t>(ids[b])];
    std::int32_t* row = to.page_table.data() + b * static_cast<std::size_t>(to.pages_per_row);
    if (paged()) {
      std::copy(of.pages.begin(), of.pages.end(), row);
    } else {
      *row = static_cast<std::int32_t>(ids[b]);
    }
  }
}

// ---------------------------------------------------------------- the cache as its callers see it

KvCache::KvCache(const KvCacheConfig& config, Device device) : state_(std::make_unique<State>(config, device)) {}
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;
KvCache::~KvCache() = default;

std::int64_t KvCache::add() { return state_->new_sequence("KvCache::add"); }

void KvCache::remove(std::int64_t id) {
  const std::size_t removed = state_->index("KvCache::remove", id);
  state_->shorten(id, 0);
  state_->sequences[removed].used = false;
}

std::int64_t KvCache::fork(std::int64_t id) {
  return fork(id, state_->sequences[state_->index("KvCache::fork", id)].length);
}
std::int64_t KvCache::fork(std::int64_t id, std::int64_t length) { return state_->fork(id, length); }
void KvCache::truncate(std::int64_t id, std::int64_t length) { state_->truncate(id, length); }

void KvCache::append(std::span<const std::int64_t> ids, const ConstTensorView& key, const ConstTensorView& value,
                     std::span<const std::int64_t> counts) {
  check_tensors(state_->config, state_->device, ids, key, value, counts);
  state_->append(ids, key, value, counts, core::pool_workers());
}

void KvCache::view(std::span<const std::int64_t> ids, CacheView& to) const { state_->view(ids, to); }

const KvCacheConfig& KvCache::config() const { return state_->config; }
Device KvCache::device() const { return state_->device; }
std::int64_t KvCache::length(std::int64_t id) const {
  return state_->sequences[state_->index("KvCache::length", id)].length;
}
std::int64_t KvCache::room(std::int64_t id) const { return state_->room(id); }
std::int64_t KvCache::free_pages() const { return static_cast<std::int64_t>(state_->free_pages.size()); }

std::int64_t KvCache::sequence_count() const {
  return std::count_if(state_->sequences.begin(), state_->sequences.end(),
                       [](const State::Sequence& one) { return one.used; });
}

std::size_t KvCache::bytes() const {
  std::size_t bytes = 0;
  for (const State::Store* store : {&state_->key, &state_->value}) {
    bytes += bytes_of(store->numbers) + bytes_of(store->scales);
  }
  return bytes;
}

}  // namespace rapt
