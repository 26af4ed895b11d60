// The rows of one tile: their heads, queries and visible keys.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "cpu/kernel_table.h"

namespace rapt::cpu {

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
  // Consecutive queries of one head.
  TileRows(const AttentionProblem& problem, const HeadRows& block, std::int64_t lanes)
      : TileRows(problem, *block.sequence, block.count, lanes, [&](std::int64_t n) {
          return Row{block.head, block.first + n};
        }) {}
  // Some queries of one head.
  TileRows(const AttentionProblem& problem, const QueryBlock& block, std::int64_t query_head, std::int64_t lanes)
      : TileRows(problem, *block.sequence, static_cast<std::int64_t>(block.queries.size()), lanes, [&](std::int64_t n) {
          return Row{query_head, block.queries[static_cast<std::size_t>(n)]};
        }) {}

  std::int64_t query(std::int64_t lane) const {
    return sequence->query_begin + i[static_cast<std::size_t>(lane)];  // as a row of q
  }

  const SequenceSpan* sequence = nullptr;
  std::int64_t count = 0;                  // rows that exist
  std::int64_t vectors = 0;                // of lanes, the last one possibly padded
  KeyRange any{0, 0};                      // keys visible to at least one row
  KeyRange all{0, 0};                      // keys visible to every row
  std::array<std::int64_t, kMax> i, head;  // for each lane; not set past the vectors in use
  std::array<KeyRange, kMax> visible;

 private:
  struct Row {
    std::int64_t head, i;
  };

  // Lanes past the last row repeat it, so that they read valid memory; their results are not stored.
  template <class RowOf>
  TileRows(const AttentionProblem& problem, const SequenceSpan& of, std::int64_t rows, std::int64_t lanes, RowOf row_of)
      : sequence(&of), count(rows), vectors((rows + lanes - 1) / lanes) {
    any = {AttentionProblem::kOpen, 0};
    all = {0, AttentionProblem::kOpen};
    for (std::int64_t n = 0; n < vectors * lanes; ++n) {
      const auto lane = static_cast<std::size_t>(n);
      if (n >= rows && n > 0) {
        i[lane] = i[lane - 1], head[lane] = head[lane - 1], visible[lane] = visible[lane - 1];
        continue;
      }
      const Row row = row_of(std::min(n, rows - 1));
      i[lane] = row.i;
      head[lane] = row.head;
      const KeyRange range = visible[lane] = problem.visible_keys(of, row.i);
      if (range.first < range.last) any = {std::min(any.first, range.first), std::max(any.last, range.last)};
      all = {std::max(all.first, range.first), std::min(all.last, range.last)};
    }
    if (any.last == 0) any.first = 0;
  }
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
    if (begin[rows.vectors - 1] <= end[0]) return;
    for (std::int64_t v = 0; v < rows.vectors; ++v) {  // no key is visible to all: use all keys for each
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
