// The general variant: everything that happens to the scores of a step besides hiding ranges of keys, in the registers
// of a thread. These terms are softcap, additive masks, ALiBi, fill, keep and drop, in the order of rapt/attention.h,
// and dropout.
//
// A step has 64 keys here. Score i of a thread belongs to its row i / 2 % 2 (rows r and r + 8 of the fragment) and to
// key 8 (i / 4) + 2 · lane + i % 2 of the step, where `lane` counts within the quad.
#pragma once

#include "cuda/philox.cuh"
#include "cuda/rows_output.cuh"
#include "cuda/terms.cuh"

namespace rapt::cuda {

inline constexpr int kTermKeys = 64;
inline constexpr int kTermScores = kTermKeys / 2;  // of a thread

RAPT_DEVICE int size_of_mask(DType dtype) {
  return dtype == DType::f64 ? 8 : dtype == DType::f32 ? 4 : dtype == DType::bf16 || dtype == DType::f16 ? 2 : 1;
}

// The two rows of a thread, and the keys of a step.
struct TermRows {
  const Tile* tile;
  std::int32_t query[2], head[2];  // queries of the sequence; query heads of the tensors
  std::int32_t first_key;
  int lane;
  bool whole;  // all keys of the step exist

  TermRows() = default;
  RAPT_DEVICE TermRows(const RowsArguments& a, const Tile& of, std::int32_t key, int thread)
      : tile(&of), first_key(key), lane(thread % 4), whole(key + kTermKeys <= of.sequence.key_count) {
#pragma unroll
    for (int x = 0; x < 2; ++x) {  // rows that do not exist use the last query and head
      const TileRow at = tile_row(a.plan, of, thread_row(thread) + 8 * x);
      query[x] = of.first_query + (at.query < of.queries ? at.query : of.queries - 1);
      head[x] = of.head + (at.head < of.heads ? at.head : of.heads - 1);
    }
  }

  RAPT_DEVICE bool has_keys() const { return tile->sequence.key_count > 0; }
  // The offset of the mask element for the thread's row x and key `first_key`.
  RAPT_DEVICE std::int64_t offset(const MaskTerm& mask, int x) const {
    return row_offset(mask, tile->sequence, x == 0 ? head[0] : head[1], x == 0 ? query[0] : query[1]) +
           first_key * mask.view.element;
  }
  // The offset of the mask element for score i. A key that does not exist gets the offset of the last key, because its
  // score is hidden anyway.
  RAPT_DEVICE std::int64_t offset_of_score(const MaskTerm& mask, int i) const {
    const std::int32_t key = i / 4 * 8 + 2 * lane + i % 2, last = tile->sequence.key_count - 1 - first_key;
    return offset(mask, i / 2 % 2) + (key < last ? key : last) * mask.view.element;
  }
};

// Parts of two rows of a mask, read 16 bytes at a time, so that a warp reads whole sectors of 32 bytes. A lane thus
// also holds elements for other lanes' keys, until gather_columns or own_bits exchanges them. `fast`: 16-byte reads are
// possible, because all 64 elements of both rows exist and are contiguous and aligned. Only elements of one or two
// bytes are read into `parts`.
struct MaskRows {
  uint4 parts[4];
  bool fast;
};

RAPT_DEVICE MaskRows load_mask_rows(const MaskTerm& mask, const TermRows& rows) {
  MaskRows loaded;
  const int size = size_of_mask(mask.view.dtype);
  const std::byte* at[2];
#pragma unroll
  for (int x = 0; x < 2; ++x) {
    at[x] = static_cast<const std::byte*>(mask.view.data) + rows.offset(mask, x) * size;
  }
  const auto address = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); };
  loaded.fast =
      !any_lane(size > 4 || mask.view.element != 1 || !rows.whole || ((address(at[0]) | address(at[1])) & 15) != 0);
  if (loaded.fast && size <= 2) {
    const uint4* const first = reinterpret_cast<const uint4*>(at[0]) + rows.lane;
    const uint4* const second = reinterpret_cast<const uint4*>(at[1]) + rows.lane;
    loaded.parts[0] = first[0];
    loaded.parts[1] = second[0];
    if (size == 2) {
      loaded.parts[2] = first[4];
      loaded.parts[3] = second[4];
    }
  }
  return loaded;
}

