// Attention for a block of few rows, as in decoding: the steps of attend-inl.h, with the products of
// decode_products-inl.h.
#if defined(RAPT_CPU_ATTEND_DECODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ATTEND_DECODE_INL_H
#undef RAPT_CPU_ATTEND_DECODE_INL_H
#else
#define RAPT_CPU_ATTEND_DECODE_INL_H
#endif

#include "cpu/decode/cache_rows.h"
#include "cpu/forward/hidden_values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// Whether a block takes this path: it has few rows, or at most one tile of rows and so many keys that reading them
// dominates. With one SIMD lane there is nothing to gain.
inline bool IsDecode(const RowBlock& block) {
  constexpr std::int64_t kManyKeys = 1024;
  const std::int64_t few = block.sequence->key_count < kManyKeys ? 8 : kDecodeRows;
  return kLanes > 1 && block.row_count <= few;
}

// Calls run with an element of the type in which a tensor's rows can be read in place; returns false if they must be
// converted first.
template <class Run>
bool WithTypeInPlace(const ConstTensorView& view, const Run& run) {
  if (view.stride(3) != 1) return false;
  switch (view.dtype()) {
    case DType::f32: run(float()); return true;
    case DType::bf16: run(bfloat16()); return true;
    case DType::f16: run(float16()); return true;
    case DType::i8: run(std::int8_t()); return true;
    default: return false;
  }
}

// The dequantization scales of up to kRun rows, starting at row j; null if the type has no scales.
class RunScales {
 public:
  const float* operator()(const CacheRows& rows, std::int64_t j, std::int64_t count) {
    if (!rows.scaled()) return nullptr;
    rows.copy_scales(j, count, scales_);
    return scales_;
  }

 private:
  HWY_ALIGN float scales_[kRun];
};

// The number of rows whose scores are computed together when `left` rows remain.
constexpr std::int64_t RowsAtOnce(std::int64_t left) { return left > 4 ? 8 : left > 2 ? 4 : left; }

// Scores of all rows with `count` keys, a multiple of kKeyBlock.
template <class T>
void DecodeRowScores(const float* q, std::int64_t head_size, std::int64_t rows, const T* keys, std::int64_t stride,
                     const float* scales, std::int64_t count, const Prefetcher& prefetcher, float* s) {
  for (std::int64_t r = 0; r < rows; r += 8) {
    const std::int64_t width = RowsAtOnce(rows - r);
    const auto score = width == 8   ? DecodeScores<T, 8>
                       : width == 4 ? DecodeScores<T, 4>
                       : width == 2 ? DecodeScores<T, 2>
                                    : DecodeScores<T, 1>;
    score(q + r * head_size, head_size, keys, stride, scales, count, r == 0 ? prefetcher : Prefetcher(),
          s + r * kScoreRow);
  }
}

// The number of rows before the first one whose index in its page is a multiple of `step`, if keys [range) extend into
// another page; otherwise 0. From there on, all pages but the last are read in whole steps.
inline std::int64_t RowsToEven(const CacheRows& rows, KeyRange range, std::int64_t step) {
  const std::int64_t count = range.last - range.first;
  const std::int64_t run = rows.run(range.first, count);
  return run < count ? run % step : 0;
}

