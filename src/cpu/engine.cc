#include "cpu/engine.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <vector>

#include "cpu/kernel_table.h"

namespace rapt {

namespace cpu {

namespace {

Kernels kernels_of(const ForwardProblem& problem) {
  return static_cast<const InstructionSet*>(problem.variant)->kernels();
}

std::int64_t query_count(const ForwardProblem& problem) {
  std::int64_t queries = 0;
  for (const SequenceSpan& sequence : problem.sequences) queries += sequence.query_count;
  return queries;
}

// Blocks on so many threads: how many rounds they take, if all take the same time.
std::int64_t rounds(std::int64_t blocks, int threads) { return (blocks + threads - 1) / threads; }

// As many rows as make packing cheap, but no fewer blocks than keep every worker busy: the width at which the work
// takes the least time.
std::int64_t rows_per_block(const ForwardProblem& problem, const Kernels& kernels) {
  constexpr double kPacking = 0.5;  // of the time of a tile, for every block
  // Under a causal mask or a window blocks differ, and the last to finish works alone for a while.
  const bool even = problem.left == AttentionProblem::kOpen && problem.right == AttentionProblem::kOpen;
  std::int64_t best = kTilesPerBlock;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t tiles = kTilesPerBlock; tiles > 0; --tiles) {
    const std::int64_t rows = tiles * kernels.rows_per_tile;
    std::int64_t blocks = 0;
    for (const SequenceSpan& sequence : problem.sequences) {
      blocks += problem.kv_heads * ((sequence.query_count * problem.group + rows - 1) / rows);
    }
    const double each = static_cast<double>(blocks) / problem.threads;
    const double steps = even ? static_cast<double>(rounds(blocks, problem.threads)) : std::max(1.0, each + 0.5);
    const double time = steps * (static_cast<double>(tiles) + kPacking);
    if (time < least) least = time, best = tiles;
  }
  return best * kernels.rows_per_tile;
}

// Calls visit(block) for each block of rows.
template <class Visit>
void for_each_block(const ForwardProblem& problem, std::int64_t rows_per_block, const Visit& visit) {
  if (problem.query_heads == 0) return;
  for (const SequenceSpan& sequence : problem.sequences) {
    const std::int64_t rows = sequence.query_count * problem.group;
    for (std::int64_t head = 0; head < problem.kv_heads && rows > 0; ++head) {
      for (std::int64_t first = 0; first < rows; first += rows_per_block) {
        visit(RowBlock{&sequence, head, first, std::min(rows_per_block, rows - first)});
      }
    }
  }
}

// The chunks of keys that some row of a block sees. Both ends ascend from row to row.
KeyRange chunks_of(const ForwardProblem& problem, const RowBlock& block) {
  const std::int64_t first_query = block.first_row / problem.group;
  const std::int64_t last_query = (block.first_row + block.row_count - 1) / problem.group;
  const std::int64_t first = problem.visible_keys(*block.sequence, first_query).first / kChunk;
  const std::int64_t last = (problem.visible_keys(*block.sequence, last_query).last + kChunk - 1) / kChunk;
  return {first, std::max(first, last)};
}

// Blocks of queries that the second pass works on, at most.
std::int64_t capture_blocks(const ForwardProblem& problem, const Kernels& kernels) {
  std::int64_t blocks = 0;
  for (const SequenceSpan& sequence : problem.sequences) {
    blocks += (sequence.query_count + kernels.rows_per_tile - 1) / kernels.rows_per_tile;
  }
  return problem.outputs.captures.empty() ? 0 : blocks;
}

// How a call is divided. Few blocks on many keys are split further, by chunks: pieces, whose states are merged by block
// afterwards. None of it shows in the result.
struct Division {
  Division(const ForwardProblem& problem, const Kernels& kernels)
      : rows_per_block(cpu::rows_per_block(problem, kernels)), state_floats(kernels.state_floats(problem.value_size)) {
    std::int64_t products = 0;
    std::int64_t chunks = 0;
    std::int64_t states = 0;
    for_each_block(problem, rows_per_block, [&](const RowBlock& block) {
      const KeyRange range = chunks_of(problem, block);
      ++blocks;
      chunks += range.last - range.first;
      states += (range.last - range.first) * block.row_count;
      products += block.row_count * (range.last - range.first) * kChunk * (problem.head_size + problem.value_size);
    });
    constexpr std::int64_t kTiny = 1 << 19;  // multiply-adds; about what it takes to wake a thread
    if (problem.threads == 1 || products < kTiny) return;
    constexpr double kBusy = 0.8;  // a smaller part of the threads at work is worth keeping states apart
    const double busy =
        static_cast<double>(blocks) / static_cast<double>(rounds(blocks, problem.threads) * problem.threads);
    // States of many rows would soon be larger than k and v; then some threads idle instead.
    constexpr std::int64_t kStateBytes = std::int64_t{8} << 20;  // for each thread
    const bool fits = states * state_floats * static_cast<std::int64_t>(sizeof(float)) <= problem.threads * kStateBytes;
    if (busy < kBusy && chunks > blocks && fits) {
      chunks_per_piece = std::max<std::int64_t>(1, chunks / (std::int64_t{problem.threads} * 8));
      for_each_piece(problem, [&](const RowBlock&, KeyRange) { ++pieces; });
      state_count = states;
    }
    workers = std::min<std::int64_t>(problem.threads, std::max({blocks, pieces, capture_blocks(problem, kernels)}));
  }