// One bit for each of 16 bytes: whether the byte is not 0.
RAPT_DEVICE std::uint32_t truth_of_bytes(const uint4& bytes) {
  const auto nibble = [](std::uint32_t w) {
    const std::uint32_t high = (((w & 0x7F7F7F7F) + 0x7F7F7F7F) | w) >> 7 & 0x01010101;
    return high * 0x01020408 >> 24 & 15;
  };
  return nibble(bytes.x) | nibble(bytes.y) << 4 | nibble(bytes.z) << 8 | nibble(bytes.w) << 12;
}

// Each lane of a quad holds 16 of the 64 bits of a row (`sixteen`). Returns the bits of the lane's own keys: bits 4 j
// and 4 j + 1 are those of keys 8 j + 2 · lane and the next.
RAPT_DEVICE std::uint32_t own_bits(std::uint32_t sixteen, int lane) {
  std::uint32_t half = sixteen << (16 * (lane & 1));
  half |= __shfl_xor_sync(~0U, half, 1);
  const std::uint32_t other = __shfl_xor_sync(~0U, half, 2);
  const auto spread = [&](std::uint32_t keys) {  // of 32 keys
    const std::uint32_t mine = keys >> (2 * lane);
    return (mine & 0x3) | (mine >> 4 & 0x30) | (mine >> 8 & 0x300) | (mine >> 12 & 0x3000);
  };
  return lane < 2 ? spread(half) | spread(other) << 16 : spread(other) | spread(half) << 16;
}

// Bit i: whether the mask is true at score i.
RAPT_DEVICE std::uint32_t truth_of(const MaskTerm& mask, const TermRows& rows, const MaskRows& loaded) {
  if (loaded.fast && mask.view.dtype == DType::boolean) {
    return own_bits(truth_of_bytes(loaded.parts[0]), rows.lane) | own_bits(truth_of_bytes(loaded.parts[1]), rows.lane)
                                                                      << 2;
  }
  std::uint32_t bits = 0;
#pragma unroll 1
  for (int i = 0; i < kTermScores; ++i) bits |= is_true(mask, rows.offset_of_score(mask, i)) ? 1U << i : 0;
  return bits;
}

// s += mask. A mask element of −inf hides the key even if its score is NaN.
RAPT_DEVICE void add_mask_to(float (&s)[kTermScores], const MaskTerm& mask, const TermRows& rows,
                             const MaskRows& loaded) {
  const DType dtype = mask.view.dtype;
  if (loaded.fast && (dtype == DType::bf16 || dtype == DType::f16)) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {  // 32 keys from key 32 (part / 2) on, of row part % 2
      std::uint32_t w[4] = {loaded.parts[part].x, loaded.parts[part].y, loaded.parts[part].z, loaded.parts[part].w};
      (void)gather_columns(w, rows.lane);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int i = part / 2 * 16 + 4 * j + part % 2 * 2;
        const std::uint32_t low = w[j] & 0xFFFF, high = w[j] >> 16;
        s[i] = add_term(s[i], dtype == DType::bf16 ? Bf16::value(low) : F16::value(low));
        s[i + 1] = add_term(s[i + 1], dtype == DType::bf16 ? Bf16::value(high) : F16::value(high));
      }
    }
    return;
  }
  if (loaded.fast && dtype == DType::f32) {
#pragma unroll
    for (int x = 0; x < 2; ++x) {
      const float2* const pairs =
          reinterpret_cast<const float2*>(static_cast<const float*>(mask.view.data) + rows.offset(mask, x)) + rows.lane;
#pragma unroll
      for (int i = 2 * x; i < kTermScores; i += 4) {
        const float2 pair = pairs[i / 4 * 4];
        s[i] = add_term(s[i], pair.x);
        s[i + 1] = add_term(s[i + 1], pair.y);
      }
    }
    return;
  }
  // Few calls need this path, so the code is short rather than fast: one score at a time, selected from the registers.
