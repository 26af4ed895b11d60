#include "rapt/kv_cache.h"

#include <bit>
#include <cstring>
#include <limits>

#include "attention/checks.h"
#include "nn/store_row.h"

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

}  // namespace

void CacheView::apply(AttentionOptions& options) const {
  options.key_lengths.assign(key_lengths.begin(), key_lengths.end());
  options.pages = {page_table, pages_per_row, pages_per_row > 0 ? keys : 0};
  options.key_scales = key_scales;
  options.value_scales = value_scales;
}

KvCache::KvCache(const KvCacheConfig& config) : config_(checked(config)) {
  // A page's neighbour is the next page of the same head: a sequence alone is read as if it were in one piece.
  const Dims heads = paged() ? Dims{config_.kv_heads, config_.pages, config_.page_size}
                             : Dims{config_.sequences, config_.kv_heads, config_.length};
  const auto make = [&](std::int64_t width) {
    return Store{Tensor({heads[0], heads[1], heads[2], width}, config_.dtype),
                 Tensor(config_.dtype == DType::i8 ? heads : Dims{0})};
  };
  key_ = make(config_.head_size);
  value_ = make(config_.value_size);
  sequences_.resize(static_cast<std::size_t>(config_.sequences));
  page_users_.resize(static_cast<std::size_t>(config_.pages));
  for (std::int64_t page = config_.pages; page > 0; --page) free_pages_.push_back(static_cast<std::int32_t>(page - 1));
}

// ---------------------------------------------------------------- sequences

std::int64_t KvCache::new_sequence(const char* function) {
  for (std::size_t n = 0; n < sequences_.size(); ++n) {
    Sequence& free = sequences_[n];
    if (free.used) continue;
    // Room for every page it may have, so that no append needs memory later.
    if (paged()) free.pages.reserve(static_cast<std::size_t>(pages_for(config_.length)));
    free.used = true;
    return static_cast<std::int64_t>(n);
  }
  Checks(function).fail("all ", config_.sequences, " sequences are in use; remove one first");
}

std::size_t KvCache::index(const char* function, std::int64_t id) const {
  const bool known = id >= 0 && id < config_.sequences && sequences_[static_cast<std::size_t>(id)].used;
  if (!known) Checks(function).fail("there is no sequence ", id, "; add() creates one");
  return static_cast<std::size_t>(id);
}

std::int64_t KvCache::add() { return new_sequence("KvCache::add"); }

void KvCache::remove(std::int64_t id) {
  Sequence& removed = sequences_[index("KvCache::remove", id)];
  shorten(removed, 0);
  removed.used = false;
}

std::int64_t KvCache::fork(std::int64_t id) { return fork(id, sequences_[index("KvCache::fork", id)].length); }

std::int64_t KvCache::fork(std::int64_t id, std::int64_t length) {
  const Sequence& from = sequences_[index("KvCache::fork", id)];
  Checks("KvCache::fork")
      .require(length >= 0 && length <= from.length, "sequence ", id, " has ", from.length,
               " tokens; a fork cannot start with ", length, " of them");
  const std::int64_t forked = new_sequence("KvCache::fork");
  Sequence& to = sequences_[static_cast<std::size_t>(forked)];
  to.length = length;
  if (paged()) {
    to.pages.assign(from.pages.begin(), from.pages.begin() + pages_for(length));
    for (const std::int32_t page : to.pages) ++page_users_[static_cast<std::size_t>(page)];
  } else {
    copy_rows(id, forked, length);
  }
  return forked;
}

void KvCache::truncate(std::int64_t id, std::int64_t length) {
  Sequence& changed = sequences_[index("KvCache::truncate", id)];
  Checks("KvCache::truncate")
      .require(length >= 0 && length <= changed.length, "sequence ", id, " has ", changed.length,
               " tokens; it cannot be truncated to ", length);
  shorten(changed, length);
}

std::int64_t KvCache::length(std::int64_t id) const { return sequences_[index("KvCache::length", id)].length; }

