// A mask's part for one tile: one row for each key, one lane for each row of the tile, as f32 (bool: 0 or 1).
#if defined(RAPT_CPU_MASK_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_MASK_TILE_INL_H
#undef RAPT_CPU_MASK_TILE_INL_H
#else
#define RAPT_CPU_MASK_TILE_INL_H
#endif

#include <cstring>

#include "cpu/convert.h"
#include "cpu/rows.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// Where each lane's row of the mask begins: the element for key `first` of the sequence.
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

// Elements 4k … 4k + 3 of each lane's row at once, where they lie side by side: f32 through a transpose, bool as one
// 32-bit word for each row.
HWY_INLINE void LoadFourKeysF32(const MaskRows& mask, std::int64_t key, std::int64_t v, float* HWY_RESTRICT tile) {
  const float* rows[kLanes];
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    rows[lane] = static_cast<const float*>(mask.view.data()) + mask.offset[static_cast<std::size_t>(v * kLanes + lane)];
  }
  Vec c0, c1, c2, c3;
  LoadFourColumns(rows, key, c0, c1, c2, c3);
  Store(c0, tile), Store(c1, tile + kTileRows), Store(c2, tile + 2 * kTileRows), Store(c3, tile + 3 * kTileRows);
}

HWY_INLINE void LoadFourKeysBool(const MaskRows& mask, std::int64_t key, std::int64_t v, float* HWY_RESTRICT tile) {
  HWY_ALIGN std::uint32_t words[kLanes];
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    const auto* row = static_cast<const std::uint8_t*>(mask.view.data());
    std::memcpy(&words[lane], row + mask.offset[static_cast<std::size_t>(v * kLanes + lane)] + key, 4);
  }
  const U32 u32;
  const auto word = hn::Load(u32, words);
  const auto as_float = [&](auto bytes) {
    return hn::ConvertTo(kF32, hn::BitCast(I32(), hn::And(bytes, hn::Set(u32, 1U))));
  };
  Store(as_float(word), tile);
  Store(as_float(hn::ShiftRight<8>(word)), tile + kTileRows);
  Store(as_float(hn::ShiftRight<16>(word)), tile + 2 * kTileRows);
  Store(as_float(hn::ShiftRight<24>(word)), tile + 3 * kTileRows);
}

// Keys first … first + count − 1 of a mask into `tile`, rows kTileRows apart.
inline void LoadMaskTile(const Mask& mask, const TileRows& rows, std::int64_t first, std::int64_t count,
                         float* HWY_RESTRICT tile) {
  const MaskRows source(mask, rows, first);
  const ConstTensorView& view = mask.view;
  const std::int64_t lanes = rows.vectors * kLanes;
  const auto element = [&](std::int64_t lane, std::int64_t key) {
    return static_cast<float>(
        load(view.data(), view.dtype(), source.offset[static_cast<std::size_t>(lane)] + key * view.stride(3)));
  };

  if (source.same) {  // such as a padding mask
    for (std::int64_t key = 0; key < count; ++key) std::fill_n(tile + key * kTileRows, lanes, element(0, key));
    return;
  }
  std::int64_t key = 0;
  if (view.stride(3) == 1 && (view.dtype() == DType::f32 || view.dtype() == DType::boolean)) {
    for (; key + 4 <= count; key += 4) {
      for (std::int64_t v = 0; v < rows.vectors; ++v) {
        float* to = tile + key * kTileRows + v * kLanes;
        if (view.dtype() == DType::f32) {
          LoadFourKeysF32(source, key, v, to);
        } else {
          LoadFourKeysBool(source, key, v, to);
        }
      }
    }
  }
  for (; key < count; ++key) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) tile[key * kTileRows + lane] = element(lane, key);
  }
}

// What a bool mask leaves of keys [range): the part outside which no row sees a key, and whether every row sees all of
// it.
struct MaskedSpan {
  KeyRange range;
  bool full = false;
};

inline MaskedSpan VisibleSpan(const Mask& mask, const TileRows& rows, KeyRange range) {
  const MaskRows source(mask, rows, range.first);
  if (mask.view.stride(3) != 1) return {range, false};
  const auto* data = static_cast<const std::uint8_t*>(mask.view.data());
  const std::uint8_t seen = mask.kind == Mask::Kind::keep ? 1 : 0;
  const std::int64_t count = range.last - range.first;
  const std::int64_t lanes = source.same ? 1 : rows.count;
  std::int64_t first = count;
  std::int64_t last = 0;
  bool full = true;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::uint8_t* row = data + source.offset[static_cast<std::size_t>(lane)];
    const auto* hidden = static_cast<const std::uint8_t*>(std::memchr(row, 1 - seen, static_cast<std::size_t>(count)));
    full = full && hidden == nullptr;
    const auto* visible = static_cast<const std::uint8_t*>(std::memchr(row, seen, static_cast<std::size_t>(count)));
    if (visible == nullptr) continue;
    first = std::min(first, static_cast<std::int64_t>(visible - row));
    std::int64_t end = count;
    while (end > last && row[end - 1] != seen) --end;
    last = std::max(last, end);
  }
  return {{range.first + first, range.first + std::max(first, last)}, full};
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
