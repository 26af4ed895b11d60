// The two products for few rows, as in decoding, where reading K and V dominates: each is streamed once, in order.
//
// With rows in lanes, most lanes would be empty. So scores are computed with keys in lanes, and p·V with columns in
// lanes. Each element is the same chain of multiply-adds as for many rows, so its bits are the same.
//
// Everything else, queries (D, kRows) and scores (rows, kScoreRow), is kept small, because prefetched lines must stay
// in L1 until they are read.
#if defined(RAPT_CPU_DECODE_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_DECODE_PRODUCTS_INL_H
#undef RAPT_CPU_DECODE_PRODUCTS_INL_H
#else
#define RAPT_CPU_DECODE_PRODUCTS_INL_H
#endif

#include "cpu/convert-inl.h"
#include "cpu/decode/prefetch.h"
#include "cpu/kernel_table.h"
#include "cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// The maximum number of rows of this path: those of a tile, in whole groups of eight, but at least eight.
constexpr std::int64_t kDecodeRows = HWY_MAX(kTileRows / 8 * 8, 8);

// The row stride of scores. The last vector of scores may extend past the chunk.
constexpr std::int64_t kScoreRow = kChunk + 16;

// Keys are processed in blocks of this size; pages hold a multiple of it.
constexpr std::int64_t kKeyBlock = 16;

// The number of chunks whose keys are read before their values.
constexpr std::int64_t kChunksAtOnce = 8;

// The number of rows of v that are processed together.
constexpr int kValuesAtOnce = 8;

// The maximum number of keys that one prefetcher covers.
constexpr std::int64_t kRun = 256;

// Each lane holds two 16-bit numbers, the first in its lower half.
HWY_INLINE Vec FirstBf16(Vec pair) { return hn::BitCast(kF32, hn::ShiftLeft<16>(hn::BitCast(U32(), pair))); }
HWY_INLINE Vec SecondBf16(Vec pair) {
  return hn::BitCast(kF32, hn::And(hn::BitCast(U32(), pair), hn::Set(U32(), 0xFFFF0000U)));
}

// ---------------------------------------------------------------- scores

// How kLanes rows of one type become columns: kStep columns from d on are prepared together, and then taken one at a
// time, row n in lane n.
template <class T>
struct KeyColumns;

template <>
struct KeyColumns<float> {
  static constexpr int kStep = 4;
  HWY_INLINE KeyColumns(const float* const* rows, std::int64_t d) {
    LoadFourColumns(rows, d, parts[0], parts[1], parts[2], parts[3]);
  }
  HWY_INLINE Vec operator[](int n) const { return parts[n]; }

  Vec parts[4];
};

template <>
struct KeyColumns<bfloat16> {  // a pair moves as one number of 32 bits
  static constexpr int kStep = 8;
  HWY_INLINE KeyColumns(const bfloat16* const* rows, std::int64_t d) {
    const float* from[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) from[n] = reinterpret_cast<const float*>(rows[n] + d);
    LoadFourColumns(from, 0, parts[0], parts[1], parts[2], parts[3]);
  }
  HWY_INLINE Vec operator[](int n) const { return n % 2 == 0 ? FirstBf16(parts[n / 2]) : SecondBf16(parts[n / 2]); }

  Vec parts[4];
};

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
template <>
struct KeyColumns<float16> {  // transposed as f16, so that one instruction converts a column
  static constexpr int kStep = 8;
  HWY_INLINE KeyColumns(const float16* const* rows, std::int64_t d) {
    const U16 u16;
    VecU16 a[8], b[8];
    for (int n = 0; n < 8; ++n) a[n] = LoadEveryEighth(rows + n, d);
    for (int n = 0; n < 4; ++n) {
      b[2 * n] = hn::InterleaveLower(u16, a[n], a[n + 4]);
      b[2 * n + 1] = hn::InterleaveUpper(u16, a[n], a[n + 4]);
    }
    for (int n = 0; n < 4; ++n) {
      parts[2 * n] = hn::InterleaveLower(u16, b[n], b[n + 4]);
      parts[2 * n + 1] = hn::InterleaveUpper(u16, b[n], b[n + 4]);
    }
  }
  HWY_INLINE Vec operator[](int n) const {
    const U16 u16;
    const VecU16 &a = parts[n / 2], &b = parts[n / 2 + 4];
    return FromF16(n % 2 == 0 ? hn::InterleaveLower(u16, a, b) : hn::InterleaveUpper(u16, a, b));
  }

