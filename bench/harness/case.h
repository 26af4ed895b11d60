// One benchmark case: its parameters, its name, and its amount of work. A sweep is every combination of the values in
// its lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/attention.h"
#include "rapt/dtype.h"

namespace rapt::bench {

// `full` masks are (B, Hq, Lq, Lk), without broadcasting. `plane` masks are (Lq, Lk).
enum class BenchMask : std::uint8_t { none, bool_full, float_full, bool_plane, float_plane };
enum class BenchWeights : std::uint8_t { none, mean, all };

std::string_view name_of(BenchMask mask);
std::string_view name_of(BenchWeights weights);
std::string name_of(const Window& window);  // "256,0", "256,open", or "none"

inline bool is_open(const Window& window) { return !window.left.has_value() && !window.right.has_value(); }
inline bool is_bool(BenchMask mask) { return mask == BenchMask::bool_full || mask == BenchMask::bool_plane; }
inline bool is_full(BenchMask mask) { return mask == BenchMask::bool_full || mask == BenchMask::float_full; }

struct BenchCase {
  std::int64_t batch = 1;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 8;
  std::int64_t queries = 2048;
  std::int64_t keys = 2048;
  std::int64_t dim = 128;
  DType dtype = DType::f32;
  bool causal = false;
  Window window{};
  BenchMask mask = BenchMask::none;
  BenchWeights weights = BenchWeights::none;
  int threads = 1;
  bool backward = false;  // computes dq, dk and dv from forward's out and lse

  // "b1 h8 n2048 d128 causal"; f32 and one thread are omitted.
  std::string name() const;
  // If there are more keys than queries, or fewer, the last query sees the last key, as with a cache.
  std::int64_t offset() const { return keys - queries; }
  // The number of (query, key) pairs of one head that causal and window leave visible. Keys that a mask hides are
  // counted, because they are scattered and no kernel can skip them.
  double pairs() const;
  // 2·D for q·k and 2·D for p·v of every pair; backward has five such products instead of two.
  double flops() const;
  double key_value_bytes() const;  // the size of all keys and values
};

// If kv_heads is empty, there are as many as heads; if keys is empty, as many as queries.
struct BenchSweep {
  std::vector<std::int64_t> batch{1};
  std::vector<std::int64_t> heads{8};
  std::vector<std::int64_t> kv_heads;
  std::vector<std::int64_t> queries{2048};
  std::vector<std::int64_t> keys;
  std::vector<std::int64_t> dim{128};
  std::vector<DType> dtype{DType::f32};
  std::vector<bool> causal{false};
  std::vector<Window> window{Window{}};
  std::vector<BenchMask> mask{BenchMask::none};
  std::vector<BenchWeights> weights{BenchWeights::none};
  std::vector<std::int64_t> threads{1};
  bool backward = false;
};

// Throws std::invalid_argument on an invalid combination, such as 8 heads on 3 kv heads.
std::vector<BenchCase> cases_of(const BenchSweep& sweep);

}  // namespace rapt::bench
