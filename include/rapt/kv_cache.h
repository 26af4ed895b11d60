#pragma once
#include <cstdint>
#include <span>
#include <vector>
#include "rapt/attention.h"
namespace rapt {
struct KvCacheConfig { std::int64_t kv_heads = 0, head_size = 0, value_size = 0; };
struct CacheView { ConstTensorView key, value; std::vector<std::int64_t> key_lengths; };
class KvCache { public:
  const KvCacheConfig& config() const { return config_; }
  std::int64_t length(std::int64_t) const { return 0; }
  void truncate(std::int64_t, std::int64_t) {}
  void append(std::span<const std::int64_t>, const ConstTensorView&, const ConstTensorView&, std::span<const std::int64_t>) {}
  void view(std::span<const std::int64_t>, CacheView&) const {}
 private: KvCacheConfig config_; };
}
