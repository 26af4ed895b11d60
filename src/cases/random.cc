#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "cases/list.h"

namespace rapt::cases {

namespace {

// Mostly small, occasionally spanning several tiles.
std::int64_t length(Stream& stream) {
  if (stream.chance(0.05)) return 0;
  if (stream.chance(0.02)) return stream.integer(500, 1100);
  if (stream.chance(0.15)) return stream.integer(100, 300);
  return stream.integer(1, stream.chance(0.5) ? 20 : 70);
}

std::int64_t width(Stream& stream) {
  if (stream.chance(0.4)) return std::int64_t{8} << stream.integer(0, 4);
  if (stream.chance(0.02)) return stream.integer(200, 512);
  return stream.integer(1, stream.chance(0.1) ? 200 : 40);
}

DType storage(Stream& stream) {
  const double draw = stream.uniform();
  return draw < 0.4 ? DType::f32 : draw < 0.7 ? DType::bf16 : DType::f16;
}

// Few queries with a long cache, half of the time a single query. With more than 8 queries the cache is shorter, to
// keep the case small.
void draw_decoding(Stream& stream, CaseSpec& spec) {
  spec.query_heads = spec.kv_heads * stream.integer(1, 8);
  spec.queries = stream.chance(0.5) ? 1 : stream.integer(2, stream.chance(0.5) ? 8 : 64);
  const std::int64_t longest = spec.queries <= 8 ? 5000 : 1500;
  spec.keys = spec.queries + stream.integer(0, stream.chance(0.3) ? longest : 700);
}

std::vector<std::int64_t> starts(Stream& stream, std::int64_t total, std::int64_t sequences) {
  std::vector<std::int64_t> result = {0, total};
  while (static_cast<std::int64_t>(result.size()) < sequences + 1) result.push_back(stream.integer(0, total));
  std::sort(result.begin(), result.end());
  return result;
}

MaskSpec mask(Stream& stream) {
  MaskSpec spec;
  spec.kind = static_cast<Mask::Kind>(stream.integer(0, 3));
  spec.plane_only = stream.chance(0.3);
  spec.one_batch = stream.chance(0.4), spec.one_head = stream.chance(0.5);
  spec.one_query = stream.chance(0.2), spec.one_key = stream.chance(0.1);
  spec.chance = stream.chance(0.2) ? (stream.chance(0.5) ? 0.0 : 1.0) : stream.uniform();
  if (spec.kind == Mask::Kind::add) {
    constexpr double kSpecial[] = {0.0, 0.0, -1e9, -3.4028234663852886e38, -std::numeric_limits<double>::infinity()};
    spec.special = kSpecial[stream.integer(0, 4)];
    spec.dtype = storage(stream);
  } else if (spec.kind == Mask::Kind::fill) {
    constexpr double kValue[] = {-1e9, -3.4028234663852886e38, -std::numeric_limits<double>::infinity(), 0.5};
    spec.value = kValue[stream.integer(0, 3)];
  }
  return spec;
}

void draw_visibility(Stream& stream, CaseSpec& spec) {
  spec.causal = stream.chance(0.4);
  if (stream.chance(0.25)) spec.window.left = stream.integer(0, stream.chance(0.5) ? 4 : 200);
  if (stream.chance(0.15)) spec.window.right = stream.integer(0, stream.chance(0.5) ? 4 : 200);
  spec.alibi = stream.chance(0.15);
  switch (stream.integer(0, 3)) {
    case 0: spec.alignment = Alignment::bottom_right(); break;
    case 1: spec.alignment = Alignment::offset(stream.integer(-10, spec.keys + 5)); break;
    default: spec.alignment = Alignment::top_left(); break;
  }
  if (stream.chance(0.2)) {
    const std::int64_t sequences = stream.integer(1, 5);
    spec.batch = 1;
    spec.packed = {starts(stream, spec.queries, sequences), starts(stream, spec.keys, sequences)};
  }
  if (stream.chance(0.3)) {
    const bool packed = !spec.packed.key_starts.empty();
    const std::size_t rows = packed ? spec.packed.key_starts.size() - 1 : static_cast<std::size_t>(spec.batch);
    for (std::size_t n = 0; n < rows; ++n) {
      const std::int64_t keys = packed ? spec.packed.key_starts[n + 1] - spec.packed.key_starts[n] : spec.keys;
      spec.key_lengths.push_back(stream.integer(0, keys));
    }
  }
}

Selection selection(Stream& stream, const CaseSpec& spec) {
  Selection of;
  of.mean_over_heads = stream.chance(0.4);
  if (stream.chance(0.4) && spec.query_heads > 0) {
    for (std::int64_t n = stream.integer(1, 3); n > 0; --n) of.heads.push_back(stream.integer(0, spec.query_heads - 1));
  }
  if (stream.chance(0.4) && spec.queries > 0) {
    for (std::int64_t n = stream.integer(1, 4); n > 0; --n) of.queries.push_back(stream.integer(0, spec.queries - 1));
  }
  return of;
}

// The remaining integer fields of a window, each from its own stream, so that a new field changes no draw of another
// field.
void draw_other_fields(std::uint64_t seed, CaseSpec& spec) {
  std::uint32_t number = 200;
  for_each_field(spec.window, [&](std::string_view, auto& field) {
    ++number;
    if constexpr (std::is_same_v<decltype(field), std::int64_t&>) {
      Stream stream(seed, number);
      if (stream.chance(0.3)) field = stream.integer(0, stream.chance(0.5) ? 4 : 300);
    }
  });
}

}  // namespace

CaseSpec random_case(std::uint64_t seed) {
  Stream stream(seed, 99);
  CaseSpec spec;
  spec.name = "Random" + std::to_string(seed);
  spec.seed = seed;
  spec.batch = stream.chance(0.03) ? 0 : stream.integer(1, 3);
  spec.kv_heads = stream.integer(1, 3);
  spec.query_heads = spec.kv_heads * stream.integer(1, stream.chance(0.5) ? 1 : 4);
  spec.queries = length(stream);
  spec.keys = stream.chance(0.4) ? spec.queries : length(stream);
  const bool decoding = stream.chance(0.3);
  if (decoding) draw_decoding(stream, spec);
  spec.head_size = width(stream);
  spec.value_size = stream.chance(0.7) ? spec.head_size : width(stream);
  spec.query_type = storage(stream);
  spec.kv_type = stream.chance(0.5) ? spec.query_type : storage(stream);
  spec.layout = static_cast<MemoryLayout>(stream.integer(0, 6));
  spec.spread = stream.chance(0.2) ? 4.0 : stream.chance(0.1) ? 0.01 : 1.0;
  spec.has_scale = stream.chance(0.2);
  spec.scale = (2.0 * stream.uniform() - 1.0) / std::sqrt(static_cast<double>(spec.head_size));
  spec.softcap = stream.chance(0.15) ? 0.5 + 30.0 * stream.uniform() : 0.0;
  draw_visibility(stream, spec);
  draw_other_fields(seed, spec);
  if (decoding && stream.chance(0.7)) spec.alignment = Alignment::bottom_right();
  for (std::int64_t n = stream.chance(0.5) ? 0 : stream.integer(1, 3); n > 0; --n) spec.masks.push_back(mask(stream));
  spec.sinks = stream.chance(0.15);
  if (stream.chance(0.2)) {
    spec.dropout = {.rate = stream.uniform() * 0.9, .seed = seed * 77, .head_start = stream.integer(0, 5)};
    // Taken from the seed instead of drawn, so that the later draws of a seed stay the same.
    spec.dropout.batch_start = static_cast<std::int64_t>(seed % 5);
    spec.dropout.query_start = static_cast<std::int64_t>(seed % 7);
  }
  spec.lse = stream.chance(0.7);
  for (std::int64_t n = stream.chance(0.5) ? 0 : stream.integer(1, 3); n > 0; --n) {
    spec.captures.emplace_back(static_cast<Stage>(stream.integer(0, 4)), selection(stream, spec));
  }
  spec.narrow_weights = stream.chance(0.5);
  if (stream.chance(0.13)) spec.kv_type = DType::i8;
  const std::int64_t page_size = std::int64_t{16} << stream.integer(0, 5);
  if (stream.chance(0.25) && spec.packed.key_starts.empty()) spec.put_in_pages(page_size);
  return spec;
}

}  // namespace rapt::cases