std::int64_t KvCache::room(std::int64_t id) const {
  const Sequence& of = sequences_[index("KvCache::room", id)];
  const std::int64_t limit = config_.length - of.length;
  if (!paged()) return limit;
  const std::int64_t in_last = pages_for(of.length) * config_.page_size - of.length;
  const std::int64_t copies = shares_last_page(of) ? 1 : 0;
  if (free_pages() < copies) return 0;
  return std::min(limit, in_last + (free_pages() - copies) * config_.page_size);
}

std::int64_t KvCache::sequence_count() const {
  return std::count_if(sequences_.begin(), sequences_.end(), [](const Sequence& one) { return one.used; });
}

std::size_t KvCache::bytes() const {
  return bytes_of(key_.numbers) + bytes_of(key_.scales) + bytes_of(value_.numbers) + bytes_of(value_.scales);
}

// ---------------------------------------------------------------- pages

std::int64_t KvCache::pages_for(std::int64_t tokens) const {
  return (tokens + config_.page_size - 1) / config_.page_size;
}

// Whether the next token would go to a page that another sequence holds too.
bool KvCache::shares_last_page(const Sequence& sequence) const {
  return paged() && sequence.length % config_.page_size != 0 &&
         page_users_[static_cast<std::size_t>(sequence.pages.back())] > 1;
}

KvCache::Place KvCache::place(std::int64_t id, std::int64_t token) const {
  if (!paged()) return {id, token};
  const Sequence& of = sequences_[static_cast<std::size_t>(id)];
  return {of.pages[static_cast<std::size_t>(token / config_.page_size)], token % config_.page_size};
}

std::int32_t KvCache::take_page() {
  const std::int32_t page = free_pages_.back();
  free_pages_.pop_back();
  page_users_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void KvCache::give_back(std::int32_t page) {
  if (--page_users_[static_cast<std::size_t>(page)] == 0) free_pages_.push_back(page);
}

void KvCache::shorten(Sequence& sequence, std::int64_t length) {
  sequence.length = length;
  if (!paged()) return;
  while (static_cast<std::int64_t>(sequence.pages.size()) > pages_for(length)) {
    give_back(sequence.pages.back());
    sequence.pages.pop_back();
  }
}

// The first rows of a page, or of a sequence without pages, to another.
void KvCache::copy_rows(std::int64_t from_page, std::int64_t to_page, std::int64_t rows) {
  const auto copy_heads = [&](const TensorView& all) {  // rows are contiguous
    const std::int64_t width = all.rank() == 4 ? all.size(3) : 1;
    const auto size = static_cast<std::int64_t>(size_of(all.dtype()));
    auto* data = static_cast<std::byte*>(all.data());
    for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
      const auto start = [&](std::int64_t page) { return (page * all.stride(0) + h * all.stride(1)) * size; };
      std::memcpy(data + start(to_page), data + start(from_page), static_cast<std::size_t>(rows * width * size));
    }
  };
  for (Store* store : {&key_, &value_}) {
    copy_heads(by_page(store->numbers));
    if (config_.dtype == DType::i8) copy_heads(by_page(store->scales));
  }
}

// ---------------------------------------------------------------- writing

