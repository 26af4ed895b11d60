// Keys and values of sequences that grow: written as tokens come, read by attention where they lie.
//
//   rapt::KvCache cache({.kv_heads = 8, .head_size = 128, .sequences = 4, .page_size = 64, .pages = 256});
//   const std::vector<std::int64_t> ids = {cache.add(), cache.add()};
//   cache.append(ids, k, v);  // (2, Hkv, L, D), (2, Hkv, L, Dv)
//   rapt::CacheView seen;     // kept from step to step, so that no step takes memory from the heap
//   cache.view(ids, seen);
//   seen.apply(options);
//   rapt::attention({.out = out}, q, seen.key, seen.value, options);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rapt/attention.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// Without pages each sequence has room for `length` tokens of its own. With pages all sequences share them: a token
// takes room as it comes, and a common beginning is stored once.
struct KvCacheConfig {
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 0;
  std::int64_t value_size = 0;  // 0: head_size
  DType dtype = DType::f32;     // f32, bf16, f16, or i8 with a scale for each token and head
  std::int64_t sequences = 1;   // at once, at most
  std::int64_t length = 0;      // tokens of a sequence, at most; with pages 0 means as many as these hold
  std::int64_t page_size = 0;   // tokens, a power of two from 16; 0: no pages
  std::int64_t pages = 0;       // of all sequences together
};

// What attention reads of some sequences: row b is the b-th of them. It is good until the cache changes.
struct CacheView {
  ConstTensorView key{}, value{};                // (B, Hkv, L, D), or pages
  ConstTensorView key_scales{}, value_scales{};  // of i8
  std::vector<std::int64_t> key_lengths{};
  std::vector<std::int32_t> page_table{};  // (B, pages_per_row)
  std::int64_t pages_per_row = 0;          // 0: no pages
  std::int64_t keys = 0;                   // Lk: of the longest

  // Sets key lengths, pages and scales. The options read this view's page table, so it must outlive their use.
  void apply(AttentionOptions& options) const;
};

class KvCache {
 public:
  explicit KvCache(const KvCacheConfig& config);

  // A new, empty sequence: the smallest number that is free.
  std::int64_t add();
  void remove(std::int64_t id);
  // A new sequence that begins with the first `length` tokens of another, or with all. With pages these are shared, and
  // a page that is partly filled is copied when one of those who share it writes to it next.
  std::int64_t fork(std::int64_t id);
  std::int64_t fork(std::int64_t id, std::int64_t length);
  void truncate(std::int64_t id, std::int64_t length);

  // Appends tokens: k is (B, Hkv, L, D) and v (B, Hkv, L, Dv), in f32, bf16 or f16 and of any strides; row b goes to
  // sequence ids[b], all of it or its first counts[b] tokens. Numbers are rounded once, to the cache's type. In i8 a
  // token's scale is its largest |x| / 127 for each head, its numbers are x / scale, to nearest, ties to even, and a
  // number that is not finite is refused. A call that is refused changes nothing.
  void append(std::span<const std::int64_t> ids, const ConstTensorView& key, const ConstTensorView& value,
              std::span<const std::int64_t> counts = {});

  // `to` keeps its memory: once it has been used for as many sequences, it takes none from the heap.
  void view(std::span<const std::int64_t> ids, CacheView& to) const;

  const KvCacheConfig& config() const { return config_; }
  std::int64_t length(std::int64_t id) const;
  std::int64_t room(std::int64_t id) const;  // tokens that this sequence could take now, if no other took any
  std::int64_t free_pages() const { return static_cast<std::int64_t>(free_pages_.size()); }
  std::int64_t sequence_count() const;
  std::size_t bytes() const;  // of keys, values and scales

 private:
  struct Sequence {
    bool used = false;
    bool copies_last = false;  // in the append at hand
    std::uint64_t last_append = 0;
    std::int64_t length = 0;
    std::vector<std::int32_t> pages{};
  };
  // Keys or values, and their scales in i8: (Hkv, P, page size, width), or (sequences, Hkv, length, width).
  struct Store {
    Tensor numbers, scales;
  };
  struct Place {
    std::int64_t page, row;
  };

  bool paged() const { return config_.page_size > 0; }
  // (P, Hkv, …), whichever lies outside; a sequence without pages is one.
  auto by_page(auto& all) const { return paged() ? all.view().transpose(0, 1) : all.view(); }
  std::int64_t pages_for(std::int64_t tokens) const;
  bool shares_last_page(const Sequence& sequence) const;
  Place place(std::int64_t id, std::int64_t token) const;
  std::size_t index(const char* function, std::int64_t id) const;  // of a sequence that must be there
  std::int64_t new_sequence(const char* function);
  std::int32_t take_page();
  void give_back(std::int32_t page);
  void shorten(Sequence& sequence, std::int64_t length);
  void copy_rows(std::int64_t from_page, std::int64_t to_page, std::int64_t rows);
  void check_append(std::span<const std::int64_t> ids, const ConstTensorView& key, const ConstTensorView& value,
                    std::span<const std::int64_t> counts);
  void check_room(std::span<const std::int64_t> ids, std::int64_t length, std::span<const std::int64_t> counts);
  void reserve(Sequence& sequence, std::int64_t count);
  void write(std::int64_t id, std::int64_t count, const ConstTensorView& from, Store& to);

  KvCacheConfig config_;
  Store key_, value_;
  std::vector<Sequence> sequences_;
  std::vector<std::int32_t> page_users_;  // how many sequences hold each page
  std::vector<std::int32_t> free_pages_;
  std::uint64_t appends_ = 0;
};

}  // namespace rapt
#pragma GCC visibility pop