  // Calls visit(block, chunks) for each piece.
  template <class Visit>
  void for_each_piece(const ForwardProblem& problem, const Visit& visit) const {
    for_each_block(problem, rows_per_block, [&](const RowBlock& block) {
      const KeyRange range = chunks_of(problem, block);
      for (std::int64_t first = range.first; first < range.last; first += chunks_per_piece) {
        visit(block, KeyRange{first, std::min(first + chunks_per_piece, range.last)});
      }
    });
  }

  std::int64_t rows_per_block;
  std::int64_t blocks = 0;
  std::int64_t workers = 1;
  std::int64_t pieces = 0;  // 0: blocks are not split
  std::int64_t chunks_per_piece = 0;
  std::int64_t state_count = 0;
  std::int64_t state_floats;
};

// A call's memory: its work written down, and room for each worker.
class Workspace {
 public:
  Workspace(Arena& arena, const ForwardProblem& problem, const Kernels& kernels) : division_(problem, kernels) {
    const bool captures = !problem.outputs.captures.empty();
    const std::int64_t rows = captures ? problem.query.size(0) * problem.query_heads * problem.query.size(2) : 0;
    sums = {arena.take<float>(rows), arena.take<float>(rows), problem.query_heads, problem.query.size(2)};
    blocks = arena.take<ChunkBlock>(division_.blocks);
    pieces = arena.take<ChunkBlock>(division_.pieces);
    states_ = arena.take<float>(division_.state_count * division_.state_floats);
    query_blocks_ = arena.take<QueryBlock>(capture_blocks(problem, kernels));
    queries_ = arena.take<std::int64_t>(captures ? query_count(problem) : 0);
    workers_ = division_.workers;
    worker_bytes_ = std::max(kernels.scratch_bytes(problem, division_.rows_per_block),
                             captures ? kernels.capture_scratch_bytes(problem) : 0);
    scratch_ = arena.take<std::byte>(workers_ * static_cast<std::int64_t>(worker_bytes_));
  }

  // Writes the work down, longest first, so that the last to finish are short.
  void plan(const ForwardProblem& problem) const {
    std::size_t count = 0;
    float* states = states_.data();
    for_each_block(problem, division_.rows_per_block, [&](const RowBlock& block) {
      blocks[count] = {block, chunks_of(problem, block), states};
      if (split()) states += states_of(blocks[count]);
      ++count;
    });
    const auto work = [](const ChunkBlock& block) {
      return block.rows.row_count * (block.chunks.last - block.chunks.first);
    };
    if (!split()) {
      std::sort(blocks.begin(), blocks.end(), [&](const auto& a, const auto& b) { return work(a) > work(b); });
      return;
    }
    count = 0;
    states = states_.data();
    division_.for_each_piece(problem, [&](const RowBlock& block, KeyRange chunks) {
      pieces[count] = {block, chunks, states};
      states += states_of(pieces[count++]);
    });
  }