  VecU16 parts[8];

 private:
  // Eight elements of a row and, with 16 lanes, eight of the row that is eight rows further.
  static HWY_INLINE VecU16 LoadEveryEighth(const float16* const* rows, std::int64_t d) {
    const hn::Full128<std::uint16_t> block;
    const auto low = hn::LoadU(block, reinterpret_cast<const std::uint16_t*>(rows[0] + d));
#if HWY_MAX_BYTES == 32
    return low;
#else
    return hn::Combine(U16(), hn::LoadU(block, reinterpret_cast<const std::uint16_t*>(rows[8] + d)), low);
#endif
  }
};
#endif

template <>
struct KeyColumns<std::int8_t> {  // four numbers move as one 32-bit word; the caller applies the scale
  static constexpr int kStep = 16;
  HWY_INLINE KeyColumns(const std::int8_t* const* rows, std::int64_t d) {
    const float* from[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) from[n] = reinterpret_cast<const float*>(rows[n] + d);
    LoadFourColumns(from, 0, parts[0], parts[1], parts[2], parts[3]);
  }
  HWY_INLINE Vec operator[](int n) const {
    const auto four = hn::BitCast(I32(), parts[n / 4]);
    switch (n % 4) {
      case 0: return hn::ConvertTo(kF32, hn::ShiftRight<24>(hn::ShiftLeft<24>(four)));
      case 1: return hn::ConvertTo(kF32, hn::ShiftRight<24>(hn::ShiftLeft<16>(four)));
      case 2: return hn::ConvertTo(kF32, hn::ShiftRight<24>(hn::ShiftLeft<8>(four)));
      default: return hn::ConvertTo(kF32, hn::ShiftRight<24>(four));
    }
  }

  Vec parts[4];
};

// f16 is read in columns only on x86 and only where an instruction converts it; elsewhere its rows are converted first.
template <class T>
constexpr bool kHasKeyColumns = !std::is_same_v<T, float16> || (HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86);

// The number of groups of kLanes keys that are processed together, so that several independent chains hide the FMA
// latency.
template <int kRows>
constexpr int kKeyGroups = kRows > 4 || (kRows == 4 && kLanes == 16) ? 1 : 2;

// int8 numbers are multiplied by the dequantization scale of their row, rounded once; other types have no scales.
template <class T>
constexpr bool kScaled = std::is_same_v<T, std::int8_t>;