void KvCache::check_append(std::span<const std::int64_t> ids, const ConstTensorView& key, const ConstTensorView& value,
                           std::span<const std::int64_t> counts) {
  const Checks checks("KvCache::append");
  const auto batch = static_cast<std::int64_t>(ids.size());
  checks.usable("key", key);
  checks.require(key.rank() == 4, "key has shape ", key.shape(), "; it must be (B, Hkv, L, D)");
  checks.shaped("key", key, {batch, config_.kv_heads, key.size(2), config_.head_size}, "(B, Hkv, L, D)");
  checks.shaped("value", value, {batch, config_.kv_heads, key.size(2), config_.value_size}, "(B, Hkv, L, Dv)");
  checks.typed("key", key, {DType::f32, DType::bf16, DType::f16});
  checks.typed("value", value, {DType::f32, DType::bf16, DType::f16});
  checks.require(counts.empty() || counts.size() == ids.size(), "counts has ", counts.size(), " values for ",
                 ids.size(), " sequences; give one for each");
  for (std::size_t b = 0; b < counts.size(); ++b) {
    checks.require(counts[b] >= 0 && counts[b] <= key.size(2), "counts[", b, "] is ", counts[b],
                   "; it must be from 0 to the ", key.size(2), " tokens there are");
  }
  ++appends_;
  for (const std::int64_t id : ids) {
    Sequence& named = sequences_[index("KvCache::append", id)];
    checks.require(named.last_append != appends_, "sequence ", id, " is listed twice; give its tokens in one row");
    named.last_append = appends_;
  }
  check_room(ids, key.size(2), counts);
  if (config_.dtype != DType::i8) return;
  const auto check_finite = [&](std::string_view name, const ConstTensorView& view) {
    for (std::size_t b = 0; b < ids.size(); ++b) {
      for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
        for (std::int64_t i = 0; i < (counts.empty() ? view.size(2) : counts[b]); ++i) {
          const std::int64_t offset =
              static_cast<std::int64_t>(b) * view.stride(0) + h * view.stride(1) + i * view.stride(2);
          const float largest = nn::largest_of(view, offset, view.stride(3), view.size(3));
          checks.require(std::isfinite(largest), name, " has a non-finite number at row ", b, ", head ", h, ", token ",
                         i, "; i8 cannot store it");
        }
      }
    }
  };
  check_finite("key", key);
  check_finite("value", value);
}

void KvCache::check_room(std::span<const std::int64_t> ids, std::int64_t length, std::span<const std::int64_t> counts) {
  const Checks checks("KvCache::append");
  const auto count_of = [&](std::size_t b) { return counts.empty() ? length : counts[b]; };
  for (std::size_t b = 0; b < ids.size(); ++b) {
    const Sequence& of = sequences_[static_cast<std::size_t>(ids[b])];
    checks.require(count_of(b) <= config_.length - of.length, "sequence ", ids[b], " has ", of.length,
                   " tokens and gets ", count_of(b), " more; there is room for ", config_.length);
  }
  if (!paged()) return;
  std::int64_t needed = 0;
  std::size_t over = ids.size();  // the first row without room for its pages
  for (std::size_t b = 0; b < ids.size(); ++b) {
    Sequence& of = sequences_[static_cast<std::size_t>(ids[b])];
    // Of those who share a page, the last one to write keeps it: hence the count goes down on the way, and back below.
    of.copies_last = count_of(b) > 0 && shares_last_page(of);
    if (of.copies_last) --page_users_[static_cast<std::size_t>(of.pages.back())];
    needed += pages_for(of.length + count_of(b)) - pages_for(of.length) + (of.copies_last ? 1 : 0);
    if (needed > free_pages()) over = std::min(over, b);
  }
  for (const std::int64_t id : ids) {
    const Sequence& of = sequences_[static_cast<std::size_t>(id)];
    if (of.copies_last) ++page_users_[static_cast<std::size_t>(of.pages.back())];
  }
  if (over == ids.size()) return;
  checks.fail("sequence ", ids[over], " has no room for ", count_of(over), " more tokens: this call needs ", needed,
              " pages, ", free_pages(), " of ", config_.pages, " are free");
}

// Pages for `count` more tokens, the last one its own.
void KvCache::reserve(Sequence& sequence, std::int64_t count) {
  if (count > 0 && shares_last_page(sequence)) {
    const std::int32_t shared = sequence.pages.back();
    sequence.pages.back() = take_page();
    copy_rows(shared, sequence.pages.back(), sequence.length % config_.page_size);
    give_back(shared);
  }
  while (static_cast<std::int64_t>(sequence.pages.size()) < pages_for(sequence.length + count)) {
    sequence.pages.push_back(take_page());
  }
}

