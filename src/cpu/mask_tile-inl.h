// The part of a mask for one tile: one row per key, one lane per row of the tile, as f32 (bool: 0 or 1).
#if defined(RAPT_CPU_MASK_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_MASK_TILE_INL_H
#undef RAPT_CPU_MASK_TILE_INL_H
#else
#define RAPT_CPU_MASK_TILE_INL_H
#endif

#include <cstring>

#include "cpu/convert-inl.h"
#include "cpu/rows.h"
#include "cpu/vectors-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// The start of each lane's row of the mask: the element for key `first` of the sequence.
struct MaskRows {
  MaskRows(const Mask& mask, const TileRows& rows, std::int64_t first) : view(mask.view) {
    const std::int64_t key = (rows.sequence->key_begin + first) * view.stride(3);
    for (std::int64_t n = 0; n < rows.vectors * kLanes; ++n) {
      const auto lane = static_cast<std::size_t>(n);
      offset[lane] = row_offset(view, rows.sequence->batch, rows.head[lane], rows.query(n)) + key;
      same = same && offset[lane] == offset[0];
    }
  }

  const ConstTensorView& view;
  std::array<std::int64_t, TileRows::kMax> offset;
  bool same = true;  // all rows of the tile share one row of the mask
};

// Calls use(key, mask) for one vector of rows of a mask with contiguous keys, for whole groups of four keys; returns
// the number of keys done. f32 is transposed; bool is read as one 32-bit word of four keys for each row.
template <class Use>
HWY_INLINE std::int64_t ForKeysF32(const MaskRows& mask, std::int64_t lane, std::int64_t count, const Use& use) {
  const float* rows[kLanes];
  for (std::int64_t n = 0; n < kLanes; ++n) {
    rows[n] = static_cast<const float*>(mask.view.data()) + mask.offset[static_cast<std::size_t>(lane + n)];
  }
  return LoadColumns(rows, count, use);
}

template <class Use>
HWY_INLINE std::int64_t ForKeysBool(const MaskRows& mask, std::int64_t lane, std::int64_t count, const Use& use) {
  const std::uint8_t* rows[kLanes];
  for (std::int64_t n = 0; n < kLanes; ++n) {
    rows[n] = static_cast<const std::uint8_t*>(mask.view.data()) + mask.offset[static_cast<std::size_t>(lane + n)];
  }
  const U32 u32;
  const auto as_float = [&](auto bytes) HWY_ATTR {
    const auto byte = hn::BitCast(I32(), hn::And(bytes, hn::Set(u32, 0xFFU)));
    return hn::ConvertTo(kF32, hn::Min(byte, hn::Set(I32(), 1)));
  };
  std::int64_t key = 0;
  for (; key + 4 <= count; key += 4) {
    HWY_ALIGN std::uint32_t words[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) std::memcpy(&words[n], rows[n] + key, 4);
    const auto word = hn::Load(u32, words);
    use(key, as_float(word));
    use(key + 1, as_float(hn::ShiftRight<8>(word)));
    use(key + 2, as_float(hn::ShiftRight<16>(word)));
    use(key + 3, as_float(hn::ShiftRight<24>(word)));
  }
  return key;
}

// Calls use(key, lane, mask) for keys first … first + count − 1 and each vector of rows. `key` counts from `first`, and
// `mask` is f32, with 0 or 1 for bool.
template <class Use>
HWY_INLINE void ForEachMaskVector(const Mask& mask, const TileRows& rows, std::int64_t first, std::int64_t count,
                                  const Use& use) {
  const MaskRows source(mask, rows, first);
  const ConstTensorView& view = mask.view;
  const std::int64_t lanes = rows.vectors * kLanes;
  const auto element = [&](std::int64_t lane, std::int64_t key) {
    return static_cast<float>(
        load(view.data(), view.dtype(), source.offset[static_cast<std::size_t>(lane)] + key * view.stride(3)));
  };

  if (source.same) {  // such as a padding mask
    for (std::int64_t key = 0; key < count; ++key) {
      const Vec all = Set(element(0, key));
      for (std::int64_t lane = 0; lane < lanes; lane += kLanes) use(key, lane, all);
    }
    return;
  }
  for (std::int64_t lane = 0; lane < lanes; lane += kLanes) {
    const auto use_here = [&](std::int64_t key, Vec values) HWY_ATTR { use(key, lane, values); };
    std::int64_t key = 0;
    if (view.stride(3) == 1 && view.dtype() == DType::f32) key = ForKeysF32(source, lane, count, use_here);
    if (view.stride(3) == 1 && view.dtype() == DType::boolean) key = ForKeysBool(source, lane, count, use_here);
    for (; key < count; ++key) {
      HWY_ALIGN float values[kLanes];
      for (std::int64_t n = 0; n < kLanes; ++n) values[n] = element(lane + n, key);
      use_here(key, Load(values));
    }
  }
}