// Scores of kRows queries with the kLanes keys at `rows` and, if kGroups is 2, with kLanes more keys `group` elements
// further on. q is (D, kRows); `scales` has one number for each key.
template <class T, int kRows, int kGroups>
HWY_INLINE void DecodeKeyScores(const float* HWY_RESTRICT q, std::int64_t head_size, const T* const* rows,
                                std::int64_t group, const float* HWY_RESTRICT scales, Prefetcher& prefetcher,
                                float* HWY_RESTRICT s) {
  constexpr int kStep = KeyColumns<T>::kStep;
  Columns<kRows> first, second;  // of the first kLanes keys, and of the others
  for (int r = 0; r < kRows; ++r) first[r] = second[r] = hn::Zero(kF32);
  Vec first_scale = hn::Zero(kF32), second_scale = first_scale;
  if constexpr (kScaled<T>) {
    first_scale = hn::LoadU(kF32, scales);
    if constexpr (kGroups > 1) second_scale = hn::LoadU(kF32, scales + kLanes);
  }
  const auto scaled = [](Vec column, Vec scale) HWY_ATTR {
    if constexpr (kScaled<T>) return hn::Mul(column, scale);
    return column;
  };
  std::int64_t d = 0;
  for (; d + kStep <= head_size; d += kStep, q += kStep * kRows) {
    prefetcher.fetch<static_cast<int>(HWY_MAX(kGroups * kLanes * 16 / Prefetcher::kLine, 1))>();
    const KeyColumns<T> a(rows, d);
    const KeyColumns<T> b(rows, kGroups > 1 ? d + group : d);
    HWY_UNROLL(16)
    for (int n = 0; n < kStep; ++n) {
      const Vec first_column = scaled(a[n], first_scale);
      const Vec second_column = scaled(b[n], second_scale);
      for (int r = 0; r < kRows; ++r) {
        const Vec factor = Set(q[n * kRows + r]);
        first[r] = hn::MulAdd(factor, first_column, first[r]);
        if constexpr (kGroups > 1) second[r] = hn::MulAdd(factor, second_column, second[r]);
      }
    }
  }
  const auto add_one = [&](std::int64_t place, Vec scale, Columns<kRows>& sums) HWY_ATTR {
    HWY_ALIGN float column[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) column[n] = static_cast<float>(rows[n][place]);
    for (int r = 0; r < kRows; ++r) sums[r] = hn::MulAdd(Set(q[r]), scaled(Load(column), scale), sums[r]);
  };
  for (; d < head_size; ++d, q += kRows) {
    add_one(d, first_scale, first);
    if constexpr (kGroups > 1) add_one(d + group, second_scale, second);
  }
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(first[r], kF32, s + r * kScoreRow);
    if constexpr (kGroups > 1) hn::StoreU(second[r], kF32, s + r * kScoreRow + kLanes);
  }
}

// Scores of kRows queries with `count` keys, a multiple of kKeyBlock, `stride` apart: s is (kRows, kScoreRow).
template <class T, int kRows>
HWY_NOINLINE void DecodeScores(const float* q, std::int64_t head_size, const T* keys, std::int64_t stride,
                               const float* scales, std::int64_t count, Prefetcher prefetcher, float* s) {
  const T* rows[kLanes];
  for (std::int64_t n = 0; n < kLanes; ++n) rows[n] = keys + n * stride;
  std::int64_t j = 0;
  const auto score = [&](auto groups) HWY_ATTR {
    constexpr std::int64_t kKeys = groups() * kLanes;
    for (; j + kKeys <= count; j += kKeys) {
      const float* scales_here = kScaled<T> ? scales + j : nullptr;
      DecodeKeyScores<T, kRows, groups()>(q, head_size, rows, kLanes * stride, scales_here, prefetcher, s + j);
      for (const T*& row : rows) row += kKeys * stride;
    }
  };
  if constexpr (kKeyGroups < kRows >> 1) score(std::integral_constant<int, 2>());
  if constexpr (kKeyGroups<kRows> == 1 || 2 * kLanes > kKeyBlock) score(std::integral_constant<int, 1>());
}

// Turns scores into weights, as Weights does, but with keys in lanes; `max` and `sum` receive those of each row.
template <int kRows>
HWY_NOINLINE void DecodeWeights(std::int64_t count, float* HWY_RESTRICT s, float* HWY_RESTRICT max,
                                float* HWY_RESTRICT sum) {
  const std::int64_t padded = RoundUp(count, kLanes);
  Columns<kRows> finite;
  float total[static_cast<std::size_t>(kRows)] = {};
  for (int r = 0; r < kRows; ++r) {
    float* row = s + r * kScoreRow;
    std::fill(row + count, row + padded, -std::numeric_limits<float>::infinity());
    Vec largest = NegativeInfinity();
    for (std::int64_t j = 0; j < padded; j += kLanes) largest = hn::Max(largest, hn::LoadU(kF32, row + j));
    largest = hn::MaxOfLanes(kF32, largest);
    max[r] = hn::GetLane(largest);
    finite[r] = Finite(largest);
  }
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    for (int r = 0; r < kRows; ++r) {
      float* place = s + r * kScoreRow + j;
      hn::StoreU(Exp(hn::Sub(hn::LoadU(kF32, place), finite[r])), kF32, place);
    }
    // One chain for each row, keys ascending; past the last key 0 is added, which has no effect.
    for (std::int64_t n = j; n < j + kLanes; ++n) {
      for (int r = 0; r < kRows; ++r) total[r] += s[r * kScoreRow + n];
    }
  }
  for (int r = 0; r < kRows; ++r) sum[r] = total[r];
}

