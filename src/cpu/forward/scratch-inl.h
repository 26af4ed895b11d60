// The memory of one worker.
#if defined(RAPT_CPU_SCRATCH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_SCRATCH_INL_H
#undef RAPT_CPU_SCRATCH_INL_H
#else
#define RAPT_CPU_SCRATCH_INL_H
#endif

#include "cpu/decode/decode_products-inl.h"
#include "cpu/forward/row_state-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// The stride between panels of packed values. The gap avoids cache set conflicts between panels.
constexpr std::int64_t kPanel = kChunk * kMR + 16;

// The most rows that are converted together: those of one vector, or a block of keys on the decode path.
constexpr std::int64_t kRowsIn = 16;

// The scratch memory of one worker, carved from its part of the workspace.
struct Scratch {
  static constexpr std::int64_t kDecodeScores = std::max(kChunksAtOnce * 8, kDecodeRows) * kScoreRow;

  Scratch(Arena& arena, const ForwardProblem& problem, std::int64_t rows)
      : tiles((rows + kTileRows - 1) / kTileRows),
        padded_value_size(RoundUp(problem.value_size, kMR)),
        q(arena.take<float>(tiles * problem.head_size * kTileRows)),
        o(arena.take<float>(tiles * padded_value_size * kTileRows)),
        m(arena.take<float>(tiles * kTileRows)),
        l(arena.take<float>(tiles * kTileRows)),
        s(arena.take<float>((kChunk + kMR) * kTileRows)),
        values(arena.take<float>(kPanel * padded_value_size / kMR)),
        keys(arena.take<float>(reads_in_place(problem.key) ? 0 : kChunk * problem.head_size)),
        rows_in(arena.take<float>(kRowsIn * RoundUp(std::max(problem.head_size, problem.value_size), 16))),
        decode_q(arena.take<float>(kDecodeRows * problem.head_size)),
        decode_s(arena.take<float>(kDecodeScores)),
        row_states(arena.take<float>(2 * kDecodeRows * RowState::floats(problem.value_size))) {}

  float* queries(std::int64_t tile) const { return q.data() + tile * (static_cast<std::int64_t>(q.size()) / tiles); }
  TileState state(std::int64_t tile) const {
    return {m.data() + tile * kTileRows, l.data() + tile * kTileRows, o.data() + tile * padded_value_size * kTileRows};
  }

  void clear(std::int64_t tile) const {
    const TileState empty = state(tile);
    std::fill_n(empty.m, kTileRows, -std::numeric_limits<float>::infinity());
    std::fill_n(empty.l, kTileRows, 0.0F);
    std::fill_n(empty.o, padded_value_size * kTileRows, 0.0F);
  }

  std::int64_t tiles;
  std::int64_t padded_value_size;
  std::span<float> q;           // for each tile (D, kTileRows): scaled queries
  std::span<float> o, m, l;     // for each tile its state
  std::span<float> s;           // (kChunk, kTileRows): scores, then weights
  std::span<float> values;      // a chunk of v: for each group of kMR columns a panel (keys, kMR)
  std::span<float> keys;        // a chunk of k as f32, if it cannot be read in place
  std::span<float> rows_in;     // (kRowsIn, D or Dv): rows before or after the transpose into lanes
  std::span<float> decode_q;    // decode path: scaled queries (D, n) for each group of n = 8, 4, 2 or 1 rows
  std::span<float> decode_s;    // decode path: scores, then weights, in rows of kScoreRow, for one chunk or several
  std::span<float> row_states;  // decode path: the rows' states, and those of the current chunk
};

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