// Writes the mask's values to `tile`, with rows kTileRows apart.
HWY_NOINLINE inline void LoadMaskTile(const Mask& mask, const TileRows& rows, std::int64_t first, std::int64_t count,
                                      float* HWY_RESTRICT tile) {
  ForEachMaskVector(mask, rows, first, count, [&](std::int64_t key, std::int64_t lane, Vec values) HWY_ATTR {
    Store(values, tile + key * kTileRows + lane);
  });
}

// Prefetches a part of a mask; the scores are computed while it arrives. Its rows are short and far apart, so the
// hardware prefetcher does not help.
inline void PrefetchMask(const Mask& mask, const TileRows& rows, KeyRange range) {
  if (mask.view.stride(3) != 1) return;
  const MaskRows source(mask, rows, range.first);
  const auto bytes = static_cast<std::int64_t>(size_of(mask.view.dtype()));
  const std::int64_t lanes = source.same ? 1 : rows.count;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const auto* row =
        static_cast<const std::byte*>(mask.view.data()) + source.offset[static_cast<std::size_t>(lane)] * bytes;
    for (std::int64_t n = 0; n < (range.last - range.first) * bytes; n += 64) hwy::Prefetch(row + n);
  }
}

// What a bool mask leaves of some keys: outside `range` no row sees any of them; `full` if every row sees all of them.
struct MaskedSpan {
  KeyRange range;
  bool full = false;
};

// The first position from `begin` on with a zero (or nonzero) byte; `end` if there is none.
HWY_INLINE std::int64_t FindByte(const std::uint8_t* row, std::int64_t begin, std::int64_t end, bool zero) {
  for (; !zero && begin + 8 <= end; begin += 8) {  // eight bytes at once while all are zero
    std::uint64_t word = 0;
    std::memcpy(&word, row + begin, 8);
    if (word != 0) break;
  }
  if (zero && begin < end) {
    const void* found = std::memchr(row + begin, 0, static_cast<std::size_t>(end - begin));
    return found == nullptr ? end : static_cast<const std::uint8_t*>(found) - row;
  }
  while (begin < end && (row[begin] == 0) != zero) ++begin;
  return begin;
}

inline MaskedSpan VisibleSpan(const Mask& mask, const TileRows& rows, KeyRange range) {
  if (mask.view.stride(3) != 1) return {range, false};
  const MaskRows source(mask, rows, range.first);
  const auto* data = static_cast<const std::uint8_t*>(mask.view.data());
  const bool seen_is_zero = mask.kind == Mask::Kind::drop;
  const std::int64_t count = range.last - range.first;
  const std::int64_t lanes = source.same ? 1 : rows.count;
  std::int64_t first = count;
  std::int64_t last = 0;
  bool full = true;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::uint8_t* row = data + source.offset[static_cast<std::size_t>(lane)];
    full = full && FindByte(row, 0, count, !seen_is_zero) == count;
    const std::int64_t visible = FindByte(row, 0, count, seen_is_zero);
    if (visible == count) continue;
    first = std::min(first, visible);
    std::int64_t end = count;
    while (end > last && (row[end - 1] == 0) != seen_is_zero) --end;
    last = std::max(last, end);
  }
  return {{range.first + first, range.first + std::max(first, last)}, full};
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