// ---------------------------------------------------------------- p · V

// How the columns of a row of one type are loaded into vectors. Two vectors that are loaded at once may hold alternate
// columns (zipped); the sums then stay in this order until the end of the chunk.
template <class T>
struct ValueColumns;

template <>
struct ValueColumns<float> {
  static constexpr bool kZipped = false;
  static HWY_INLINE Vec Load(const float* row) { return hn::LoadU(kF32, row); }
  static HWY_INLINE void LoadTwo(const float* row, Vec& a, Vec& b) { a = Load(row), b = Load(row + kLanes); }
};

template <>
struct ValueColumns<bfloat16> {
  static constexpr bool kZipped = true;
  static HWY_INLINE Vec Load(const bfloat16* row) {
    return FromBf16(hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(row)));
  }
  static HWY_INLINE void LoadTwo(const bfloat16* row, Vec& a, Vec& b) {
    const Vec pairs = hn::LoadU(kF32, reinterpret_cast<const float*>(row));
    a = FirstBf16(pairs), b = SecondBf16(pairs);
  }
};

template <>
struct ValueColumns<float16> {
  static constexpr bool kZipped = false;
  static HWY_INLINE Vec Load(const float16* row) {
    return FromF16(hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(row)));
  }
  static HWY_INLINE void LoadTwo(const float16* row, Vec& a, Vec& b) { a = Load(row), b = Load(row + kLanes); }
};

template <>
struct ValueColumns<std::int8_t> {
  static constexpr bool kZipped = false;
  static HWY_INLINE Vec Load(const std::int8_t* row) {
    const hn::Rebind<std::int8_t, F32> i8;  // a quarter of the bits, the same number of lanes
    return hn::ConvertTo(kF32, hn::PromoteTo(I32(), hn::LoadU(i8, row)));
  }
  static HWY_INLINE void LoadTwo(const std::int8_t* row, Vec& a, Vec& b) { a = Load(row), b = Load(row + kLanes); }
};