// Scores of all rows with keys [range): s is (rows, kScoreRow).
inline void DecodeChunkScores(const float* q, std::int64_t head_size, std::int64_t rows, KeyRange range,
                              const ReadingOrder& order, float* memory, float* s) {
  const CacheRows& keys = order.now;
  const std::int64_t padded = RoundUp(head_size, 16);
  RunScales scales;
  std::int64_t j = range.first;
  // Converts rows to f32 first; rows past the end repeat the last one, and their scores are overwritten or ignored.
  const auto convert_until = [&](std::int64_t last) {
    while (j < last) {
      order.while_reading(j, kKeyBlock).fetch_all();
      if (last - j == 1) {  // usually the newest key of a decode step: one row, repeated in every lane
        LoadRow(keys, j++, head_size, memory);
        return DecodeRowScores<float>(q, head_size, rows, memory, 0, nullptr, kKeyBlock, {}, s++);
      }
      for (std::int64_t n = 0; n < kKeyBlock; ++n) {
        LoadRow(keys, std::min(j + n, last - 1), head_size, memory + n * padded);
      }
      DecodeRowScores<float>(q, head_size, rows, memory, padded, nullptr, kKeyBlock, {}, s);
      const std::int64_t count = std::min(kKeyBlock, last - j);
      j += count;
      s += count;
    }
  };
  WithTypeInPlace(keys.view(), [&](auto element) {
    using T = decltype(element);
    if constexpr (kHasKeyColumns<T>) {
      convert_until(j + RowsToEven(keys, range, kKeyBlock));
      const std::int64_t last = range.last - (range.last - j) % kKeyBlock;
      while (j < last) {
        const std::int64_t count = order.rows_at_once(j, std::min(kRun, last - j), kKeyBlock);
        DecodeRowScores(q, head_size, rows, keys.row<T>(j), keys.view().stride(2), scales(keys, j, count), count,
                        order.while_reading(j, count), s);
        j += count;
        s += count;
      }
    }
  });
  convert_until(range.last);  // the last few, or everything that cannot be read in place
}

// o[r] += p · V for up to kDecodeRows rows, over `count` keys, a multiple of kKeys.
template <class T, int kKeys>
void DecodeAdd(const float* p, const T* values, std::int64_t stride, const float* scales, std::int64_t count,
               std::int64_t size, std::int64_t rows, const Prefetcher& prefetcher, float* const* o) {
  std::int64_t r = 0;
  const auto add = [&](auto rows_at_once) {
    constexpr int kRows = rows_at_once();
    for (; r + kRows <= rows; r += kRows) {
      DecodeWeightedSum<T, kRows, kKeys>(p + r * kScoreRow, values, stride, scales, count, size,
                                         r == 0 ? prefetcher : Prefetcher(), o + r);
    }
  };
  if constexpr (kMR == 8) add(std::integral_constant<int, 8>());  // more registers
  add(std::integral_constant<int, 4>());
  add(std::integral_constant<int, 2>());
  add(std::integral_constant<int, 1>());
}

// p · V over keys [range), one chain per element.
inline void DecodeChunkSums(const float* p, std::int64_t size, std::int64_t rows, KeyRange range,
                            const ReadingOrder& order, float* memory, float* const* o) {
  const CacheRows& values = order.now;
  std::int64_t j = range.first;
  const std::int64_t padded = RoundUp(size, 16);
  RunScales scales;
  const auto convert_until = [&](std::int64_t last) {
    for (; j + kValuesAtOnce <= last; j += kValuesAtOnce, p += kValuesAtOnce) {
      order.while_reading(j, kValuesAtOnce).fetch_all();
      for (std::int64_t n = 0; n < kValuesAtOnce; ++n) LoadRow(values, j + n, size, memory + n * padded);
      DecodeAdd<float, kValuesAtOnce>(p, memory, padded, nullptr, kValuesAtOnce, size, rows, {}, o);
    }
    for (; j < last; ++j, ++p) {
      LoadRow(values, j, size, memory);
      DecodeAdd<float, 1>(p, memory, 0, nullptr, 1, size, rows, {}, o);
    }
  };
  WithTypeInPlace(values.view(), [&](auto element) {
    using T = decltype(element);
    if (const std::int64_t odd = RowsToEven(values, range, kValuesAtOnce); odd > 0) {
      convert_until(j + odd);
      for (std::int64_t r = 0; r < rows; ++r) Zip<T>(size, o[r]);
    }
    const std::int64_t last = range.last - (range.last - j) % kValuesAtOnce;
    while (j < last) {
      const std::int64_t count = order.rows_at_once(j, std::min(kRun, last - j), kValuesAtOnce);
      DecodeAdd<T, kValuesAtOnce>(p, values.row<T>(j), values.view().stride(2), scales(values, j, count), count, size,
                                  rows, order.while_reading(j, count), o);
      j += count;
      p += count;
    }
    for (std::int64_t r = 0; r < rows; ++r) Unzip<T>(size, o[r]);
  });
  convert_until(range.last);  // the last few, or everything that cannot be read in place
}

