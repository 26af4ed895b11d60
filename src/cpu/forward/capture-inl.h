// Writing weights and scores: a second pass that recomputes the scores, chunk by chunk, and turns them into weights
// with the sums that the first pass stored. It needs no L×L memory of its own.
#if defined(RAPT_CPU_CAPTURE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_CAPTURE_INL_H
#undef RAPT_CPU_CAPTURE_INL_H
#else
#define RAPT_CPU_CAPTURE_INL_H
#endif

#include <limits>

#include "core/selection.h"
#include "cpu/masked_scores-inl.h"
#include "cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

struct CaptureScratch {
  CaptureScratch(Arena& arena, const ForwardProblem& problem)
      : q(arena.take<float>(problem.head_size * kTileRows)),
        s(arena.take<float>((kChunk + kMR) * kTileRows)),
        keys(arena.take<float>(reads_in_place(problem.key) ? 0 : kChunk * problem.head_size)),
        rows(arena.take<float>(kLanes * std::max(RoundUp(problem.head_size, 4), kChunk))),
        means(arena.take<float>(MeanCount(problem.outputs.captures) * kMean)) {}

  static constexpr std::int64_t kMean = kChunk * kTileRows;
  // The memory of capture n, which is a mean.
  float* mean(const ForwardProblem& problem, std::size_t n) const {
    return means.data() + MeanCount(problem.outputs.captures.first(n)) * kMean;
  }

  std::span<float> q;      // (D, kTileRows)
  std::span<float> s;      // (kChunk, kTileRows): scores, then weights
  std::span<float> keys;   // a chunk of k as f32, if it cannot be read in place
  std::span<float> rows;   // (kLanes, D or kChunk): rows before or after the transpose into lanes
  std::span<float> means;  // for each capture that is a mean: (kChunk, kTileRows)

 private:
  static std::int64_t MeanCount(std::span<const Capture> captures) {
    return std::count_if(captures.begin(), captures.end(), [](const Capture& c) { return c.of.mean_over_heads; });
  }
};

// The rows of one capture that a query block fills.
class CaptureRows {
 public:
  CaptureRows(const Capture& capture, const TileRows& rows) : capture_(capture), rows_(rows) {}

  // Writes columns [range) of the sequence from a tile with one row per key, for head number `head` of the capture.
  void write(std::int64_t head, KeyRange range, const float* HWY_RESTRICT tile, float* HWY_RESTRICT memory) const {
    const TensorView& to = capture_.to;
    const std::int64_t count = range.last - range.first;
    for (std::int64_t v = 0; v < rows_.vectors; ++v) {
      float* out[kLanes];
      for (std::int64_t n = 0; n < kLanes; ++n) out[n] = memory + n * kChunk;
      std::int64_t key =
          StoreColumns([&](std::int64_t n) HWY_ATTR { return Load(tile + n * kTileRows + v * kLanes); }, count, out);
      for (; key < count; ++key) {
        for (std::int64_t n = 0; n < kLanes; ++n) out[n][key] = tile[key * kTileRows + v * kLanes + n];
      }
      for (std::int64_t n = 0; n < std::min(kLanes, rows_.count - v * kLanes); ++n) {
        for_each_row(head, v * kLanes + n, [&](std::int64_t row) {
          const std::int64_t column = (rows_.sequence->key_begin + range.first) * last_stride();
          StoreRow(out[n], count, to, row + column, last_stride());
        });
      }
    }
  }

  // Writes the columns of keys that do not exist for this sequence.
  void write_absent(std::int64_t head) const {
    const TensorView& to = capture_.to;
    const double absent = is_weights(capture_.stage) ? 0.0 : -std::numeric_limits<double>::infinity();
    const SequenceSpan& sequence = *rows_.sequence;
    for (std::int64_t lane = 0; lane < rows_.count; ++lane) {
      for_each_row(head, lane, [&](std::int64_t row) {
        for (std::int64_t column = 0; column < to.size(to.rank() - 1); ++column) {
          if (column == sequence.key_begin) column += sequence.key_count;
          if (column >= to.size(to.rank() - 1)) break;
          store(to.data(), to.dtype(), row + column * last_stride(), absent);
        }
      });
    }
  }

 private:
  std::int64_t last_stride() const { return capture_.to.stride(capture_.to.rank() - 1); }