  // The queries that some capture asks for, in blocks of one tile.
  std::span<const QueryBlock> plan_captures(const ForwardProblem& problem, const Kernels& kernels) const {
    const auto is_chosen = [&](std::int64_t query) {
      return std::any_of(problem.outputs.captures.begin(), problem.outputs.captures.end(), [&](const Capture& capture) {
        const std::vector<std::int64_t>& chosen = capture.of.queries;
        return chosen.empty() || std::find(chosen.begin(), chosen.end(), query) != chosen.end();
      });
    };
    const auto tile = static_cast<std::size_t>(kernels.rows_per_tile);
    std::size_t count = 0;
    std::size_t first = 0;  // of the queries of a sequence
    for (const SequenceSpan& sequence : problem.sequences) {
      std::size_t last = first;
      for (std::int64_t i = 0; i < sequence.query_count; ++i) {
        if (is_chosen(sequence.query_begin + i)) queries_[last++] = i;
      }
      for (; first < last; first += std::min(tile, last - first)) {
        query_blocks_[count++] = {&sequence, queries_.subspan(first, std::min(tile, last - first))};
      }
    }
    return query_blocks_.first(count);
  }

  bool split() const { return division_.pieces > 0; }
  std::int64_t workers() const { return workers_; }
  std::span<std::byte> scratch(std::int64_t worker) const {
    return scratch_.subspan(static_cast<std::size_t>(worker) * worker_bytes_, worker_bytes_);
  }

  RowSums sums;
  std::span<ChunkBlock> blocks, pieces;

 private:
  std::int64_t states_of(const ChunkBlock& block) const {
    return (block.chunks.last - block.chunks.first) * block.rows.row_count * division_.state_floats;
  }

  Division division_;
  std::int64_t workers_ = 1;
  std::size_t worker_bytes_ = 0;
  std::span<float> states_;
  std::span<QueryBlock> query_blocks_;
  std::span<std::int64_t> queries_;
  std::span<std::byte> scratch_;
};

// Hands out items, first come first served. Which worker takes which does not matter to the result.
template <class Item, class Work>
void share_out(const ForwardProblem& problem, const Workspace& workspace, std::span<const Item> items,
               const Work& work) {
  std::atomic<std::size_t> next{0};
  const std::int64_t workers = std::min(workspace.workers(), static_cast<std::int64_t>(items.size()));
  const auto task = [&](std::int64_t worker) {
    for (std::size_t n = next++; n < items.size(); n = next++) work(items[n], workspace.scratch(worker));
  };
  problem.parallel_for(workers, std::ref(task));  // a copy would need memory
}

std::size_t forward_workspace(const ForwardProblem& problem) {
  Arena counter;
  const Workspace sizes(counter, problem, kernels_of(problem));
  return counter.used();
}

void forward(const ForwardProblem& problem, std::span<std::byte> memory) {
  const Kernels kernels = kernels_of(problem);
  Arena arena(memory);
  const Workspace workspace(arena, problem, kernels);
  workspace.plan(problem);

  const auto each = [&](std::span<const ChunkBlock> blocks, const auto& work) {
    share_out(problem, workspace, blocks, work);
  };
  if (workspace.split()) {
    each(workspace.pieces, [&](const ChunkBlock& piece, std::span<std::byte> scratch) {
      kernels.attend_chunks(problem, piece, scratch);
    });
    each(workspace.blocks, [&](const ChunkBlock& block, std::span<std::byte> scratch) {
      kernels.finish(problem, block, workspace.sums, scratch);
    });
  } else {
    each(workspace.blocks, [&](const ChunkBlock& block, std::span<std::byte> scratch) {
      kernels.attend(problem, block.rows, workspace.sums, scratch);
    });
  }
  if (problem.outputs.captures.empty()) return;

  share_out(problem, workspace, workspace.plan_captures(problem, kernels),
            [&](const QueryBlock& block, std::span<std::byte> scratch) {
              kernels.capture(problem, block, workspace.sums, scratch);
            });
}

}  // namespace

}  // namespace cpu

const EngineTable& cpu_engine() {
  static constexpr EngineTable kEngine = {"cpu",
                                          [] { return static_cast<const void*>(&cpu::chosen_instruction_set()); },
                                          cpu::forward_workspace,
                                          cpu::forward,
                                          nullptr,
                                          nullptr};
  return kEngine;
}

}  // namespace rapt