// The first `count` tokens of `from`, (Hkv, L, width), past the end of a sequence that has room for them.
void KvCache::write(std::int64_t id, std::int64_t count, const ConstTensorView& from, Store& to) {
  const TensorView numbers = by_page(to.numbers);
  const std::int64_t width = from.size(2);
  const std::int64_t length = sequences_[static_cast<std::size_t>(id)].length;
  for (std::int64_t i = 0; i < count; ++i) {
    const Place at = place(id, length + i);
    for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
      const std::int64_t offset = h * from.stride(0) + i * from.stride(1);
      const std::int64_t row = (at.page * numbers.stride(0) + h * numbers.stride(1)) / width + at.row;
      if (config_.dtype == DType::i8) {
        const float scale = nn::largest_of(from, offset, from.stride(2), width) / 127.0F;
        to.scales.view().data_as<float>()[row] = scale;
        nn::store_i8(from, offset, from.stride(2), width, scale, numbers.data_as<std::int8_t>() + row * width);
      } else {
        nn::store_float(from, offset, from.stride(2), width, numbers.data(), config_.dtype, row * width);
      }
    }
  }
}

void KvCache::append(std::span<const std::int64_t> ids, const ConstTensorView& key, const ConstTensorView& value,
                     std::span<const std::int64_t> counts) {
  check_append(ids, key, value, counts);
  for (std::size_t b = 0; b < ids.size(); ++b) {
    Sequence& to = sequences_[static_cast<std::size_t>(ids[b])];
    const std::int64_t count = counts.empty() ? key.size(2) : counts[b];
    if (paged()) reserve(to, count);
    write(ids[b], count, key.select(0, static_cast<std::int64_t>(b)), key_);
    write(ids[b], count, value.select(0, static_cast<std::int64_t>(b)), value_);
    to.length += count;
  }
}

// ---------------------------------------------------------------- reading

void KvCache::view(std::span<const std::int64_t> ids, CacheView& to) const {
  to.key_lengths.clear();
  to.page_table.clear();
  to.pages_per_row = to.keys = 0;
  bool in_order = true;
  for (const std::int64_t id : ids) {
    const Sequence& of = sequences_[index("KvCache::view", id)];
    in_order = in_order && id == ids[0] + static_cast<std::int64_t>(to.key_lengths.size());
    to.key_lengths.push_back(of.length);
    to.keys = std::max(to.keys, of.length);
    to.pages_per_row = std::max(to.pages_per_row, static_cast<std::int64_t>(of.pages.size()));
  }
  const bool plain = !paged() && in_order;
  const std::int64_t first = ids.empty() ? 0 : ids[0];
  const auto rows = [&](const Tensor& all) {
    const ConstTensorView view = by_page(all);
    if (!plain) return view;
    return view.slice(0, first, first + static_cast<std::int64_t>(ids.size())).slice(2, 0, to.keys);
  };
  to.key = rows(key_.numbers), to.value = rows(value_.numbers);
  to.key_scales = config_.dtype == DType::i8 ? rows(key_.scales) : ConstTensorView();
  to.value_scales = config_.dtype == DType::i8 ? rows(value_.scales) : ConstTensorView();
  if (plain) return;

  to.pages_per_row = std::max<std::int64_t>(1, to.pages_per_row);  // without pages a sequence is one
  const std::int64_t most = paged() ? pages_for(config_.length) : 1;
  to.page_table.reserve(ids.size() * static_cast<std::size_t>(most));
  to.page_table.resize(ids.size() * static_cast<std::size_t>(to.pages_per_row), 0);
  for (std::size_t b = 0; b < ids.size(); ++b) {
    const Sequence& of = sequences_[static_cast<std::size_t>(ids[b])];
    std::int32_t* row = to.page_table.data() + b * static_cast<std::size_t>(to.pages_per_row);
    if (paged()) {
      std::copy(of.pages.begin(), of.pages.end(), row);
    } else {
      *row = static_cast<std::int32_t>(ids[b]);
    }
  }
}

}  // namespace rapt