  // Calls visit(offset) for each row of the capture that holds this lane's query.
  template <class Visit>
  void for_each_row(std::int64_t head, std::int64_t lane, const Visit& visit) const {
    const TensorView& to = capture_.to;
    const bool mean = capture_.of.mean_over_heads;
    for_each_place(capture_.of.queries, rows_.query(lane), [&](std::int64_t query) {
      visit(rows_.sequence->batch * to.stride(0) + (mean ? 0 : head * to.stride(1)) + query * to.stride(mean ? 1 : 2));
    });
  }

  const Capture& capture_;
  const TileRows& rows_;
};

// Turns a chunk's scores into weights, using the chunk's maximum and the sums of the whole row.
inline void FinalWeights(const TileRows& rows, const RowSums& sums, const float* chunk_max, std::int64_t count,
                         float* HWY_RESTRICT s) {
  HWY_ALIGN float m[TileRows::kMax];
  HWY_ALIGN float l[TileRows::kMax];
  for (std::int64_t n = 0; n < rows.vectors * kLanes; ++n) {
    const std::size_t place = sums.place(rows.sequence->batch, rows.head[static_cast<std::size_t>(n)], rows.query(n));
    m[n] = sums.m[place];
    l[n] = sums.l[place];
  }
  HWY_ALIGN float max[TileRows::kMax];
  HWY_ALIGN float factor[TileRows::kMax];
  for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
    Store(Finite(Load(chunk_max + lane)), max + lane);
    Store(WeightFactor(Load(chunk_max + lane), Load(m + lane), Load(l + lane)), factor + lane);
  }
  ForEachVector(rows.vectors, count, s, [&](Vec x, std::int64_t, std::int64_t lane) HWY_ATTR {
    return hn::Mul(Exp(hn::Sub(x, Load(max + lane))), Load(factor + lane));
  });
}

// Writes a stage's tile to all captures of that stage, or adds it to their means.
inline void Emit(const ForwardProblem& problem, const TileRows& rows, std::int64_t head, Stage stage, KeyRange range,
                 const CaptureScratch& scratch) {
  const std::span<const Capture> captures = problem.outputs.captures;
  const std::int64_t count = range.last - range.first;
  for (std::size_t n = 0; n < captures.size(); ++n) {
    if (captures[n].stage != stage) continue;
    for_each_place(captures[n].of.heads, head, [&](std::int64_t place) {
      if (!captures[n].of.mean_over_heads) {
        return CaptureRows(captures[n], rows).write(place, range, scratch.s.data(), scratch.rows.data());
      }
      // Each of the H selected heads adds x / H, so that a sum of large scores does not overflow when the mean is
      // finite. 1 / H is rounded, so numbers near the lowest finite one could still overflow to −inf; the sum is then
      // set to the lowest finite number.
      const Vec share = Set(1.0F / static_cast<float>(chosen_count(captures[n].of.heads, problem.query_heads)));
      const Vec lowest = Set(std::numeric_limits<float>::lowest());
      const float* s = scratch.s.data();
      ForEachVector(rows.vectors, count, scratch.mean(problem, n),
                    [&](Vec sum, std::int64_t key, std::int64_t lane) HWY_ATTR {
                      const Vec x = Load(s + key * kTileRows + lane);
                      const Vec next = hn::MulAdd(x, share, sum);
                      const VecMask hidden = hn::Or(hn::Lt(x, lowest), hn::Lt(sum, lowest));
                      return hn::IfThenElse(hn::AndNot(hidden, hn::Lt(next, lowest)), lowest, next);
                    });
    });
  }
}

