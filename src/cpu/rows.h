// The rows of one tile: their heads, queries and visible keys, and the chunks of keys that they visit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "cpu/kernel_table.h"

namespace rapt::cpu {

// The chunks of keys that a set of rows visits, ascending. Arrays with one entry per chunk are indexed by the place in
// this list.
class ChunkList {
 public:
  ChunkList(std::int64_t leading_keys, KeyRange keys)
      : first_(keys.first / kChunk),
        last_((keys.last + kChunk - 1) / kChunk),
        leading_((leading_keys + kChunk - 1) / kChunk) {
    if (keys.first >= keys.last) first_ = last_ = leading_;
    if (leading_ > 0 && leading_ >= first_) first_ = 0, last_ = std::max(last_, std::exchange(leading_, 0));
  }

  std::int64_t count() const { return leading_ + last_ - first_; }
  std::int64_t operator[](std::int64_t place) const { return place < leading_ ? place : place - leading_ + first_; }
  bool contains(std::int64_t chunk) const { return chunk < leading_ || (chunk >= first_ && chunk < last_); }
  std::int64_t place_of(std::int64_t chunk) const { return chunk < leading_ ? chunk : chunk - first_ + leading_; }
  // How many of the `count` places from `place` on hold consecutive chunks.
  std::int64_t run(std::int64_t place, std::int64_t count) const {
    return place < leading_ ? std::min(count, leading_ - place) : count;
  }

 private:
  std::int64_t first_, last_;
  std::int64_t leading_;  // chunks 0 … leading − 1 come first, before a gap
};

// Leading keys and a range of keys, as few as possible, that contain every key that at least one of the added rows
// sees.
class SeenKeys {
 public:
  SeenKeys() = default;
  // For consecutive rows, from the visible keys of the first and the last row. These suffice, because both ends of a
  // row's visible range ascend with the row.
  SeenKeys(VisibleKeys of_first, VisibleKeys of_last)
      : range_{of_first.first, of_last.last}, leading_(std::max(of_first.leading, of_last.leading)) {}

  void add(VisibleKeys keys) { add(SeenKeys(keys, keys)); }
  void add(const SeenKeys& other) {
    leading_ = std::max(leading_, other.leading_);
    if (other.range_.first >= other.range_.last) return;
    if (range_.first >= range_.last) return void(range_ = other.range_);
    range_ = {std::min(range_.first, other.range_.first), std::max(range_.last, other.range_.last)};
  }

  // The shortest range that contains those of `keys` that are in the set.
  KeyRange within(KeyRange keys) const {
    const std::int64_t first = std::max(keys.first, range_.first);
    const std::int64_t last = std::min(keys.last, range_.last);
    if (!has_leading(keys)) return {first, std::max(first, last)};
    return {keys.first, std::max(first < last ? last : 0, std::min(keys.last, leading_))};
  }
  // Whether some of `keys` are leading keys. Rows see those wherever their window is, so the ends of the visible range
  // do not tell which rows see `keys`.
  bool has_leading(KeyRange keys) const { return keys.first < leading_; }
  KeyRange within_chunk(std::int64_t chunk) const { return within({chunk * kChunk, (chunk + 1) * kChunk}); }
  ChunkList chunks() const { return {leading_, range_}; }

 private:
  KeyRange range_{0, 0};
  std::int64_t leading_ = 0;
};

// The chunks that a block of rows visits.
inline ChunkList chunks_of(const AttentionProblem& problem, const SequenceSpan& sequence, std::int64_t first_query,
                           std::int64_t last_query) {
  return SeenKeys(problem.visible_keys(sequence, first_query), problem.visible_keys(sequence, last_query)).chunks();
}
inline ChunkList chunks_of(const AttentionProblem& problem, const RowBlock& block) {
  return chunks_of(problem, *block.sequence, block.first_row / problem.group,
                   (block.first_row + block.row_count - 1) / problem.group);
}
inline ChunkList chunks_of(const AttentionProblem& problem, const HeadRows& rows) {
  return chunks_of(problem, *rows.sequence, rows.first, rows.first + rows.count - 1);
}

struct TileRows {
  static constexpr std::int64_t kMax = 48;

  TileRows() = default;
  // Rows first … first + rows − 1 of a sequence and kv head.
  TileRows(const AttentionProblem& problem, const RowBlock& block, std::int64_t first, std::int64_t rows,
           std::int64_t lanes)
      : TileRows(problem, *block.sequence, rows, lanes,
                 [at = std::int64_t{0}, in_group = first % problem.group, i = first / problem.group,
                  group = problem.group, head = block.kv_head * problem.group](std::int64_t n) mutable {
                   for (; at < n; ++at) {  // n ascends, so no division per row is needed
                     if (++in_group < group) continue;
                     in_group = 0;
                     ++i;
                   }
                   return Row{head + in_group, i};
                 }) {}
  // Lanes hold consecutive queries of one head.
  TileRows(const AttentionProblem& problem, const HeadRows& block, std::int64_t lanes)
      : TileRows(problem, *block.sequence, block.count, lanes, [&](std::int64_t n) {
          return Row{block.head, block.first + n};
        }) {}
  // Lanes hold a list of queries of one head.
  TileRows(const AttentionProblem& problem, const QueryBlock& block, std::int64_t query_head, std::int64_t lanes)
      : TileRows(problem, *block.sequence, static_cast<std::int64_t>(block.queries.size()), lanes, [&](std::int64_t n) {
          return Row{query_head, block.queries[static_cast<std::size_t>(n)]};
        }) {}