// A block of few rows and its chunks of keys.
class DecodeBlock {
 public:
  DecodeBlock(const ForwardProblem& problem, const RowBlock& block, const Scratch& scratch)
      : problem_(problem),
        scratch_(scratch),
        rows_(problem, block, block.first_row, block.row_count, kLanes),
        keys_(KvRows::keys(problem, *block.sequence, block.kv_head), block.sequence->key_count),
        values_(KvRows::values(problem, *block.sequence, block.kv_head), block.sequence->key_count) {
    if (block.row_count == 1) {
      load_query();
      return;
    }
    LoadQueries(problem, rows_, scratch.rows_in.data(), scratch.q.data());
    for (std::int64_t r = 0; r < block.row_count; r += 8) {
      const std::int64_t width = RowsAtOnce(block.row_count - r);
      float* to = scratch.decode_q.data() + r * problem.head_size;
      const float* from = scratch.q.data() + r;
      for (std::int64_t d = 0; d < problem.head_size; ++d, from += kTileRows, to += width) {
        for (std::int64_t n = 0; n < width; ++n) to[n] = from[n];  // too few for a call of memcpy
      }
    }
  }

  const TileRows& rows() const { return rows_; }

  // Processes the chunks at some places of a list, in order: it writes row r's partial for a chunk to partial_of(place,
  // r), then calls done(place). The keys of several chunks are read before their values. Alternating between keys and
  // values is slower, because the hardware prefetcher has to detect each stream again.
  template <class PartialOf, class Done>
  void attend(const ChunkList& chunks, PlaceRange places, const PartialOf& partial_of, const Done& done) const {
    const std::int64_t at_once = rows_.count <= 8 ? kChunksAtOnce : 1;  // with more rows, bandwidth is not the limit
    const auto together = [&](std::int64_t place) {                     // the keys that are read together from here on
      const std::int64_t count = chunks.run(place, std::min(at_once, places.last - place));
      return count > 0 ? Together{count, keys_of(chunks[place], count)} : Together{};
    };
    Together some = together(places.first);
    fetch_first(chunks[places.first]);
    for (std::int64_t first = places.first; first < places.last;) {
      ChunkWeights weights[kChunksAtOnce];
      const ReadingOrder keys = {keys_, some.keys, &values_, some.keys};
      for (std::int64_t n = 0; n < some.chunks; ++n) {
        weights[n].p = scratch_.decode_s.data() + n * 8 * kScoreRow;
        weigh(chunks[first + n], keys, weights[n]);
      }
      const Together after = together(first + some.chunks);
      const ReadingOrder values = {values_, some.keys, &keys_, after.keys};
      for (std::int64_t n = 0; n < some.chunks; ++n) {
        const ChunkWeights& chunk_weights = weights[n];
        float* o[kDecodeRows];
        for (std::int64_t r = 0; r < rows_.count; ++r) {
          const RowState state = partial_of(first + n, r);
          state.clear();
          state.m() = chunk_weights.max[r];
          state.l() = chunk_weights.sum[r];
          o[r] = state.o();
        }
        DecodeChunkSums(chunk_weights.p, problem_.value_size, rows_.count, chunk_weights.keys, values,
                        scratch_.rows_in.data(), o);
        done(first + n);
      }
      first += some.chunks;
      some = after;
    }
  }

 private:
  struct Together {
    std::int64_t chunks = 0;
    KeyRange keys{0, 0};
  };

