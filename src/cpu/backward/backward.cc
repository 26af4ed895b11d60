// The steps of backward, one after the other; all but the last are divided among workers.
//
//   prepare          by tiles of rows: the maximum, the sum and delta = Σ_j p_j g_j − dlse of each row
//   differentiate    by blocks of keys: dk and dv of their chunks, and each chunk's part of dq, in order
//   store            dq, if it was summed in the workspace
//   masks            by parts of their gradients: each element is a sum in one fixed order
//   sinks            each element is a sum in one fixed order
#include "cpu/backward/backward.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/copy.h"
#include "core/elements.h"
#include "cpu/backward/ordered_dq.h"
#include "cpu/convert.h"
#include "cpu/run_dynamic.h"

namespace rapt::cpu {

namespace {

const Kernels& kernels_of(const AttentionProblem& problem) {
  return static_cast<const InstructionSet*>(problem.variant)->kernels();
}

std::int64_t chunk_count(const SequenceSpan& sequence) { return (sequence.key_count + kChunk - 1) / kChunk; }

std::int64_t rows_of(const AttentionProblem& problem) {
  return problem.query.size(0) * problem.query_heads * problem.query.size(2);
}

// Calls visit(rows, number) for each tile of rows; numbers ascend from 0, and those of a kv head are consecutive.
template <class Visit>
void for_each_tile(const BackwardProblem& problem, const Kernels& kernels, const Visit& visit) {
  std::int64_t number = 0;
  for (const SequenceSpan& sequence : problem.sequences) {
    const HeadTiles tiles(sequence.query_count, kernels.rows_per_tile, kernels.lanes);
    for (std::int64_t head = 0; head < problem.query_heads; ++head) {
      for (std::int64_t tile = 0; tile < tiles.count; ++tile) visit(tiles(sequence, head, tile), number++);
    }
  }
}

// The number of chunks in a KeyBlock, one or two (the last block of a sequence may have fewer). A tile of rows is
// loaded once per block.
std::int64_t chunks_at_once(const BackwardProblem& problem) {
  // With this width, k, v, dk and dv of two chunks take 512 KiB of a core's L2.
  constexpr std::int64_t kWidest = 128;
  if (problem.head_size + problem.value_size > kWidest) return 1;
  std::int64_t chunks = 0, pairs = 0, least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const SequenceSpan& sequence : problem.sequences) {
    const std::int64_t count = chunk_count(sequence);
    chunks += problem.kv_heads * count;
    pairs += problem.kv_heads * ((count + 1) / 2);
    least = std::min(least, count), most = std::max(most, count);
  }
  if (most < 2) return 1;
  if (problem.threads == 1) return 2;
  // A block has two chunks only if the threads still finish together. They do if each thread gets the same number of kv
  // heads and all have the same number of keys, or if every chunk is the same amount of work and pairs can be shared
  // among the threads as evenly as single chunks. Under a causal mask, single chunks divide a single head more evenly,
  // and the threads wait less for each other.
  const auto rounds = [&](std::int64_t items) { return (items + problem.threads - 1) / problem.threads; };
  const auto heads = static_cast<std::int64_t>(problem.sequences.size()) * problem.kv_heads;
  const bool same_work = !problem.hides_by_position();
  const bool even_heads = heads % problem.threads == 0 && least == most;
  return even_heads || (same_work && 2 * rounds(pairs) <= rounds(chunks)) ? 2 : 1;
}

// Calls visit(block) for each block of keys. Blocks of one kv head come in ascending order. As many heads as there are
// threads are interleaved, so that a worker rarely waits for the worker that has the previous chunk.
template <class Visit>
void for_each_key_block(const BackwardProblem& problem, const Kernels& kernels, std::int64_t at_once,
                        const Visit& visit) {
  const auto heads = static_cast<std::int64_t>(problem.sequences.size()) * problem.kv_heads;
  const auto head_at = [&](std::int64_t n) {
    return KeyBlock{
        &problem.sequences[static_cast<std::size_t>(n / problem.kv_heads)], n % problem.kv_heads, {0, 0}, 0};
  };
  std::int64_t first_tile = 0;  // of the first of the interleaved heads
  for (std::int64_t first = 0; first < heads; first += problem.threads) {
    const std::int64_t last = std::min(heads, first + problem.threads);
    std::int64_t most = 0;
    for (std::int64_t n = first; n < last; ++n) most = std::max(most, chunk_count(*head_at(n).sequence));
    std::int64_t next_tile = first_tile;
    for (std::int64_t chunk = 0; chunk < std::max<std::int64_t>(most, 1); chunk += at_once) {
      next_tile = first_tile;
      for (std::int64_t n = first; n < last; ++n) {
        KeyBlock block = head_at(n);
        block.chunks = {chunk, std::min(chunk + at_once, chunk_count(*block.sequence))}, block.first_tile = next_tile;
        const HeadTiles tiles(block.sequence->query_count, kernels.rows_per_tile, kernels.lanes);
        next_tile += problem.query_heads > 0 ? problem.group * tiles.count : 0;
        if (chunk < chunk_count(*block.sequence)) visit(block);
      }
    }
    first_tile = next_tile;
  }
}

// Calls visit(block) for each part of each mask's gradient.
template <class Visit>
void for_each_mask_block(const BackwardProblem& problem, const Kernels& kernels, const Visit& visit) {
  const std::span<const SequenceSpan> all = problem.sequences;
  const bool packed = all.size() > 1 && all.front().batch == all.back().batch;
  for (std::size_t n = 0; n < problem.gradients.dmasks.size(); ++n) {
    const TensorView& to = problem.gradients.dmasks[n].to;
    const int rank = to.rank();
    const bool one_query = to.size(rank - 2) == 1;
    const bool one_key = to.size(rank - 1) == 1;
    const bool one_head = rank < 4 || to.size(1) == 1;
    const bool one_batch = rank < 4 || to.size(0) == 1;
    // Packed sequences have separate positions in the mask, unless the mask has only one position.
    const std::size_t together = packed ? (one_query && one_key ? all.size() : 1) : one_batch ? all.size() : 1;
    const std::int64_t heads = one_head ? problem.query_heads : 1;
    for (std::size_t s = 0; s < all.size() && together > 0; s += together) {
      const std::span<const SequenceSpan> sequences = all.subspan(s, together);
      std::int64_t chunks = 0, queries = 0;
      for (const SequenceSpan& sequence : sequences) {
        chunks = std::max(chunks, chunk_count(sequence));
        queries = std::max(queries, sequence.query_count);
      }
      for (std::int64_t head = 0; head < problem.query_heads && chunks > 0; head += heads) {
        MaskBlock block{n, sequences, head, heads, 0, queries, {0, chunks}};
        if (one_query && one_key) {
          visit(block);
        } else if (one_query) {
          for (std::int64_t chunk = 0; chunk < chunks; ++chunk) block.chunks = {chunk, chunk + 1}, visit(block);
        } else {
          for (; block.first_query < queries; block.first_query += kernels.rows_per_tile) {
            block.query_count = std::min(kernels.rows_per_tile, queries - block.first_query);
            visit(block);
          }
        }
      }
    }
  }
}

// Row stride of dq in the workspace, in floats.
std::int64_t padded_row(const BackwardProblem& problem, const Kernels& kernels) {
  return (problem.head_size + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
}

// How a call is divided. The division does not affect the result.
struct Division {
  Division(const BackwardProblem& problem, const Kernels& kernels) : chunks_at_once(cpu::chunks_at_once(problem)) {
    for_each_tile(problem, kernels, [&](const HeadRows&, std::int64_t) { ++tiles; });
    for_each_key_block(problem, kernels, chunks_at_once, [&](const KeyBlock&) { ++key_blocks; });
    for_each_mask_block(problem, kernels, [&](const MaskBlock&) { ++mask_blocks; });
    constexpr std::int64_t kTiny = 1 << 19;  // multiply-adds; about the cost of waking a thread
    const std::int64_t products = rows_of(problem) * problem.key_length * (problem.head_size + problem.value_size);
    const std::int64_t items = std::max({tiles, key_blocks, mask_blocks});
    workers = products < kTiny ? 1 : std::clamp<std::int64_t>(items, 1, problem.threads);
  }

  std::int64_t chunks_at_once;
  std::int64_t tiles = 0, key_blocks = 0, mask_blocks = 0;
  std::int64_t workers = 1;
};

struct Workspace {
  Workspace(Arena& arena, const BackwardProblem& problem, const Kernels& kernels, const Division& division)
      : workers(division.workers) {
    const std::int64_t rows = rows_of(problem);
    state.sums = {arena.take<float>(rows), arena.take<float>(rows), problem.query_heads, problem.query.size(2)};
    state.delta = arena.take<float>(rows);
    take_queries(arena, problem, kernels);
    tiles = arena.take<HeadRows>(division.tiles);
    key_blocks = arena.take<KeyBlock>(division.key_blocks);
    masks = arena.take<MaskBlock>(division.mask_blocks);
    state.next_chunks = arena.make<std::atomic<std::int64_t>>(division.tiles).data();
    worker_bytes = kernels.backward.scratch_bytes(problem, division.chunks_at_once);
    scratch_ = arena.take<std::byte>(workers * static_cast<std::int64_t>(worker_bytes));
    pending = arena.make<PendingDq>(workers);
    // A single worker never has to wait for another, so it needs no buffers for parts of dq.
    const std::int64_t row = padded_row(problem, kernels);
    const std::int64_t parts = workers > 1 && problem.gradients.dquery.defined() ? PendingDq::kMost : 0;
    for (std::int64_t n = 0; n < workers; ++n) {
      const std::span<float> memory = arena.take<float>(parts * kernels.rows_per_tile * row);
      if (!pending.empty()) pending[static_cast<std::size_t>(n)].begin(memory, kernels.rows_per_tile, row);
    }
  }

  std::span<std::byte> scratch(std::int64_t worker) const {
    return scratch_.subspan(static_cast<std::size_t>(worker) * worker_bytes, worker_bytes);
  }

  BackwardState state;
  std::span<HeadRows> tiles;
  std::span<KeyBlock> key_blocks;
  std::span<MaskBlock> masks;
  std::span<PendingDq> pending;  // of each worker
  std::int64_t workers;
  std::size_t worker_bytes = 0;

 private:
  void take_queries(Arena& arena, const BackwardProblem& problem, const Kernels& kernels) {
    const TensorView& to = problem.gradients.dquery;
    if (!to.defined()) return;
    state.dquery_in_place = reads_in_place(to) && problem.head_size % kernels.lanes == 0;
    if (state.dquery_in_place) {
      state.dquery = static_cast<float*>(to.data());
      for (int dim = 0; dim < 3; ++dim) state.dquery_strides[dim] = to.stride(dim);
      return;
    }
    const std::int64_t row = padded_row(problem, kernels);
    state.dquery = arena.take<float>(rows_of(problem) * row).data();
    state.dquery_strides[0] = problem.query_heads * problem.query.size(2) * row;
    state.dquery_strides[1] = problem.query.size(2) * row;
    state.dquery_strides[2] = row;
  }

  std::span<std::byte> scratch_;
};

// Calls work(n, worker) for each of the items.
template <class Item, class... Work>
void for_each(const BackwardProblem& problem, const Workspace& workspace, std::span<Item> items, const Work&... work) {
  run_dynamic(*problem.parallel_for, workspace.workers, static_cast<std::int64_t>(items.size()), work...);
}

void clear(const TensorView& to) {
  if (to.is_contiguous()) {  // zero has all bits 0 in every type
    const auto bytes = static_cast<std::size_t>(to.count()) * size_of(to.dtype());
    if (bytes > 0) std::memset(to.data(), 0, bytes);
    return;
  }
  constexpr double kZero = 0.0;
  core::copy_elements(ConstTensorView(&kZero, Dims{}).expand(to.shape()), to);
}

// Writes 0 for keys past a key length, which belong to no sequence.
void clear_absent_keys(const BackwardProblem& problem, const TensorView& to) {
  if (!to.defined()) return;
  const std::span<const SequenceSpan> all = problem.sequences;
  for (std::size_t n = 0; n < all.size(); ++n) {
    const bool is_last = n + 1 == all.size() || all[n + 1].batch != all[n].batch;
    const std::int64_t end = is_last ? problem.key_length : all[n + 1].key_begin;
    const std::int64_t begin = all[n].key_begin + all[n].key_count;
    if (begin < end) clear(to.slice(0, all[n].batch, all[n].batch + 1).slice(2, begin, end));
  }
}

// dsink_h = −Σ over b, i of the sink's weight times delta: one sum per b, added in ascending order.
void store_sinks(const BackwardProblem& problem, const BackwardState& state) {
  const TensorView& to = problem.gradients.dsinks;
  if (!to.defined()) return;
  const ConstTensorView& sinks = problem.sinks;
  for (std::int64_t head = 0; head < problem.query_heads; ++head) {
    const double sink = load(sinks.data(), sinks.dtype(), head * sinks.stride(0));
    float total = 0.0F;
    for (const SequenceSpan& sequence : problem.sequences) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < sequence.query_count; ++i) {
        const std::size_t place = state.sums.place(sequence.batch, head, sequence.query_begin + i);
        const double weight = std::exp(sink - double{state.sums.m[place]}) * double{state.sums.l[place]};
        if (weight != 0.0) sum -= weight * double{state.delta[place]};
      }
      total += static_cast<float>(sum);
    }
    store(to.data(), to.dtype(), head * to.stride(0), double{total});
  }
}

}  // namespace