// Writes all requested stages of one head for keys [chunk).
inline void CaptureHead(const ForwardProblem& problem, const TileRows& rows, std::int64_t head, KeyRange chunk,
                        const KeyRows& key_rows, const RowSums& sums, const CaptureScratch& scratch) {
  const auto wants = [&](Stage stage) {
    return std::any_of(problem.outputs.captures.begin(), problem.outputs.captures.end(),
                       [&](const Capture& capture) { return capture.stage == stage; });
  };
  const bool all_scores = wants(Stage::raw) || wants(Stage::capped);  // these include the scores of hidden keys
  const std::int64_t count = chunk.last - chunk.first;
  const TileKeys keys = all_scores ? TileKeys{chunk, true} : VisibleTileKeys(problem, rows, chunk);
  const std::int64_t begin = keys.range.first < keys.range.last ? keys.range.first - chunk.first : count;
  const std::int64_t end = keys.range.first < keys.range.last ? keys.range.last - chunk.first : count;
  float* s = scratch.s.data();
  HWY_ALIGN float max[TileRows::kMax];
  ResetMax(rows, max);

  if (begin < end && !all_scores) {
    MaskedScores(problem, rows, keys, scratch.q.data(), key_rows, s + begin * kTileRows, max);
  } else if (begin < end) {
    Scores(rows.vectors, scratch.q.data(), problem.head_size, key_rows, keys.range, s + begin * kTileRows, max);
    if (wants(Stage::raw)) Emit(problem, rows, head, Stage::raw, chunk, scratch);
    if (problem.softcap != 0.0) Softcap(problem.softcap, rows.vectors, end - begin, s + begin * kTileRows);
    if (wants(Stage::capped)) Emit(problem, rows, head, Stage::capped, chunk, scratch);
    ApplyMasks(problem, rows, keys, s + begin * kTileRows);
    ResetMax(rows, max);
    FindMax(rows.vectors, end - begin, s + begin * kTileRows, max);
  }
  std::fill(s, s + begin * kTileRows, kNothing);
  std::fill(s + end * kTileRows, s + count * kTileRows, kNothing);
  Emit(problem, rows, head, Stage::masked, chunk, scratch);
  if (!wants(Stage::weights) && !wants(Stage::dropped_weights)) return;

  FinalWeights(rows, sums, max, count, s);
  Emit(problem, rows, head, Stage::weights, chunk, scratch);
  if (!wants(Stage::dropped_weights)) return;
  if (problem.dropout.on) {
    DropWeights(problem.dropout, rows, chunk.first, count, s);
    const Vec keep = Set(static_cast<float>(problem.dropout.keep_scale));
    ForEachVector(rows.vectors, count, s, [&](Vec x, std::int64_t, std::int64_t) HWY_ATTR { return hn::Mul(x, keep); });
  }
  Emit(problem, rows, head, Stage::dropped_weights, chunk, scratch);
}

inline void WriteMeans(const ForwardProblem& problem, const TileRows& rows, KeyRange chunk,
                       const CaptureScratch& scratch) {
  const std::span<const Capture> captures = problem.outputs.captures;
  for (std::size_t n = 0; n < captures.size(); ++n) {
    if (!captures[n].of.mean_over_heads) continue;
    CaptureRows(captures[n], rows).write(0, chunk, scratch.mean(problem, n), scratch.rows.data());
  }
}

inline void CaptureQueries(const ForwardProblem& problem, const QueryBlock& block, const RowSums& sums,
                           std::span<std::byte> memory) {
  Arena arena(memory);
  const CaptureScratch scratch(arena, problem);
  const SequenceSpan& sequence = *block.sequence;
  const auto is_chosen = [&](std::int64_t head) {
    return std::any_of(problem.outputs.captures.begin(), problem.outputs.captures.end(), [&](const Capture& capture) {
      bool chosen = false;
      for_each_place(capture.of.heads, head, [&](std::int64_t) { chosen = true; });
      return chosen;
    });
  };

  for (std::int64_t start = 0; start < sequence.key_count; start += kChunk) {
    const KeyRange chunk = {start, std::min(start + kChunk, sequence.key_count)};
    std::fill(scratch.means.begin(), scratch.means.end(), 0.0F);
    KeyRows keys;
    for (std::int64_t head = 0; head < problem.query_heads; ++head) {
      if (head % problem.group == 0) keys.data = nullptr;
      if (!is_chosen(head)) continue;
      if (keys.data == nullptr) keys = LoadKeys(problem, sequence, head / problem.group, chunk, scratch.keys.data());
      const TileRows rows(problem, block, head, kLanes);
      LoadQueries(problem, rows, scratch.rows.data(), scratch.q.data());
      CaptureHead(problem, rows, head, chunk, keys, sums, scratch);
    }
    WriteMeans(problem, TileRows(problem, block, 0, kLanes), chunk, scratch);
  }

  for (const Capture& capture : problem.outputs.captures) {
    const TileRows rows(problem, block, 0, kLanes);
    const auto heads = capture.of.mean_over_heads ? 1 : capture.to.size(1);
    for (std::int64_t head = 0; head < heads; ++head) CaptureRows(capture, rows).write_absent(head);
  }
}

inline std::size_t CaptureScratchBytes(const ForwardProblem& problem) {
  Arena counter;
  const CaptureScratch sizes(counter, problem);
  return counter.used();
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
