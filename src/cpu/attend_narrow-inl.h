// Attention for a block of few rows, as in decoding: the same steps, with the products of narrow-inl.h.
#if defined(RAPT_CPU_ATTEND_NARROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ATTEND_NARROW_INL_H
#undef RAPT_CPU_ATTEND_NARROW_INL_H
#else
#define RAPT_CPU_ATTEND_NARROW_INL_H
#endif

#include "cpu/cache_rows.h"
#include "cpu/finish-inl.h"
#include "cpu/masked_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// With tiles narrower than that (one lane), there is nothing to gain.
inline bool IsNarrow(const RowBlock& block) { return kTileRows >= kNarrowRows && block.row_count <= kNarrowRows; }

// Calls run with an element of the type in which a tensor's rows are read where they lie; false if they must be
// converted first.
template <class Run>
bool WithTypeInPlace(const ConstTensorView& view, const Run& run) {
  if (view.stride(3) != 1) return false;
  switch (view.dtype()) {
    case DType::f32: run(float()); return true;
    case DType::bf16: run(bfloat16()); return true;
    case DType::f16: run(float16()); return true;
    default: return false;
  }
}

// Scores of all rows with keys [order.range): s is (keys, kTileRows).
template <int kRows>
void NarrowChunkScores(const float* q, std::int64_t head_size, const ReadingOrder& order, float* memory, float* s) {
  const CacheRows& keys = order.now;
  const std::int64_t stride = keys.view().stride(2);
  std::int64_t j = order.range.first;
  WithTypeInPlace(keys.view(), [&](auto element) {
    using T = decltype(element);
    if constexpr (kHasKeyColumns<T>) {
      for (; j + kKeysAtOnce<kRows> <= order.range.last; j += kKeysAtOnce<kRows>, s += kKeysAtOnce<kRows> * kTileRows) {
        NarrowScores<T, kRows>(q, head_size, keys.row<T>(j), stride, order.while_reading(j, kKeysAtOnce<kRows>), s);
      }
    }
  });
  // The last few, or all that cannot be read in place, are converted first; what is past the end repeats the last.
  const std::int64_t padded = RoundUp(head_size, 16);
  for (; j < order.range.last; j += kKeysAtOnce<kRows>, s += kKeysAtOnce<kRows> * kTileRows) {
    for (std::int64_t n = 0; n < kKeysAtOnce<kRows>; ++n) {
      const std::int64_t key = std::min(j + n, order.range.last - 1);
      LoadRow(keys.view(), keys.offset(key), keys.view().stride(3), head_size, memory + n * padded);
    }
    NarrowScores<float, kRows>(q, head_size, memory, padded, {}, s);
  }
}

// o[r] += p · V for up to kNarrowRows rows, over a few keys.
template <class T>
void NarrowAdd(const float* p, const T* values, std::int64_t stride, std::int64_t count, std::int64_t size,
               std::int64_t rows, const Ahead& ahead, float* const* o) {
  std::int64_t r = 0;
  const auto add = [&](auto rows_at_once) {
    constexpr int kRows = rows_at_once();
    for (; r + kRows <= rows; r += kRows) {
      NarrowWeightedSum<T, kRows>(p + r, values, stride, count, size, r == 0 ? ahead : Ahead(), o + r);
    }
  };
  if constexpr (kBroadcasts == 8) add(std::integral_constant<int, 8>());  // more registers
  add(std::integral_constant<int, 4>());
  add(std::integral_constant<int, 2>());
  add(std::integral_constant<int, 1>());
}

// p · V over keys [order.range), one chain for each number.
inline void NarrowChunkSums(const float* p, std::int64_t size, std::int64_t rows, const ReadingOrder& order,
                            float* memory, float* const* o) {
  const CacheRows& values = order.now;
  const auto each = [&](const auto& add) {
    for (std::int64_t j = order.range.first; j < order.range.last; j += kValuesAtOnce, p += kValuesAtOnce * kTileRows) {
      add(j, std::min(kValuesAtOnce, order.range.last - j));
    }
  };
  const bool done = WithTypeInPlace(values.view(), [&](auto element) {
    using T = decltype(element);
    each([&](std::int64_t j, std::int64_t count) {
      NarrowAdd(p, values.row<T>(j), values.view().stride(2), count, size, rows, order.while_reading(j, count), o);
    });
    for (std::int64_t r = 0; r < rows; ++r) Unzip<T>(size, o[r]);
  });
  if (done) return;
  const std::int64_t padded = RoundUp(size, 16);
  each([&](std::int64_t j, std::int64_t count) {
    for (std::int64_t n = 0; n < count; ++n) {
      LoadRow(values.view(), values.offset(j + n), values.view().stride(3), size, memory + n * padded);
    }
    NarrowAdd<float>(p, memory, padded, count, size, rows, {}, o);
  });
}

// A block of few rows and its chunks of keys.
class NarrowBlock {
 public:
  NarrowBlock(const ForwardProblem& problem, const RowBlock& block, const Scratch& scratch)
      : problem_(problem),
        scratch_(scratch),
        rows_(problem, block, block.first_row, block.row_count, kLanes),
        keys_(problem.key, block),
        values_(problem.value, block) {
    LoadQueries(problem, rows_, scratch.rows_in.data(), scratch.q.data());
    // Lanes without a row take part in the softmax, for nothing: they need some number.
    std::fill(scratch.s.begin(), scratch.s.end(), 0.0F);
  }