Plan plan_backward(const BackwardProblem& problem) {
  const Kernels& kernels = kernels_of(problem);
  const Division division(problem, kernels);
  Arena counter;
  const Workspace sizes(counter, problem, kernels, division);
  return {division, {.host = counter.used()}};
}

void backward(const BackwardProblem& problem, const Plan& plan, const Buffers& buffers) {
  const Kernels& kernels = kernels_of(problem);
  const auto& division = plan.decisions<Division>();
  Arena arena(buffers.host);
  const Workspace workspace(arena, problem, kernels, division);
  const BackwardState& state = workspace.state;
  const BackwardProblem::Gradients& gradients = problem.gradients;
  for_each_tile(problem, kernels, [&](const HeadRows& rows, std::int64_t number) {
    workspace.tiles[static_cast<std::size_t>(number)] = rows;
  });
  std::size_t count = 0;
  for_each_key_block(problem, kernels, division.chunks_at_once,
                     [&](const KeyBlock& block) { workspace.key_blocks[count++] = block; });
  count = 0;
  for_each_mask_block(problem, kernels, [&](const MaskBlock& block) { workspace.masks[count++] = block; });
  clear_absent_keys(problem, gradients.dkey);
  clear_absent_keys(problem, gradients.dvalue);
  for (const MaskGradient& gradient : gradients.dmasks) clear(gradient.to);

  const auto item = [](const auto& items, std::int64_t n) -> const auto& { return items[static_cast<std::size_t>(n)]; };
  for_each(problem, workspace, workspace.tiles, [&](std::int64_t n, std::int64_t worker) {
    kernels.backward.prepare(problem, item(workspace.tiles, n), n, state, workspace.scratch(worker));
  });
  if (gradients.dquery.defined() || gradients.dkey.defined() || gradients.dvalue.defined()) {
    const auto pending = [&](std::int64_t worker) -> PendingDq& {
      return workspace.pending[static_cast<std::size_t>(worker)];
    };
    for_each(
        problem, workspace, workspace.key_blocks,
        [&](std::int64_t n, std::int64_t worker) {
          kernels.backward.differentiate(problem, item(workspace.key_blocks, n), state, pending(worker),
                                         workspace.scratch(worker));
        },
        [&](std::int64_t worker) { pending(worker).add_rest(); });
  }
  if (gradients.dquery.defined() && !state.dquery_in_place) {
    for_each(problem, workspace, workspace.tiles, [&](std::int64_t n, std::int64_t) {
      kernels.backward.store_queries(problem, item(workspace.tiles, n), state);
    });
  }
  for_each(problem, workspace, workspace.masks, [&](std::int64_t n, std::int64_t worker) {
    kernels.backward.differentiate_mask(problem, item(workspace.masks, n), state, workspace.scratch(worker));
  });
  store_sinks(problem, state);
}

}  // namespace rapt::cpu
