// The state of a KV cache: keys and values, the tokens of each sequence, and how tokens are appended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/engine.h"
#include "rapt/kv_cache.h"

namespace rapt {

struct KvCache::State {
  State(const KvCacheConfig& given, Device where);

  std::int64_t new_sequence(const char* function);
  std::size_t index(const char* function, std::int64_t id) const;  // throws if there is no such sequence
  std::int64_t fork(std::int64_t id, std::int64_t length);
  void truncate(std::int64_t id, std::int64_t length);
  void shorten(std::int64_t id, std::int64_t length);
  std::int64_t room(std::int64_t id) const;

  // For validated tensors: rejects what only the cache can check (its sequences, its capacity, numbers that i8 cannot
  // represent) before it changes anything.
  void append(std::span<const std::int64_t> ids, const ConstTensorView& key, const ConstTensorView& value,
              std::span<const std::int64_t> counts, const Workers& workers);
  void view(std::span<const std::int64_t> ids, CacheView& to) const;

  struct Sequence {
    bool used = false;
    bool copies_last = false;  // the current append copies the shared last page
    std::uint64_t last_append = 0;
    std::int64_t length = 0;
    std::vector<std::int32_t> pages{};
  };
  // Keys or values, with the scales of i8: (Hkv, P, page size, width), or (sequences, Hkv, length, width).
  struct Store {
    Tensor numbers, scales;
  };
  struct Place {
    std::int64_t page, row;
  };

  KvCacheConfig config;
  Device device;
  Store key, value;
  std::vector<Sequence> sequences;
  std::vector<std::int32_t> page_users;  // the number of sequences that hold each page
  std::vector<std::int32_t> free_pages;

 private:
  bool paged() const { return config.page_size > 0; }
  // As (P, Hkv, …), whichever dimension is outermost in memory; without pages, a sequence is one page.
  auto by_page(auto& all) const { return paged() ? all.view().transpose(0, 1) : all.view(); }
  std::int64_t page_count() const { return static_cast<std::int64_t>(free_pages.size()); }
  std::int64_t pages_for(std::int64_t tokens) const;
  bool shares_last_page(const Sequence& sequence) const;
  Place place(std::int64_t id, std::int64_t token) const;
  std::int32_t take_page();
  void give_back(std::int32_t page);
  void copy_rows(std::int64_t from_page, std::int64_t to_page, std::int64_t rows, const Workers& workers);
  void check_room(std::span<const std::int64_t> ids, std::int64_t length, std::span<const std::int64_t> counts);
  void check_finite(const char* name, const ConstTensorView& view, std::span<const std::int64_t> counts,
                    const Workers& workers) const;
  void reserve(Sequence& sequence, std::int64_t count, const Workers& workers);
  void list_runs(std::int64_t batch, std::int64_t id, std::int64_t count);
  void write(const ConstTensorView& from, Store& to, const Workers& workers);

  std::uint64_t appends_ = 0;
  std::vector<CacheRun> runs_;  // of the current append
};

}  // namespace rapt