#pragma unroll 1
  for (int i = 0; i < kTermScores; ++i) {
    float score = s[0];
#pragma unroll
    for (int n = 1; n < kTermScores; ++n) score = n == i ? s[n] : score;
    score = add_mask(score, mask, rows.offset_of_score(mask, i));
#pragma unroll
    for (int n = 0; n < kTermScores; ++n) s[n] = n == i ? score : s[n];
  }
}

// cap · tanh(s · scale / cap), where `to_exponent` is 2 · scale · log2 e / cap. It is computed with tanh(x) = 1 − 2 /
// (1 + e^2x), whose absolute error is about one rounding of f32.
RAPT_DEVICE float capped(float s, float to_exponent, float cap) {
  const float e = exp2_approx(__fmul_rn(s, to_exponent));
  return __fmaf_rn(-2.0F * cap, reciprocal_approx(__fadd_rn(1.0F, e)), cap);
}

// Steps 1 to 5 of rapt/attention.h for the products q·k of 64 keys. Keys that the causal mask, the window or the key
// length hides are hidden elsewhere (hide_keys). If kEarly, `early` holds the two rows of the first mask.
template <bool kEarly>
RAPT_DEVICE void apply_terms_to(const RowsArguments& a, float (&s)[kTermScores], const TermRows& rows,
                                const MaskRows& early) {
  const Arguments& call = a.call;
  if (call.softcap > 0.0F) {
    const float to_exponent = call.scale * (2.0F * kLog2E / call.softcap);
#pragma unroll
    for (int i = 0; i < kTermScores; ++i) s[i] = capped(s[i], to_exponent, call.softcap);
  } else {
#pragma unroll
    for (int i = 0; i < kTermScores; ++i) s[i] = __fmul_rn(s[i], call.scale);
  }
  std::uint32_t hidden = 0;
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {  // 0: additive masks; 1: ALiBi, then the other masks
    if (pass == 1 && call.has_alibi) {
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const float slope = -call.slope(rows.head[x]);
        const std::int64_t from = std::int64_t{rows.query[x]} + rows.tile->sequence.offset - rows.first_key;
        const float distance = static_cast<float>(from - 2 * rows.lane);
#pragma unroll
        for (int i = 2 * x; i < kTermScores; i += 4) {
          s[i] = __fmaf_rn(slope, fabsf(__fsub_rn(distance, static_cast<float>(i / 4 * 8))), s[i]);
          s[i + 1] = __fmaf_rn(slope, fabsf(__fsub_rn(distance, static_cast<float>(i / 4 * 8 + 1))), s[i + 1]);
        }
      }
    }
#pragma unroll 1
    for (std::int32_t n = 0; n < call.mask_count; ++n) {
      const MaskTerm& mask = call.mask(n);
      if ((mask.kind == MaskKind::add) != (pass == 0)) continue;
      const MaskRows loaded = kEarly && n == 0 ? early : load_mask_rows(mask, rows);
      if (mask.kind == MaskKind::add) {
        add_mask_to(s, mask, rows, loaded);
        continue;
      }
      const std::uint32_t truth = truth_of(mask, rows, loaded);
      if (mask.kind == MaskKind::fill) {
        const float value = static_cast<float>(mask.value);
#pragma unroll
        for (int i = 0; i < kTermScores; ++i) s[i] = (truth >> i & 1) != 0 ? value : s[i];
      } else {
        hidden |= mask.kind == MaskKind::drop ? truth : ~truth;
      }
    }
  }
  if (any_lane(hidden != 0)) {
#pragma unroll
    for (int i = 0; i < kTermScores; ++i) s[i] = (hidden >> i & 1) != 0 ? kHidden : s[i];
  }
}

