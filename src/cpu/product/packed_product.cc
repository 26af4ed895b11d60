// The packed matrix product: packing, and dividing rows and panels among workers.
#include "cpu/product/packed_product.h"

#include <algorithm>
#include <cstring>

#include "core/elements.h"
#include "cpu/kernel_table.h"
#include "cpu/product/packed_order.h"
#include "cpu/run_dynamic.h"

namespace rapt::cpu {

namespace {

const Kernels& kernels_of(const PackedWeights& weights) {
  return static_cast<const InstructionSet*>(weights.variant)->kernels();
}

PackedOrder order_of(const PackedWeights& weights, const Kernels& kernels) {
  return {weights, kernels.rows_per_tile, kernels.lanes};
}

void pack_panel(const ConstTensorView& from, const PackedWeights& to, const PackedOrder& order, std::int64_t panel) {
  const std::int64_t width = order.width(panel);
  std::memset(order.panel(panel), 0, static_cast<std::size_t>(order.bytes_of_width(width)));
  with_element_type(to.dtype, [&](auto stored) {
    with_element_type(from.dtype(), [&](auto given) {
      using Stored = decltype(stored);
      using Given = decltype(given);
      auto* place = reinterpret_cast<Stored*>(order.panel(panel));
      const auto* first = static_cast<const Given*>(from.data()) + order.first_column(panel) * from.stride(0);
      const auto pack_one = [&](std::int64_t column, std::int64_t k) {
        const Given& number = first[column * from.stride(0) + k * from.stride(1)];
        if constexpr (std::is_same_v<Stored, Given>) {
          place[order.place(k, column, width)] = number;
        } else {
          place[order.place(k, column, width)] = from_double<Stored>(to_double(number));
        }
      };
      const std::int64_t columns = order.columns(panel);
      // Reads in memory order, because the matrix may be given transposed.
      if (from.stride(0) < from.stride(1)) {
        for (std::int64_t k = 0; k < to.inputs; ++k) {
          for (std::int64_t column = 0; column < columns; ++column) pack_one(column, k);
        }
      } else {
        for (std::int64_t column = 0; column < columns; ++column) {
          for (std::int64_t k = 0; k < to.inputs; ++k) pack_one(column, k);
        }
      }
    });
  });
}

// About the cost of waking a thread, in multiply-adds and in packed elements.
constexpr std::int64_t kTinyProduct = 1 << 19;
constexpr std::int64_t kTinyPack = 1 << 15;

// How a product is divided into blocks: a grid of row blocks and column blocks.
struct Division {
  Division(const ProductProblem& problem, const Kernels& kernels)
      : rows(problem.y.size(0)), panels(order_of(problem.weights, kernels).panels()) {
    constexpr std::int64_t kRows = 128;         // in one block: packed weights are read once for them
    constexpr std::int64_t kNumbers = 1 << 18;  // elements of y in one block, which keeps their sums between parts of k
    constexpr std::int64_t kPanelsTogether = 4;   // panels that are multiplied with few rows at once
    constexpr std::int64_t kBlocksPerWorker = 4;  // to balance the load
    if (rows == 0 || panels == 0) return;
    const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    const bool tiny = rows * problem.weights.outputs * problem.weights.inputs < kTinyProduct;
    const std::int64_t threads = tiny ? 1 : problem.workers.threads;

    row_blocks = ceil_div(rows, kRows);
    rows_per_block = ceil_div(ceil_div(rows, row_blocks), 8) * 8;
    row_blocks = ceil_div(rows, rows_per_block);
    column_blocks = ceil_div(std::min(rows, rows_per_block) * problem.weights.outputs, kNumbers);
    if (threads > 1) column_blocks = std::max(column_blocks, ceil_div(threads * kBlocksPerWorker, row_blocks));
    column_blocks = ceil_div(panels, ceil_div(ceil_div(panels, column_blocks), kPanelsTogether) * kPanelsTogether);
    // Every worker gets the same number of blocks, because with few rows all blocks together take only a few
    // microseconds.
    if (row_blocks == 1) column_blocks = std::min(panels, ceil_div(column_blocks, threads) * threads);
    workers = std::min(threads, row_blocks * column_blocks);
    // The last row block may have few rows, which are processed in another way and need another amount of memory.
    worker_bytes = std::max(kernels.product_scratch_bytes(problem, widest(0)),
                            kernels.product_scratch_bytes(problem, widest(row_blocks - 1)));
  }

  ProductBlock block(std::int64_t n) const {
    const std::int64_t row = n / column_blocks * rows_per_block;
    const std::int64_t column = n % column_blocks;
    const std::int64_t panel = column * panels / column_blocks;
    return {row, std::min(rows_per_block, rows - row), panel, (column + 1) * panels / column_blocks - panel};
  }
  // A block with the largest number of panels.
  ProductBlock widest(std::int64_t row_block) const {
    const std::int64_t row = row_block * rows_per_block;
    return {row, std::min(rows_per_block, rows - row), 0, (panels + column_blocks - 1) / column_blocks};
  }

  std::int64_t rows, panels;
  std::int64_t rows_per_block = 0;
  std::int64_t row_blocks = 0, column_blocks = 0;
  std::int64_t workers = 0;
  std::size_t worker_bytes = 0;
};

}  // namespace

std::size_t packed_bytes(const PackedWeights& weights) { return order_of(weights, kernels_of(weights)).bytes(); }

void pack(const ConstTensorView& from, const PackedWeights& to, const Workers& workers) {
  const Kernels& kernels = kernels_of(to);
  const PackedOrder order = order_of(to, kernels);
  if (order.panels() == 0) return;
  const bool tiny = to.outputs * to.inputs < kTinyPack;
  run_dynamic(*workers.parallel_for, tiny ? 1 : workers.threads, order.panels(),
              [&](std::int64_t panel, std::int64_t /*worker*/) { pack_panel(from, to, order, panel); });
}

Plan plan_product(const ProductProblem& problem) {
  const Division division(problem, kernels_of(problem.weights));
  return {division, {.host = static_cast<std::size_t>(division.workers) * division.worker_bytes}};
}

void multiply(const ProductProblem& problem, const Plan& plan, const Buffers& buffers) {
  const Kernels& kernels = kernels_of(problem.weights);
  const auto& division = plan.decisions<Division>();
  if (division.workers == 0) return;
  run_dynamic(*problem.workers.parallel_for, division.workers, division.row_blocks * division.column_blocks,
              [&](std::int64_t n, std::int64_t worker) {
                kernels.multiply(problem, division.block(n),
                                 buffers.host.subspan(static_cast<std::size_t>(worker) * division.worker_bytes,
                                                      division.worker_bytes));
              });
}

}  // namespace rapt::cpu
