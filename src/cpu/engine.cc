#include "cpu/engine.h"

#include <algorithm>
#include <atomic>

#include "cpu/kernel_table.h"

namespace rapt {

namespace cpu {

namespace {

Kernels kernels_of(const ForwardProblem& problem) {
  return static_cast<const InstructionSet*>(problem.variant)->kernels();
}

// Blocks of rows, longest first, so that the last ones to finish are short.
std::vector<RowBlock> plan(const ForwardProblem& problem, std::int64_t rows_per_block) {
  std::vector<RowBlock> blocks;
  if (problem.query_heads == 0) return blocks;
  for (const SequenceSpan& sequence : problem.sequences) {
    const std::int64_t rows = sequence.query_count * problem.group;
    for (std::int64_t head = 0; head < problem.kv_heads && rows > 0; ++head) {
      for (std::int64_t first = 0; first < rows; first += rows_per_block) {
        blocks.push_back({&sequence, head, first, std::min(rows_per_block, rows - first)});
      }
    }
  }
  const auto work = [&](const RowBlock& block) {
    const std::int64_t middle = (block.first_row + block.row_count / 2) / problem.group;
    const KeyRange keys = problem.visible_keys(*block.sequence, middle);
    return block.row_count * (keys.last - keys.first);
  };
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](const RowBlock& a, const RowBlock& b) { return work(a) > work(b); });
  return blocks;
}

// As many rows as make packing cheap, but no fewer blocks than keep every worker busy.
std::int64_t rows_per_block(const ForwardProblem& problem, const Kernels& kernels) {
  std::int64_t rows = 0;
  for (const SequenceSpan& sequence : problem.sequences) {
    rows += sequence.query_count * problem.group * problem.kv_heads;
  }
  const std::int64_t share = rows / (std::int64_t{problem.threads} * 8) / kernels.rows_per_tile;
  return std::clamp<std::int64_t>(share, 1, kTilesPerBlock) * kernels.rows_per_tile;
}

// How many workers a call is worth: one where the work is tiny, and never more than there are pieces of it.
std::int64_t worker_count(const ForwardProblem& problem, const Kernels& kernels) {
  constexpr std::int64_t kTiny = 1 << 19;  // multiply-adds; about what it takes to wake a thread
  const std::int64_t block = rows_per_block(problem, kernels);
  std::int64_t products = 0;
  std::int64_t blocks = 0;
  for (const SequenceSpan& sequence : problem.sequences) {
    const std::int64_t rows = sequence.query_count * problem.group;
    products += rows * problem.kv_heads * sequence.key_count * (problem.head_size + problem.value_size);
    blocks += problem.kv_heads * ((rows + block - 1) / block);
    if (!problem.outputs.captures.empty()) blocks += (sequence.query_count - 1) / kernels.rows_per_tile + 1;
  }
  return products < kTiny ? 1 : std::clamp<std::int64_t>(blocks, 1, problem.threads);
}

struct Workspace {
  Workspace(Arena& arena, const ForwardProblem& problem, const Kernels& kernels) {
    const bool captures = !problem.outputs.captures.empty();
    const std::int64_t rows = captures ? problem.query.size(0) * problem.query_heads * problem.query.size(2) : 0;
    sums = {arena.take<float>(rows), arena.take<float>(rows), problem.query_heads, problem.query.size(2)};
    const std::size_t bytes = std::max(kernels.scratch_bytes(problem, rows_per_block(problem, kernels)),
                                       captures ? kernels.capture_scratch_bytes(problem) : 0);
    for (std::int64_t worker = worker_count(problem, kernels); worker > 0; --worker) {
      scratch.push_back(arena.take<std::byte>(static_cast<std::int64_t>(bytes)));
    }
  }

  RowSums sums;
  std::vector<std::span<std::byte>> scratch;  // for each worker
};

// Hands out items, first come first served. Which worker takes which does not matter to the result.
template <class Item, class Work>
void share_out(const ForwardProblem& problem, const Workspace& workspace, const std::vector<Item>& items,
               const Work& work) {
  std::atomic<std::size_t> next{0};
  const std::int64_t workers = static_cast<std::int64_t>(std::min(workspace.scratch.size(), items.size()));
  problem.parallel_for(workers, [&](std::int64_t worker) {
    for (std::size_t n = next++; n < items.size(); n = next++) {
      work(items[n], workspace.scratch[static_cast<std::size_t>(worker)]);
    }
  });
}

// The queries that some capture asks for, in blocks of one tile. `queries` holds the numbers that the blocks point to.
std::vector<QueryBlock> plan_captures(const ForwardProblem& problem, const Kernels& kernels,
                                      std::vector<std::vector<std::int64_t>>& queries) {
  const auto is_chosen = [&](std::int64_t query) {
    return std::any_of(problem.outputs.captures.begin(), problem.outputs.captures.end(), [&](const Capture& capture) {
      const std::vector<std::int64_t>& chosen = capture.of.queries;
      return chosen.empty() || std::find(chosen.begin(), chosen.end(), query) != chosen.end();
    });
  };
  std::vector<QueryBlock> blocks;
  for (const SequenceSpan& sequence : problem.sequences) {
    std::vector<std::int64_t>& wanted = queries.emplace_back();
    for (std::int64_t i = 0; i < sequence.query_count; ++i) {
      if (is_chosen(sequence.query_begin + i)) wanted.push_back(i);
    }
    const auto tile = static_cast<std::size_t>(kernels.rows_per_tile);
    for (std::size_t first = 0; first < wanted.size(); first += tile) {
      blocks.push_back({&sequence, std::span(wanted).subspan(first, std::min(tile, wanted.size() - first))});
    }
  }
  return blocks;
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

  share_out(problem, workspace, plan(problem, rows_per_block(problem, kernels)),
            [&](const RowBlock& block, std::span<std::byte> scratch) {
              kernels.attend(problem, block, workspace.sums, scratch);
            });
  if (problem.outputs.captures.empty()) return;

  std::vector<std::vector<std::int64_t>> queries;
  queries.reserve(problem.sequences.size());
  share_out(problem, workspace, plan_captures(problem, kernels, queries),
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
