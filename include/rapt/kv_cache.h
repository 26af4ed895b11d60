// KV cache: keys and values are appended as tokens arrive, and attention reads them in place.
//
//   rapt::KvCache cache({.kv_heads = 8, .head_size = 128, .sequences = 4, .page_size = 64, .pages = 256});
//   const std::vector<std::int64_t> ids = {cache.add(), cache.add()};
//   cache.append(ids, k, v);  // (2, Hkv, L, D), (2, Hkv, L, Dv)
//   rapt::CacheView seen;     // reused in every step, so that view does not allocate
//   cache.view(ids, seen);
//   seen.apply(options);
//   rapt::attention({.out = out}, q, seen.key, seen.value, options);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rapt/attention.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// Without pages, each sequence has its own space for `length` tokens. With pages, all sequences share one pool: pages
// are assigned as tokens arrive, and a common prefix is stored once.
struct KvCacheConfig {
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 0;
  std::int64_t value_size = 0;  // 0: head_size
  DType dtype = DType::f32;     // f32, bf16, f16, or i8 with one scale per token and head
  std::int64_t sequences = 1;   // maximum number of sequences at once
  std::int64_t length = 0;      // maximum tokens per sequence; with pages, 0: as many as the pages hold
  std::int64_t page_size = 0;   // tokens per page: a power of two, at least 16; 0: no pages
  std::int64_t pages = 0;       // total, shared by all sequences
};

// The inputs of attention for a list of sequences: row b is the b-th sequence of the list. Valid until the cache
// changes.
struct CacheView {
  ConstTensorView key{}, value{};                // (B, Hkv, L, D or Dv), or (P, Hkv, page size, D or Dv)
  ConstTensorView key_scales{}, value_scales{};  // for i8
  std::vector<std::int64_t> key_lengths{};
  std::vector<std::int32_t> page_table{};  // (B, pages_per_row)
  std::int64_t pages_per_row = 0;          // 0: no pages
  std::int64_t keys = 0;                   // Lk: the longest length

  // Sets key lengths, pages and scales. The options refer to this view's page table, so this view must outlive their
  // use.
  void apply(AttentionOptions& options) const;
};

class KvCache {
 public:
  // Keys and values are on `device`; appended tensors, and the queries that read the cache, must be on that device too.
  explicit KvCache(const KvCacheConfig& config, Device device = {});
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  // Creates an empty sequence and returns its id: the smallest free number.
  std::int64_t add();
  void remove(std::int64_t id);
  // Creates a sequence that starts with the first `length` tokens of another, or with all of them. With pages the
  // prefix is shared, and a partly filled page is copied on the next write by a sequence that shares it.
  std::int64_t fork(std::int64_t id);
  std::int64_t fork(std::int64_t id, std::int64_t length);
  void truncate(std::int64_t id, std::int64_t length);

  // Appends tokens. k is (B, Hkv, L, D) and v is (B, Hkv, L, Dv), in f32, bf16 or f16, with any strides. Row b goes to
  // sequence ids[b]: all of its tokens, or the first counts[b] of them. Elements are rounded once, to the cache's type.
  // For i8, the scale of a token and head is max |x| / 127, elements are stored as x / scale rounded to nearest, ties
  // to even, and non-finite elements are rejected. A rejected call changes nothing.
  void append(std::span<const std::int64_t> ids, const ConstTensorView& key, const ConstTensorView& value,
              std::span<const std::int64_t> counts = {});

  // Reuses the memory of `to`: a call for the same sequences as an earlier one does not allocate.
  void view(std::span<const std::int64_t> ids, CacheView& to) const;

  const KvCacheConfig& config() const;
  Device device() const;
  std::int64_t length(std::int64_t id) const;
  std::int64_t room(std::int64_t id) const;  // tokens this sequence can append now, if no other sequence appends
  std::int64_t free_pages() const;
  std::int64_t sequence_count() const;
  std::size_t bytes() const;  // of keys, values and scales

  struct [[gnu::visibility("hidden")]] State;  // implementation detail
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace rapt
#pragma GCC visibility pop