  const TileRows& rows() const { return rows_; }

  // Before the first chunk: its first keys.
  void fetch_first(std::int64_t chunk) const {
    const KeyRange range = keys_of(chunk);
    keys_.ahead(range.first, std::min(keys_.rows_ahead(1), range.last - range.first)).fetch_all();
  }

  // The rows' states after this chunk alone.
  void attend(std::int64_t chunk, const RowState* states) const {
    for (std::int64_t r = 0; r < rows_.count; ++r) states[r].clear();
    const TileKeys keys = VisibleTileKeys(problem_, rows_, keys_of(chunk));
    if (keys.range.first >= keys.range.last) return;
    const std::int64_t count = keys.range.last - keys.range.first;
    float* s = scratch_.s.data();
    HWY_ALIGN float max[TileRows::kMax];
    HWY_ALIGN float sum[TileRows::kMax];

    const ReadingOrder key_order = {keys_, keys.range, &values_, keys.range};
    const auto score = rows_.count <= 4 ? NarrowChunkScores<4> : NarrowChunkScores<8>;
    score(scratch_.q.data(), problem_.head_size, key_order, scratch_.rows_in.data(), s);
    if (HasTerms(problem_) || IsEdge(rows_, keys.range)) {
      MaskScores(problem_, rows_, keys, scratch_.mask.data(), s, max);
    } else {
      ResetMax(rows_, max);
      FindMax(rows_.vectors, count, s, max);
    }
    Weights(rows_.vectors, count, max, s, sum);
    if (problem_.dropout.on) DropWeights(problem_.dropout, rows_, keys.range.first, count, s);

    float* o[kNarrowRows];
    for (std::int64_t r = 0; r < rows_.count; ++r) {
      states[r].m() = max[r];
      states[r].l() = sum[r];
      o[r] = states[r].o();
    }
    const ReadingOrder value_order = {values_, keys.range, &keys_, keys_of(chunk + 1)};
    NarrowChunkSums(s, problem_.value_size, rows_.count, value_order, scratch_.rows_in.data(), o);
  }

 private:
  KeyRange keys_of(std::int64_t chunk) const {
    const std::int64_t first = std::max(chunk * kChunk, rows_.any.first);
    return {first, std::max(first, std::min((chunk + 1) * kChunk, rows_.any.last))};
  }

  const ForwardProblem& problem_;
  const Scratch& scratch_;
  TileRows rows_;
  CacheRows keys_, values_;
};

// A block of few rows, from its first key to its last.
inline void AttendNarrow(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                         const Scratch& scratch) {
  const NarrowBlock narrow(problem, block, scratch);
  const TileRows& rows = narrow.rows();
  RowState whole[kNarrowRows];
  RowState part[kNarrowRows];  // of the chunk at hand
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t floats = RowState::floats(problem.value_size);
    whole[r] = RowState(scratch.row_states.data() + r * floats, problem.value_size);
    part[r] = RowState(scratch.row_states.data() + (kNarrowRows + r) * floats, problem.value_size);
    whole[r].clear();
  }
  narrow.fetch_first(rows.any.first / kChunk);
  for (std::int64_t chunk = rows.any.first / kChunk; chunk * kChunk < rows.any.last; ++chunk) {
    narrow.attend(chunk, part);
    for (std::int64_t r = 0; r < rows.count; ++r) whole[r].merge(part[r]);
  }
  for (std::int64_t r = 0; r < rows.count; ++r) FinishRow(problem, rows, r, whole[r], sums);
}

// Where a split block keeps the state of row r after a chunk.
inline RowState StateOf(const ForwardProblem& problem, const ChunkBlock& block, std::int64_t chunk, std::int64_t r) {
  const std::int64_t place = (chunk - block.chunks.first) * block.rows.row_count + r;
  return {block.states + place * RowState::floats(problem.value_size), problem.value_size};
}

inline void AttendNarrowChunks(const ForwardProblem& problem, const ChunkBlock& block, const Scratch& scratch) {
  const NarrowBlock narrow(problem, block.rows, scratch);
  RowState states[kNarrowRows];
  narrow.fetch_first(block.chunks.first);
  for (std::int64_t chunk = block.chunks.first; chunk < block.chunks.last; ++chunk) {
    for (std::int64_t r = 0; r < block.rows.row_count; ++r) states[r] = StateOf(problem, block, chunk, r);
    narrow.attend(chunk, states);
  }
}

// The chunks of a split block, merged in order, and its rows written.
inline void Finish(const ForwardProblem& problem, const ChunkBlock& block, const RowSums& sums,
                   std::span<std::byte> memory) {
  Arena arena(memory);
  const Scratch scratch(arena, problem, block.rows.row_count);
  for (std::int64_t first = 0; first < block.rows.row_count; first += kTileRows) {
    const std::int64_t count = std::min(kTileRows, block.rows.row_count - first);
    const TileRows rows(problem, block.rows, block.rows.first_row + first, count, kLanes);
    for (std::int64_t r = 0; r < count; ++r) {
      const RowState whole(scratch.row_states.data(), problem.value_size);
      whole.clear();
      for (std::int64_t chunk = block.chunks.first; chunk < block.chunks.last; ++chunk) {
        whole.merge(StateOf(problem, block, chunk, first + r));
      }
      FinishRow(problem, rows, r, whole, sums);
    }
  }
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