  // Like LoadQueries, but a single row needs no transpose.
  void load_query() const {
    const ConstTensorView& query = problem_.query;
    float* to = scratch_.decode_q.data();
    LoadRow(query, row_offset(query, rows_.sequence->batch, rows_.head[0], rows_.query(0)), query.stride(3),
            problem_.head_size, to);
    const auto scale = static_cast<float>(problem_.scale);
    for (std::int64_t d = 0; d < problem_.head_size; ++d) to[d] *= scale;
  }

  // The rows' weights for the keys of one chunk.
  struct ChunkWeights {
    KeyRange keys;
    float* p;  // (rows, kScoreRow)
    HWY_ALIGN float max[TileRows::kMax];
    HWY_ALIGN float sum[TileRows::kMax];
  };

  void weigh(std::int64_t chunk, const ReadingOrder& order, ChunkWeights& weights) const {
    const TileKeys keys = VisibleTileKeys(problem_, rows_, keys_of(chunk, 1));
    weights.keys = keys.range;
    std::fill_n(weights.max, rows_.count, -std::numeric_limits<float>::infinity());
    std::fill_n(weights.sum, rows_.count, 0.0F);
    if (keys.range.first >= keys.range.last) return;
    DecodeChunkScores(scratch_.decode_q.data(), problem_.head_size, rows_.count, keys.range, order,
                      scratch_.rows_in.data(), weights.p);
    if (HasTerms(problem_) || problem_.dropout.on || IsEdge(rows_, keys.range)) {
      weigh_tile(keys, weights.p, weights.max, weights.sum);
    } else {
      for (std::int64_t r = 0; r < rows_.count; r += 4) {
        const std::int64_t width = RowsAtOnce(rows_.count - r);
        const auto weigh = width > 2 ? DecodeWeights<4> : width == 2 ? DecodeWeights<2> : DecodeWeights<1>;
        weigh(keys.range.last - keys.range.first, weights.p + r * kScoreRow, weights.max + r, weights.sum + r);
      }
    }
  }

  // Turns scores into weights through a tile with rows in lanes, the layout that masks and dropout use.
  void weigh_tile(const TileKeys& keys, float* p, float* max, float* sum) const {
    const std::int64_t count = keys.range.last - keys.range.first;
    float* s = scratch_.s.data();
    // Lanes without a row are computed too and then ignored, so they need valid numbers.
    std::fill_n(s, count * kTileRows, 0.0F);
    for (std::int64_t r = rows_.count; r % 4 != 0; ++r) std::fill_n(p + r * kScoreRow, RoundUp(count, kLanes), 0.0F);
    for_each_four(count, p, [&](float* row, std::int64_t j, float* const* tile, std::int64_t r) HWY_ATTR {
      StoreFourColumns(hn::LoadU(kF32, row + j), hn::LoadU(kF32, row + kScoreRow + j),
                       hn::LoadU(kF32, row + 2 * kScoreRow + j), hn::LoadU(kF32, row + 3 * kScoreRow + j), tile, r);
    });
    MaskScores(problem_, rows_, keys, s, max);
    Weights(rows_.vectors, count, max, s, sum);
    if (problem_.dropout.on) DropWeights(problem_.dropout, rows_, keys.range.first, count, s);
    for_each_four(count, p, [&](float* row, std::int64_t j, float* const* tile, std::int64_t r) HWY_ATTR {
      Vec c0, c1, c2, c3;
      LoadFourColumns(tile, r, c0, c1, c2, c3);
      hn::StoreU(c0, kF32, row + j), hn::StoreU(c1, kF32, row + kScoreRow + j);
      hn::StoreU(c2, kF32, row + 2 * kScoreRow + j), hn::StoreU(c3, kF32, row + 3 * kScoreRow + j);
    });
  }

  // Calls visit(p, j, tile, r) for each group of four rows of scores, from r on, and of kLanes keys, from j on; `tile`
  // points to the tile's rows for these keys.
  template <class Visit>
  void for_each_four(std::int64_t count, float* p, const Visit& visit) const {
    for (std::int64_t j = 0; j < count; j += kLanes) {
      float* tile[kLanes];
      for (std::int64_t n = 0; n < kLanes; ++n) tile[n] = scratch_.s.data() + (j + n) * kTileRows;
      for (std::int64_t r = 0; r < rows_.count; r += 4) visit(p + r * kScoreRow, j, tile, r);
    }
  }

