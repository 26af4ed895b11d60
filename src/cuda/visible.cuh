// The keys that the causal mask, the window and the key length leave visible to a query, and the queries that see a
// key. Masks may hide more: terms.cuh.
#pragma once

#include <cstdint>

#include "cuda/arguments.h"

namespace rapt::cuda {

// Keys 0 … first_end − 1 and begin … end − 1, with first_end ≤ begin ≤ end. If the two ranges touch, the first is
// empty.
struct VisibleKeys {
  std::int32_t first_end = 0;
  std::int32_t begin = 0, end = 0;

  RAPT_HOST_DEVICE bool sees(std::int32_t j) const { return j < first_end || (j >= begin && j < end); }
  // Whether any of the keys from … to − 1 is visible.
  RAPT_HOST_DEVICE bool sees_any(std::int32_t from, std::int32_t to) const {
    return from < to && (from < first_end || (from < end && to > begin && begin < end));
  }
  // Whether all of the keys from … to − 1 are visible.
  RAPT_HOST_DEVICE bool sees_all(std::int32_t from, std::int32_t to) const {
    return to <= first_end || (from >= begin && to <= end);
  }
  RAPT_HOST_DEVICE bool sees_none() const { return first_end == 0 && begin == end; }
};

struct QueryRange {
  std::int32_t begin = 0, end = 0;
};

// The number in 0 … most that is nearest to `value`.
RAPT_HOST_DEVICE std::int32_t clamp_to(std::int64_t value, std::int32_t most) {
  return value < 0 ? 0 : value > most ? most : static_cast<std::int32_t>(value);
}

// The keys that query i of a sequence sees.
RAPT_HOST_DEVICE VisibleKeys visible_keys(const Arguments& call, const Sequence& sequence, std::int32_t i) {
  const std::int64_t position = std::int64_t{i} + sequence.offset;
  const std::int64_t first_end = position + call.right_of_first + 1;
  VisibleKeys keys;
  keys.first_end = clamp_to(first_end < call.first_keys ? first_end : call.first_keys, sequence.key_count);
  keys.end = clamp_to(position + call.right + 1, sequence.key_count);
  keys.begin = clamp_to(position - call.left, keys.end);
  if (keys.begin == keys.end) keys.begin = keys.end = keys.first_end;
  if (keys.begin <= keys.first_end) {
    keys.begin = 0;
    keys.end = keys.end < keys.first_end ? keys.first_end : keys.end;
    keys.first_end = 0;
  }
  return keys;
}

// The shortest range that contains every query of a sequence that sees at least one of the keys `from` to `to` − 1.
// Some queries in the range may see none of these keys; visible_keys says which. If no query sees them, the range need
// not be empty.
RAPT_HOST_DEVICE QueryRange visible_queries(const Arguments& call, const Sequence& sequence, std::int32_t from,
                                            std::int32_t to) {
  if (to > sequence.key_count) to = sequence.key_count;
  if (from >= to) return {};
  std::int64_t begin = std::int64_t{from} - call.right - sequence.offset;
  std::int64_t end = std::int64_t{to} + call.left - sequence.offset;
  if (from < call.first_keys) {
    const std::int64_t of_first = std::int64_t{from} - call.right_of_first - sequence.offset;
    begin = of_first < begin ? of_first : begin;
    end = sequence.query_count;
  }
  const std::int32_t last = clamp_to(end, sequence.query_count);
  return {clamp_to(begin, last), last};
}

// The number (for Arguments::sequence) of the last sequence that begins at row `l` of batch row `batch` or before it,
// or 0. `begin` selects the beginning of its queries or of its keys. Sequences are in ascending order, and an empty one
// may begin where the next one does.
RAPT_HOST_DEVICE std::int32_t last_begun(const Arguments& call, std::int32_t batch, std::int32_t l,
                                         std::int32_t Sequence::*begin) {
  std::int32_t low = 0, high = call.sequence_count - 1;
  while (low < high) {
    const std::int32_t middle = high - (high - low) / 2;
    const Sequence& sequence = call.sequence(middle);
    const bool after = sequence.batch > batch || (sequence.batch == batch && sequence.*begin > l);
    low = after ? low : middle;
    high = after ? middle - 1 : high;
  }
  return low;
}

// The sequence that row `query` of q belongs to. Each row of q belongs to one.
RAPT_HOST_DEVICE const Sequence& sequence_of_query(const Arguments& call, std::int32_t batch, std::int32_t query) {
  return call.sequence(last_begun(call, batch, query, &Sequence::query_begin));
}

// The sequence that row `key` of k and v belongs to; null if the row belongs to none.
RAPT_HOST_DEVICE const Sequence* sequence_of_key(const Arguments& call, std::int32_t batch, std::int32_t key) {
  if (call.sequence_count == 0) return nullptr;
  const Sequence& sequence = call.sequence(last_begun(call, batch, key, &Sequence::key_begin));
  const bool exists =
      sequence.batch == batch && key >= sequence.key_begin && key - sequence.key_begin < sequence.key_count;
  return exists ? &sequence : nullptr;
}

}  // namespace rapt::cuda