  std::int64_t query(std::int64_t lane) const {
    return sequence->query_begin + i[static_cast<std::size_t>(lane)];  // as a row of q
  }
  // Whether every row sees all of these keys.
  bool all_see(KeyRange keys) const {
    return keys.last <= all_leading || (keys.first >= all.first && keys.last <= all.last);
  }
  // A range that contains those of `keys` that at least one of rows first … last sees: the shortest, unless some of
  // `keys` are leading keys.
  KeyRange seen_by(std::int64_t first, std::int64_t last, KeyRange keys) const {
    if (any.has_leading(keys)) return keys;
    return {std::max(keys.first, visible[static_cast<std::size_t>(first)].first),
            std::min(keys.last, visible[static_cast<std::size_t>(last)].last)};
  }

  const SequenceSpan* sequence = nullptr;
  std::int64_t count = 0;                  // rows that exist
  std::int64_t vectors = 0;                // of lanes; the last one may be padded
  SeenKeys any;                            // keys visible to at least one row
  KeyRange all{0, 0};                      // keys visible to every row
  std::int64_t all_leading = 0;            // and keys 0 … all_leading − 1, which every row sees too
  std::array<std::int64_t, kMax> i, head;  // for each lane; not set past the vectors in use
  std::array<VisibleKeys, kMax> visible;

 private:
  struct Row {
    std::int64_t head, i;
  };

  // Lanes past the last row repeat it, so that they read valid memory; their results are not stored.
  template <class RowOf>
  TileRows(const AttentionProblem& problem, const SequenceSpan& of, std::int64_t rows, std::int64_t lanes, RowOf row_of)
      : sequence(&of), count(rows), vectors((rows + lanes - 1) / lanes) {
    all = {0, AttentionProblem::kOpen};
    all_leading = AttentionProblem::kOpen;
    for (std::int64_t n = 0; n < vectors * lanes; ++n) {
      const auto lane = static_cast<std::size_t>(n);
      if (n >= rows && n > 0) {
        i[lane] = i[lane - 1], head[lane] = head[lane - 1], visible[lane] = visible[lane - 1];
        continue;
      }
      const Row row = row_of(std::min(n, rows - 1));
      i[lane] = row.i;
      head[lane] = row.head;
      const VisibleKeys range = visible[lane] = problem.visible_keys(of, row.i);
      any.add(range);
      all = {std::max(all.first, range.first), std::min(all.last, range.last)};
      all_leading = std::min(all_leading, range.leading);
    }
  }
};

// Finds the rows of a tile that may see a range of keys. Ranges must be passed in ascending order. Because both ends of
// a row's visible range ascend, the search continues where the last one ended.
class SeeingRows {
 public:
  explicit SeeingRows(const TileRows& rows) : rows_(rows) {}

  // Rows first … last − 1.
  KeyRange operator()(KeyRange keys) {
    if (rows_.any.has_leading(keys)) return {0, rows_.count};
    while (first_ < rows_.count && visible(first_).last <= keys.first) ++first_;
    while (last_ < rows_.count && visible(last_).first < keys.last) ++last_;
    return {first_, last_};
  }

 private:
  KeyRange visible(std::int64_t row) const { return rows_.visible[static_cast<std::size_t>(row)]; }

  const TileRows& rows_;
  std::int64_t first_ = 0, last_ = 0;
};

// Rows are in ascending order, so under a causal mask or a window each vector of rows sees its own range of keys, and
// both ends of these ranges ascend. `begin` and `end` count from the first key of `range`.
//
//     keys ->   . . # # # # # . . .     vector 0
//               . . . # # # # # # .     vector 1
//               . . . . # # # # # #     vector 2
struct Stretches {
  Stretches(const TileRows& rows, KeyRange range, std::int64_t lanes) {
    const auto relative = [&](std::int64_t key) { return std::clamp(key, range.first, range.last) - range.first; };
    for (std::int64_t v = 0; v < rows.vectors; ++v) {
      begin[v] = relative(rows.visible[static_cast<std::size_t>(v * lanes)].first);
      end[v] = relative(rows.visible[static_cast<std::size_t>((v + 1) * lanes - 1)].last);
    }
    if (begin[rows.vectors - 1] <= end[0] && !rows.any.has_leading(range)) return;
    // If the keys of the last vector begin after those of the first one end, or if there are leading keys, every vector
    // takes all keys.
    for (std::int64_t v = 0; v < rows.vectors; ++v) {
      begin[v] = 0;
      end[v] = range.last - range.first;
    }
  }

  std::int64_t begin[3]{}, end[3]{};
};

// The offset of (b, h, l) in a (B, H, L, …) tensor, in elements.
inline std::int64_t row_offset(const ConstTensorView& view, std::int64_t b, std::int64_t h, std::int64_t l) {
  return b * view.stride(0) + h * view.stride(1) + l * view.stride(2);
}

}  // namespace rapt::cpu