// Which weights of the thread's two rows dropout keeps. In bits[x], for row x, bits 4 j + 2 (lane % 2) and the next are
// those of keys 8 j + 2 · lane and the next. One call of Philox serves four keys, which belong to two lanes: the even
// lane calls it for their first row, the odd lane for their second.
struct KeptWeights {
  std::uint32_t bits[2];
};
RAPT_DEVICE KeptWeights kept_weights(const RowsArguments& a, const TermRows& rows) {
  const DropoutTerm& dropout = a.call.dropout;
  const bool second = (rows.lane & 1) != 0;
  const std::int32_t query = second ? rows.query[1] : rows.query[0], head = second ? rows.head[1] : rows.head[0];
  std::uint32_t mine = 0;
#pragma unroll
  for (int j = 0; j < kTermKeys / 8; ++j) {
    const PhiloxWords four =
        dropout_words(dropout, rows.tile->sequence.index, head, query, rows.first_key + 8 * j + rows.lane / 2 * 4);
#pragma unroll
    for (int w = 0; w < 4; ++w) mine |= four.words[w] >= dropout.threshold ? 1U << (4 * j + w) : 0;
  }
  const std::uint32_t other = __shfl_xor_sync(~0U, mine, 1);
  return {{second ? other : mine, second ? mine : other}};
}

// Sets p of dropped weights to 0. The factor 1 / (1 − rate) of the other weights is applied to the finished row
// (store_tile).
RAPT_DEVICE void drop_weights(std::uint32_t (&p)[kTermKeys / 16][4], const KeptWeights& kept, int lane) {
#pragma unroll
  for (int x = 0; x < 2; ++x) {
    const std::uint32_t bits = kept.bits[x] >> (2 * (lane & 1));
#pragma unroll
    for (int j = 0; j < kTermKeys / 8; ++j) {
      const std::uint32_t low = (bits >> (4 * j) & 1) != 0 ? 0xFFFF : 0;
      const std::uint32_t high = (bits >> (4 * j + 1) & 1) != 0 ? 0xFFFF0000 : 0;
      p[j / 2][j % 2 * 2 + x] &= low | high;
    }
  }
}

// The terms of one step of keys: begin makes its random numbers and, if kEarly, reads its part of the first mask; apply
// and drop use them. In the variant without terms these functions do nothing.
template <bool kGeneral>
class StepTerms {
 public:
  template <bool kEarly>
  RAPT_DEVICE void begin(const RowsArguments& /*a*/, const Tile& /*tile*/, std::int32_t /*first_key*/) {}
  template <bool kEarly, int kScores>
  RAPT_DEVICE void apply(const RowsArguments& /*a*/, float (&/*s*/)[kScores]) {}
  template <int kRows>
  RAPT_DEVICE void drop(const RowsArguments& /*a*/, std::uint32_t (&/*p*/)[kRows][4]) const {}
};

template <>
class StepTerms<true> {
 public:
  template <bool kEarly>
  RAPT_DEVICE void begin(const RowsArguments& a, const Tile& tile, std::int32_t first_key) {
    rows_ = TermRows(a, tile, first_key, reread_thread());
    if (kEarly && a.call.mask_count > 0 && rows_.has_keys()) first_mask_ = load_mask_rows(a.call.mask(0), rows_);
    if (a.call.dropout.on) kept_ = kept_weights(a, rows_);
  }
  template <bool kEarly>
  RAPT_DEVICE void apply(const RowsArguments& a, float (&s)[kTermScores]) {
    if (rows_.has_keys()) apply_terms_to<kEarly>(a, s, rows_, first_mask_);
  }
  RAPT_DEVICE void drop(const RowsArguments& a, std::uint32_t (&p)[kTermKeys / 16][4]) const {
    if (a.call.dropout.on) drop_weights(p, kept_, reread_thread() % 4);
  }

 private:
  TermRows rows_;
  MaskRows first_mask_;
  KeptWeights kept_;
};

}  // namespace rapt::cuda
