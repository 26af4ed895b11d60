#include "cpu/engine.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/memory.h"
#include "core/selection.h"
#include "cpu/backward/backward.h"
#include "cpu/layer/layer_ops.h"
#include "cpu/product/packed_product.h"
#include "cpu/rows.h"
#include "cpu/run_dynamic.h"

namespace rapt {

namespace cpu {

namespace {

const Kernels& kernels_of(const ForwardProblem& problem) {
  return static_cast<const InstructionSet*>(problem.variant)->kernels();
}

std::int64_t query_count(const ForwardProblem& problem) {
  std::int64_t queries = 0;
  for (const SequenceSpan& sequence : problem.sequences) queries += sequence.query_count;
  return queries;
}

// The number of rounds that blocks need on this many threads, if all take the same time.
std::int64_t rounds(std::int64_t blocks, int threads) { return (blocks + threads - 1) / threads; }

// The number of rows in a block for which the call takes the least time: enough rows to amortize packing, but enough
// blocks to keep every worker busy.
std::int64_t rows_per_block(const ForwardProblem& problem, const Kernels& kernels) {
  constexpr double kPacking = 0.5;  // per block, relative to the time of a tile
  // Under a causal mask or a window, block times differ, and the last worker to finish runs alone for a while.
  const bool even = !problem.hides_by_position();
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

// The number of blocks with that many queries each.
std::int64_t query_blocks(const ForwardProblem& problem, std::int64_t queries_per_block) {
  std::int64_t blocks = 0;
  for (const SequenceSpan& sequence : problem.sequences) {
    blocks += (sequence.query_count + queries_per_block - 1) / queries_per_block;
  }
  return blocks;
}

// Whether the only capture of a call is a mean of the weights that the output uses. Such weights need not be
// recomputed, because a worker can keep the weights of a head until the sums of its rows are known.
bool can_keep_weights(const ForwardProblem& problem) {
  const std::span<const Capture> captures = problem.outputs.captures;
  return captures.size() == 1 && is_weights(captures[0].stage) && captures[0].of.mean_over_heads &&
         captures[0].of.queries.empty() && !problem.dropout.on && problem.query_heads > 0;
}

// For a call whose weights are kept: the number of queries in a block. One work item computes all heads of a block. 0:
// no weights are kept, because can_keep_weights is false, or because there are few queries, more keys than a worker has
// memory for, or too few blocks for the threads.
std::int64_t kept_queries(const ForwardProblem& problem, const Kernels& kernels) {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20;  // for each worker
  constexpr double kPacking = 0.2;                          // per block, relative to the time of a tile
  constexpr double kFirstPass = 1.1, kSecondPass = 0.6;     // relative to the time of a tile, if weights are recomputed
  const std::int64_t tile = kernels.rows_per_tile;
  const auto sequences = static_cast<std::int64_t>(problem.sequences.size());
  if (!can_keep_weights(problem) || query_count(problem) < sequences * tile) return 0;

  const std::int64_t tiles = query_blocks(problem, tile);
  double least = kFirstPass * static_cast<double>(tiles) / problem.threads +
                 kSecondPass * static_cast<double>(rounds(tiles, problem.threads));
  const double all = static_cast<double>(query_count(problem)) / static_cast<double>(tile);
  const bool even = !problem.hides_by_position();
  std::int64_t best = 0;
  for (std::int64_t queries = kTilesPerBlock * tile; queries > 0; queries -= kernels.lanes) {
    if (kernels.means_scratch_bytes(problem, queries) > kMostBytes) continue;
    const std::int64_t blocks = query_blocks(problem, queries);
    const double block = static_cast<double>(queries) / static_cast<double>(tile) + kPacking;
    double time = (all + static_cast<double>(blocks) * kPacking) / problem.threads;
    if (problem.threads > 1) time += (even ? 0.25 : 0.5) * block;  // the last worker to finish runs alone for a while
    if (problem.threads > 1 && even) {
      time = std::max(time, static_cast<double>(rounds(blocks, problem.threads)) * block);
    }
    if (time < least) least = time, best = queries;
  }
  return best;
}

// How a call is divided. Few blocks with many keys are divided further, by chunks, into splits, whose partials are then
// combined per block. The division does not affect the result.
struct Division {
  Division(const ForwardProblem& problem, const Kernels& kernels)
      : kept_queries(cpu::kept_queries(problem, kernels)),
        queries_per_block(kept_queries > 0 ? kept_queries : kernels.rows_per_tile),
        query_blocks(problem.outputs.captures.empty() ? 0 : cpu::query_blocks(problem, queries_per_block)),
        rows_per_block(cpu::rows_per_block(problem, kernels)),
        partial_floats(kernels.partial_floats(problem.value_size)) {
    std::int64_t products = 0;
    std::int64_t chunks = 0;
    std::int64_t partials = 0;
    for_each_block(problem, rows_per_block, [&](const RowBlock& block) {
      const std::int64_t count = chunks_of(problem, block).count();
      ++blocks;
      chunks += count;
      partials += count * block.row_count;
      products += block.row_count * count * kChunk * (problem.head_size + problem.value_size);
    });
    if (kept_queries > 0) blocks = 0;
    constexpr std::int64_t kTiny = 1 << 19;  // multiply-adds; about the cost of waking a thread
    if (problem.threads == 1 || products < kTiny) return;
    constexpr double kBusy = 0.8;  // if a smaller fraction of the threads is busy, splitting pays off
    const double busy =
        static_cast<double>(blocks) / static_cast<double>(rounds(blocks, problem.threads) * problem.threads);
    // The partials of many rows would be larger than k and v; such calls leave some threads idle instead.
    constexpr std::int64_t kPartialBytes = std::int64_t{8} << 20;  // for each thread
    const bool fits =
        partials * partial_floats * static_cast<std::int64_t>(sizeof(float)) <= problem.threads * kPartialBytes;
    if (kept_queries == 0 && busy < kBusy && chunks > blocks && fits) {
      chunks_per_split = std::max<std::int64_t>(1, chunks / (std::int64_t{problem.threads} * 8));
      for_each_split(problem, [&](const RowBlock&, PlaceRange) { ++splits; });
      partial_count = partials;
    }
    workers = std::min<std::int64_t>(problem.threads, std::max({blocks, splits, query_blocks}));
  }

  // Calls visit(block, chunks) for each split.
  template <class Visit>
  void for_each_split(const ForwardProblem& problem, const Visit& visit) const {
    for_each_block(problem, rows_per_block, [&](const RowBlock& block) {
      const std::int64_t count = chunks_of(problem, block).count();
      for (std::int64_t first = 0; first < count; first += chunks_per_split) {
        visit(block, PlaceRange{first, std::min(first + chunks_per_split, count)});
      }
    });
  }

  std::int64_t kept_queries;       // 0: weights are not kept; otherwise blocks of queries replace blocks of rows
  std::int64_t queries_per_block;  // if something is captured
  std::int64_t query_blocks;
  std::int64_t rows_per_block;
  std::int64_t blocks = 0;
  std::int64_t workers = 1;
  std::int64_t splits = 0;  // 0: blocks are not split
  std::int64_t chunks_per_split = 0;
  std::int64_t partial_count = 0;
  std::int64_t partial_floats;
};

// A call's memory: row sums, the lists of work items, partials, and scratch memory for each worker.
class Workspace {
 public:
  Workspace(Arena& arena, const ForwardProblem& problem, const Kernels& kernels, const Division& division)
      : division_(division) {
    const bool captures = !problem.outputs.captures.empty();
    const std::int64_t rows =
        captures && !keeps_weights() ? problem.query.size(0) * problem.query_heads * problem.query.size(2) : 0;
    sums = {arena.take<float>(rows), arena.take<float>(rows), problem.query_heads, problem.query.size(2)};
    blocks = arena.take<ChunkBlock>(division_.blocks);
    splits = arena.take<ChunkBlock>(division_.splits);
    partials_ = arena.take<float>(division_.partial_count * division_.partial_floats);
    query_blocks_ = arena.take<QueryBlock>(division_.query_blocks);
    queries_ = arena.take<std::int64_t>(captures ? query_count(problem) : 0);
    workers_ = division_.workers;
    worker_bytes_ = keeps_weights() ? kernels.means_scratch_bytes(problem, division_.kept_queries)
                                    : std::max(kernels.scratch_bytes(problem, division_.rows_per_block),
                                               captures ? kernels.capture_scratch_bytes(problem) : 0);
    scratch_ = arena.take<std::byte>(workers_ * static_cast<std::int64_t>(worker_bytes_));
  }

  // Lists the work items. Blocks that are not split are sorted, longest first, so that the last to finish are short.
  void plan(const ForwardProblem& problem) const {
    std::size_t count = 0;
    float* partials = partials_.data();
    for_each_block(problem, division_.rows_per_block, [&](const RowBlock& block) {
      blocks[count] = {block, {0, chunks_of(problem, block).count()}, partials};
      if (split()) partials += partials_of(blocks[count]);
      ++count;
    });
    const auto work = [](const ChunkBlock& block) { return block.rows.row_count * block.chunks.count(); };
    if (!split()) {
      std::sort(blocks.begin(), blocks.end(), [&](const auto& a, const auto& b) { return work(a) > work(b); });
      return;
    }
    count = 0;
    partials = partials_.data();
    division_.for_each_split(problem, [&](const RowBlock& block, PlaceRange chunks) {
      splits[count] = {block, chunks, partials};
      partials += partials_of(splits[count++]);
    });
  }

  // The queries that at least one capture requests, in blocks, longest first.
  std::span<const QueryBlock> plan_captures(const ForwardProblem& problem) const {
    const auto is_chosen = [&](std::int64_t query) {
      return std::any_of(problem.outputs.captures.begin(), problem.outputs.captures.end(), [&](const Capture& capture) {
        const std::vector<std::int64_t>& chosen = capture.of.queries;
        return chosen.empty() || std::find(chosen.begin(), chosen.end(), query) != chosen.end();
      });
    };
    const auto most = static_cast<std::size_t>(division_.queries_per_block);
    std::size_t count = 0;
    std::size_t first = 0;  // in queries_: where the sequence's queries begin
    for (const SequenceSpan& sequence : problem.sequences) {
      std::size_t last = first;
      for (std::int64_t i = 0; i < sequence.query_count; ++i) {
        if (is_chosen(sequence.query_begin + i)) queries_[last++] = i;
      }
      for (; first < last; first += std::min(most, last - first)) {
        query_blocks_[count++] = {&sequence, queries_.subspan(first, std::min(most, last - first))};
      }
    }
    const auto work = [&](const QueryBlock& block) {
      const VisibleKeys keys = problem.visible_keys(*block.sequence, block.queries.back());
      return static_cast<std::int64_t>(block.queries.size()) * (keys.leading + keys.last - keys.first);
    };
    const std::span<QueryBlock> blocks_of_queries = query_blocks_.first(count);
    std::sort(blocks_of_queries.begin(), blocks_of_queries.end(),
              [&](const auto& a, const auto& b) { return work(a) > work(b); });
    return blocks_of_queries;
  }

  bool split() const { return division_.splits > 0; }
  bool keeps_weights() const { return division_.kept_queries > 0; }
  std::int64_t workers() const { return workers_; }
  std::span<std::byte> scratch(std::int64_t worker) const {
    return scratch_.subspan(static_cast<std::size_t>(worker) * worker_bytes_, worker_bytes_);
  }

  RowSums sums;
  std::span<ChunkBlock> blocks, splits;

 private:
  std::int64_t partials_of(const ChunkBlock& block) const {
    return block.chunks.count() * block.rows.row_count * division_.partial_floats;
  }

  const Division& division_;
  std::int64_t workers_ = 1;
  std::size_t worker_bytes_ = 0;
  std::span<float> partials_;
  std::span<QueryBlock> query_blocks_;
  std::span<std::int64_t> queries_;
  std::span<std::byte> scratch_;
};

// Calls work(item, scratch) for each item.
template <class Item, class Work>
void for_each(const ForwardProblem& problem, const Workspace& workspace, std::span<const Item> items,
              const Work& work) {
  run_dynamic(*problem.parallel_for, workspace.workers(), static_cast<std::int64_t>(items.size()),
              [&](std::int64_t n, std::int64_t worker) {
                work(items[static_cast<std::size_t>(n)], workspace.scratch(worker));
              });
}

Plan plan_forward(const ForwardProblem& problem) {
  const Kernels& kernels = kernels_of(problem);
  const Division division(problem, kernels);
  Arena counter;
  const Workspace sizes(counter, problem, kernels, division);
  return {division, {.host = counter.used()}};
}

void forward(const ForwardProblem& problem, const Plan& plan, const Buffers& buffers) {
  const Kernels& kernels = kernels_of(problem);
  Arena arena(buffers.host);
  const Workspace workspace(arena, problem, kernels, plan.decisions<Division>());
  if (workspace.keeps_weights()) {
    return for_each(
        problem, workspace, workspace.plan_captures(problem),
        [&](const QueryBlock& block, std::span<std::byte> scratch) { kernels.attend_means(problem, block, scratch); });
  }
  workspace.plan(problem);

  const auto each = [&](std::span<const ChunkBlock> blocks, const auto& work) {
    for_each(problem, workspace, blocks, work);
  };
  if (workspace.split()) {
    each(workspace.splits, [&](const ChunkBlock& split, std::span<std::byte> scratch) {
      kernels.attend_chunks(problem, split, scratch);
    });
    each(workspace.blocks, [&](const ChunkBlock& block, std::span<std::byte> scratch) {
      kernels.combine(problem, block, workspace.sums, scratch);
    });
  } else {
    each(workspace.blocks, [&](const ChunkBlock& block, std::span<std::byte> scratch) {
      kernels.attend(problem, block.rows, workspace.sums, scratch);
    });
  }
  if (problem.outputs.captures.empty()) return;

  for_each(problem, workspace, workspace.plan_captures(problem),
           [&](const QueryBlock& block, std::span<std::byte> scratch) {
             kernels.capture(problem, block, workspace.sums, scratch);
           });
}

std::string cannot(DType dtype) {
  if (dtype == DType::f64) return "the cpu engine works in f32; f64 goes to the reference engine";
  return {};
}

}  // namespace

}  // namespace cpu

constinit const EngineRow kCpuEngine = {
    .engine = Engine::cpu,
    .name = "cpu",
    .device = Device::Kind::cpu,
    .device_name = "cpu",
    .variant = []() -> const void* { return &cpu::chosen_instruction_set(); },
    .attention = {.cannot = [](const AttentionProblem& problem) { return cpu::cannot(problem.query.dtype()); },
                  .plan = cpu::plan_forward,
                  .run = cpu::forward,
                  .plan_backward = cpu::plan_backward,
                  .run_backward = cpu::backward},
    .product = {.cannot = cpu::cannot,
                .packed_bytes = cpu::packed_bytes,
                .pack = cpu::pack,
                .plan = cpu::plan_product,
                .run = cpu::multiply},
    .layer = &cpu::kLayerOps,
    .memory = &core::kHostMemory,
};

}  // namespace rapt