// o[r] += Σ_j p[r][j] · v_j for kRows rows and kKeys keys: kV vectors of columns from d on. The loads of each key are
// unrolled, because a load that steps from row to row would make the hardware prefetch the same columns of distant
// rows.
template <class T, int kRows, int kKeys, int kV>
HWY_INLINE void DecodeColumns(const float* HWY_RESTRICT p, const T* HWY_RESTRICT values, std::int64_t stride,
                              const float* HWY_RESTRICT scales, std::int64_t d, Prefetcher& prefetcher,
                              float* const* o) {
  Columns<kV> sums[static_cast<std::size_t>(kRows)];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kV; ++v) sums[r][v] = hn::LoadU(kF32, o[r] + d + v * kLanes);
  }
  constexpr auto kBytes = static_cast<int>(kV * kLanes * sizeof(T));
  HWY_UNROLL(8)
  for (int j = 0; j < kKeys; ++j) {
    // One line is prefetched for each line that has been read.
    if ((j + 1) * kBytes / Prefetcher::kLine > j * kBytes / Prefetcher::kLine)
      prefetcher.fetch<HWY_MAX(1, kBytes / Prefetcher::kLine)>();
    const T* row = values + j * stride + d;
    Columns<kV> columns;
    if constexpr (kV == 1) {
      columns[0] = ValueColumns<T>::Load(row);
    } else {
      for (int v = 0; v < kV; v += 2) ValueColumns<T>::LoadTwo(row + v * kLanes, columns[v], columns[v + 1]);
    }
    if constexpr (kScaled<T>) {
      for (int v = 0; v < kV; ++v) columns[v] = hn::Mul(columns[v], Set(scales[j]));
    }
    for (int r = 0; r < kRows; ++r) {
      const Vec weight = Set(p[r * kScoreRow + j]);
      for (int v = 0; v < kV; ++v) sums[r][v] = hn::MulAdd(weight, columns[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kV; ++v) hn::StoreU(sums[r][v], kF32, o[r] + d + v * kLanes);
  }
}

// The number of vectors of columns that are summed at once: enough independent chains to hide the FMA latency.
template <int kRows>
constexpr int kWideColumns = kRows <= 2 ? 4 : 2;

// Like DecodeColumns, but for all columns.
template <class T, int kRows, int kKeys>
HWY_INLINE void DecodeKeySums(const float* p, const T* values, std::int64_t stride, const float* scales,
                              std::int64_t size, Prefetcher& prefetcher, float* const* o) {
  constexpr int kWide = kWideColumns<kRows>;
  std::int64_t d = 0;
  for (; d + kWide * kLanes <= size; d += kWide * kLanes) {
    DecodeColumns<T, kRows, kKeys, kWide>(p, values, stride, scales, d, prefetcher, o);
  }
  for (; d + 2 * kLanes <= size; d += 2 * kLanes) {
    DecodeColumns<T, kRows, kKeys, 2>(p, values, stride, scales, d, prefetcher, o);
  }
  for (; d + kLanes <= size; d += kLanes)
    DecodeColumns<T, kRows, kKeys, 1>(p, values, stride, scales, d, prefetcher, o);
  const hn::CappedTag<float, 1> one;
  for (; d < size; ++d) {
    for (int r = 0; r < kRows; ++r) {
      auto sum = hn::LoadU(one, o[r] + d);
      for (std::int64_t j = 0; j < kKeys; ++j) {
        auto value = hn::Set(one, static_cast<float>(values[j * stride + d]));
        if constexpr (kScaled<T>) value = hn::Mul(value, hn::Set(one, scales[j]));
        sum = hn::MulAdd(hn::Set(one, p[r * kScoreRow + j]), value, sum);
      }
      hn::StoreU(sum, one, o[r] + d);
    }
  }
}

// Like DecodeKeySums, but for `count` keys, a multiple of kKeys.
template <class T, int kRows, int kKeys>
HWY_NOINLINE void DecodeWeightedSum(const float* p, const T* values, std::int64_t stride, const float* scales,
                                    std::int64_t count, std::int64_t size, Prefetcher prefetcher, float* const* o) {
  for (std::int64_t j = 0; j < count; j += kKeys, p += kKeys, values += kKeys * stride) {
    DecodeKeySums<T, kRows, kKeys>(p, values, stride, kScaled<T> ? scales + j : nullptr, size, prefetcher, o);
  }
}

// Puts columns into the order in which two vectors are loaded at once.
template <class T>
HWY_INLINE void Zip(std::int64_t size, float* o) {
  if constexpr (ValueColumns<T>::kZipped) {
    for (std::int64_t d = 0; d + 2 * kLanes <= size; d += 2 * kLanes) {
      Vec a, b;
      hn::LoadInterleaved2(kF32, o + d, a, b);
      Store(a, o + d), Store(b, o + d + kLanes);
    }
  }
}

// Puts columns back into their order.
template <class T>
HWY_INLINE void Unzip(std::int64_t size, float* o) {
  if constexpr (ValueColumns<T>::kZipped) {
    for (std::int64_t d = 0; d + 2 * kLanes <= size; d += 2 * kLanes) {
      hn::StoreInterleaved2(Load(o + d), Load(o + d + kLanes), kF32, o + d);
    }
  }
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