  // The keys of some consecutive chunks that at least one row sees.
  KeyRange keys_of(std::int64_t chunk, std::int64_t count) const {
    return rows_.any.within({chunk * kChunk, (chunk + count) * kChunk});
  }

  void fetch_first(std::int64_t chunk) const {
    const KeyRange range = keys_of(chunk, 1);
    keys_.prefetcher(range.first, std::min(keys_.prefetch_distance(), range.last - range.first), range.last)
        .fetch_all();
  }

  const ForwardProblem& problem_;
  const Scratch& scratch_;
  TileRows rows_;
  CacheRows keys_, values_;
};

// Processes a block of few rows, from its first key to its last.
inline void AttendDecode(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                         const Scratch& scratch) {
  const DecodeBlock decode(problem, block, scratch);
  const TileRows& rows = decode.rows();
  // RowStates are constructed on each use, because filling arrays of kDecodeRows states would take longer than
  // processing a row with few keys.
  const std::int64_t floats = RowState::floats(problem.value_size);
  const auto whole = [&](std::int64_t r) {
    return RowState(scratch.row_states.data() + r * floats, problem.value_size);
  };
  const auto part = [&](std::int64_t r) {  // of the current chunk
    return RowState(scratch.row_states.data() + (kDecodeRows + r) * floats, problem.value_size);
  };
  for (std::int64_t r = 0; r < rows.count; ++r) whole(r).clear();
  const ChunkList chunks = rows.any.chunks();
  decode.attend(
      chunks, {0, chunks.count()}, [&](std::int64_t, std::int64_t r) { return part(r); },
      [&](std::int64_t) {
        for (std::int64_t r = 0; r < rows.count; ++r) whole(r).merge(part(r));
      });
  bool finite = true;
  for (std::int64_t r = 0; r < rows.count; ++r) finite = FinishRow(problem, rows, r, whole(r), sums) && finite;
  if (!finite) RepeatRows(problem, rows, 0, scratch, sums);
}

// Where a split block stores row r's partial for the chunk at `place` in its list.
inline RowState PartialOf(const ForwardProblem& problem, const ChunkBlock& block, std::int64_t place, std::int64_t r) {
  const std::int64_t partial = (place - block.chunks.first) * block.rows.row_count + r;
  return {block.partials + partial * RowState::floats(problem.value_size), problem.value_size};
}

inline void AttendDecodeChunks(const ForwardProblem& problem, const ChunkBlock& block, const Scratch& scratch) {
  DecodeBlock(problem, block.rows, scratch)
      .attend(
          chunks_of(problem, block.rows), block.chunks,
          [&](std::int64_t place, std::int64_t r) { return PartialOf(problem, block, place, r); }, [](std::int64_t) {});
}

// Merges the chunks of a split block in order, and writes its rows.
inline void Combine(const ForwardProblem& problem, const ChunkBlock& block, const RowSums& sums,
                    std::span<std::byte> memory) {
  Arena arena(memory);
  const Scratch scratch(arena, problem, block.rows.row_count);
  for (std::int64_t first = 0; first < block.rows.row_count; first += kTileRows) {
    const std::int64_t count = std::min(kTileRows, block.rows.row_count - first);
    const TileRows rows(problem, block.rows, block.rows.first_row + first, count, kLanes);
    bool finite = true;
    for (std::int64_t r = 0; r < count; ++r) {
      const RowState whole(scratch.row_states.data(), problem.value_size);
      whole.clear();
      for (std::int64_t place = block.chunks.first; place < block.chunks.last; ++place) {
        whole.merge(PartialOf(problem, block, place, first + r));
      }
      finite = FinishRow(problem, rows, r, whole, sums) && finite;
    }
    if (!finite) RepeatRows(problem, rows, 0, scratch, sums);
  }
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
