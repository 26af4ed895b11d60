// The packed matrix product: rows of x times panels of a packed matrix.
//
// Every sum is one chain of fused multiply-adds, k ascending, from its bias on. Where k is worked on in parts, the sums
// wait in memory as f32, which changes none of them.
#if defined(RAPT_CPU_PACKED_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_PACKED_PRODUCT_INL_H
#undef RAPT_CPU_PACKED_PRODUCT_INL_H
#else
#define RAPT_CPU_PACKED_PRODUCT_INL_H
#endif

#include <algorithm>
#include <type_traits>

#include "cpu/convert-inl.h"
#include "cpu/kernel_table.h"
#include "cpu/packed_order.h"
#include "cpu/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// ---------------------------------------------------------------- a vector of packed weights

// Two rows of a panel lie at `rows`, `width` numbers each: vector v of the first one or, if kOdd, of the second.
struct StoredF32 {
  static constexpr std::int64_t kBytes = 4;
  template <bool kOdd>
  static HWY_INLINE Vec Columns(const std::byte* rows, std::int64_t width, std::int64_t v) {
    return Load(reinterpret_cast<const float*>(rows) + (kOdd ? width : 0) + v * kLanes);
  }
};

struct StoredBf16 {
  static constexpr std::int64_t kBytes = 2;
  template <bool kOdd>
  static HWY_INLINE Vec Columns(const std::byte* rows, std::int64_t /*width*/, std::int64_t v) {
    const U32 u32;
    const auto both = hn::Load(u32, reinterpret_cast<const std::uint32_t*>(rows) + v * kLanes);
    return hn::BitCast(kF32, kOdd ? hn::And(both, hn::Set(u32, 0xFFFF0000U)) : hn::ShiftLeft<16>(both));
  }
};

struct StoredF16 {
  static constexpr std::int64_t kBytes = 2;
  template <bool kOdd>
  static HWY_INLINE Vec Columns(const std::byte* rows, std::int64_t width, std::int64_t v) {
    return FromF16(hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(rows) + (kOdd ? width : 0) + v * kLanes));
  }
};

// ---------------------------------------------------------------- one register tile

// Some compilers read a vector again for each use, to save a register that is there: then loads, not multiplications,
// set the pace.
HWY_INLINE Vec KeepInRegister(Vec v) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// Some rows of x times some panels, for a part of k.
struct ProductTile {
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  const std::byte* panel = nullptr;
  std::int64_t panel_bytes = 0;  // from one panel to the next
  std::int64_t inputs = 0;       // of this part
  const float* from = nullptr;   // what the sums start with
  std::int64_t from_stride = 0;
  float* to = nullptr;  // where they go
  std::int64_t to_stride = 0;
};

// kRows rows times kPanels panels that are kV vectors wide.
template <class Stored, int kRows, int kPanels, int kV>
HWY_NOINLINE void MultiplyTile(const ProductTile& tile) {
  constexpr std::int64_t kWidth = kV * kLanes;
  constexpr int kColumns = kPanels * kV;
  Vec sums[static_cast<std::size_t>(kRows)][static_cast<std::size_t>(kColumns)];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) sums[r][c] = hn::LoadU(kF32, tile.from + r * tile.from_stride + c * kLanes);
  }

  const float* x[static_cast<std::size_t>(kRows)];
  for (int r = 0; r < kRows; ++r) x[r] = tile.x + r * tile.x_stride;
  const std::byte* panel = tile.panel;
  const std::int64_t panel_bytes = tile.panel_bytes;
  const auto add = [&](std::int64_t k, auto odd) HWY_ATTR {
    const auto columns = [&](int c) HWY_ATTR {
      return Stored::template Columns<odd()>(panel + c / kV * panel_bytes, kWidth, c % kV);
    };
    // Whichever there are fewer of stay in registers while the others come and go.
    if constexpr (kRows < kColumns && kRows <= 2) {
      Vec factors[static_cast<std::size_t>(kRows)];
      for (int r = 0; r < kRows; ++r) factors[r] = Set(x[r][k]);
      for (int c = 0; c < kColumns; ++c) {
        const Vec column = columns(c);
        for (int r = 0; r < kRows; ++r) sums[r][c] = hn::MulAdd(factors[r], column, sums[r][c]);
      }
    } else {
      Vec column[static_cast<std::size_t>(kColumns)];
      for (int c = 0; c < kColumns; ++c) column[c] = KeepInRegister(columns(c));
      for (int r = 0; r < kRows; ++r) {
        const Vec factor = Set(x[r][k]);
        for (int c = 0; c < kColumns; ++c) sums[r][c] = KeepInRegister(hn::MulAdd(factor, column[c], sums[r][c]));
      }
    }
  };
  std::int64_t k = 0;
  for (; k + 2 <= tile.inputs; k += 2, panel += 2 * kWidth * Stored::kBytes) {
    add(k, std::false_type());
    add(k + 1, std::true_type());
  }
  if (k < tile.inputs) add(k, std::false_type());

  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) hn::StoreU(sums[r][c], kF32, tile.to + r * tile.to_stride + c * kLanes);
  }
}

// ---------------------------------------------------------------- a block

// Panels that few rows are multiplied with at once, for enough chains to keep the multipliers busy.
constexpr std::int64_t kPanelsTogether = 4;

// Rows in tiles of nearly the same height: a tile of one row would wait for its few chains.
struct TileHeights {
  explicit TileHeights(std::int64_t rows)
      : tiles((rows + kBroadcasts - 1) / kBroadcasts), height(rows / tiles), higher(rows % tiles) {}
  std::int64_t of(std::int64_t tile) const { return tile < higher ? height + 1 : height; }

  std::int64_t tiles, height, higher;
};

// kRows rows times `panels` panels, all of one width.
template <class Stored, int kRows>
void MultiplyPanels(ProductTile tile, std::int64_t panels, std::int64_t vectors) {
  const auto advance = [&](std::int64_t count) {
    tile.panel += count * tile.panel_bytes;
    tile.from += count * kTileRows;
    tile.to += count * kTileRows;
    panels -= count;
  };
  if constexpr (kRows <= 2) {
    constexpr int kTogether = kPanelsTogether / kRows;
    for (; vectors == kVectors && panels >= kTogether; advance(kTogether)) {
      MultiplyTile<Stored, kRows, kTogether, kVectors>(tile);
    }
  }
  for (; panels > 0; advance(1)) {
    WithVectors(vectors, [&](auto count_of) { MultiplyTile<Stored, kRows, 1, count_of()>(tile); });
  }
}

template <class Stored, int kRows = kBroadcasts>
void MultiplyRows(std::int64_t rows, const ProductTile& tile, std::int64_t panels, std::int64_t vectors) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MultiplyRows<Stored, kRows - 1>(rows, tile, panels, vectors);
  }
  MultiplyPanels<Stored, kRows>(tile, panels, vectors);
}

// Everything one worker writes on the way to y.
struct ProductScratch {
  ProductScratch(Arena& arena, const ProductProblem& problem, const ProductBlock& block)
      : is_few(block.row_count <= kBroadcasts),
        step(Step(problem.weights.inputs, is_few)),
        x_stride(RoundUp(step, 16) + 16),
        columns(block.panel_count * kTileRows),
        x(arena.take<float>(block.row_count * x_stride)),
        bias(arena.take<float>(columns)),
        sums(arena.take<float>(step < problem.weights.inputs ? block.row_count * columns : 0)) {}

  // How much of k is worked on at a time: for many rows no more than lets a panel's part and x stay in the second
  // cache.
  static std::int64_t Step(std::int64_t inputs, bool is_few) {
    constexpr std::int64_t kStep = 1024;
    if (is_few || inputs <= kStep) return inputs;
    const std::int64_t parts = (inputs + kStep - 1) / kStep;
    return RoundUp((inputs + parts - 1) / parts, 2);  // even: see PackedOrder
  }

  bool is_few;
  std::int64_t step, x_stride, columns;
  std::span<float> x;     // (rows, step): x as f32. The stride keeps rows from falling on the same cache lines
  std::span<float> bias;  // (columns)
  std::span<float> sums;  // (rows, columns): between the parts of k
};

// A part of k, and whether it is the first and the last one.
struct InputRange {
  std::int64_t first, count;
  bool begins, ends;
};

// All rows of the block times some panels of one width, for a part of k.
template <class Stored>
void MultiplyPart(const ProductProblem& problem, const ProductBlock& block, const ProductScratch& scratch,
                  const PackedOrder& order, InputRange part, std::int64_t panel, std::int64_t panels) {
  const TensorView& y = problem.y;
  const std::int64_t column = order.first_column(panel);
  const std::int64_t in_block = column - order.first_column(block.first_panel);
  const std::int64_t width = order.width(panel);
  const std::int64_t columns = (panels - 1) * kTileRows + order.columns(panel + panels - 1);
  const bool direct = y.dtype() == DType::f32 && y.stride(1) == 1 && columns == (panels - 1) * kTileRows + width;
  HWY_ALIGN float finished[kBroadcasts * kPanelsTogether * kTileRows];

  ProductTile tile;
  tile.panel = order.panel(panel) + part.first * width * Stored::kBytes;
  tile.panel_bytes = order.panel_bytes();
  tile.inputs = part.count;
  tile.x_stride = scratch.x_stride;
  const TileHeights heights(block.row_count);
  for (std::int64_t t = 0, r = 0; t < heights.tiles; r += heights.of(t++)) {
    const std::int64_t height = heights.of(t);
    float* sums = scratch.sums.data() + (scratch.sums.empty() ? 0 : r * scratch.columns + in_block);
    const std::int64_t y_row = (block.first_row + r) * y.stride(0);
    tile.x = scratch.x.data() + r * scratch.x_stride;
    tile.from = part.begins ? scratch.bias.data() + in_block : sums;
    tile.from_stride = part.begins ? 0 : scratch.columns;
    if (!part.ends) {
      tile.to = sums, tile.to_stride = scratch.columns;
    } else if (direct) {
      tile.to = static_cast<float*>(y.data()) + y_row + column, tile.to_stride = y.stride(0);
    } else {
      tile.to = finished, tile.to_stride = kPanelsTogether * kTileRows;
    }
    MultiplyRows<Stored>(height, tile, panels, width / kLanes);
    if (!part.ends || direct) continue;
    for (std::int64_t n = 0; n < height; ++n) {
      StoreRow(finished + n * tile.to_stride, columns, y, y_row + n * y.stride(0) + column * y.stride(1), y.stride(1));
    }
  }
}

template <class Stored>
void MultiplyBlockOf(const ProductProblem& problem, const ProductBlock& block, const ProductScratch& scratch) {
  const PackedOrder order(problem.weights, kTileRows, kLanes);
  const ConstTensorView& x = problem.x;
  const std::int64_t column = order.first_column(block.first_panel);
  const std::int64_t last_panel = block.first_panel + block.panel_count;

  std::fill(scratch.bias.begin(), scratch.bias.end(), 0.0F);
  if (problem.bias.defined()) {
    const std::int64_t stride = problem.bias.stride(0);
    const std::int64_t columns = std::min(scratch.columns, problem.weights.outputs - column);
    LoadRow(problem.bias, column * stride, stride, columns, scratch.bias.data());
  }
  InputRange part{0, 0, true, false};
  for (; !part.ends; part.first += part.count, part.begins = false) {
    part.count = std::min(scratch.step, problem.weights.inputs - part.first);
    part.ends = part.first + part.count == problem.weights.inputs;
    for (std::int64_t r = 0; r < block.row_count; ++r) {
      LoadRow(x, (block.first_row + r) * x.stride(0) + part.first * x.stride(1), x.stride(1), part.count,
              scratch.x.data() + r * scratch.x_stride);
    }
    std::int64_t panels = 0;
    for (std::int64_t panel = block.first_panel; panel < last_panel; panel += panels) {
      panels = scratch.is_few ? std::min(kPanelsTogether, last_panel - panel) : 1;
      if (order.width(panel + panels - 1) < kTileRows) panels = std::max<std::int64_t>(1, panels - 1);
      MultiplyPart<Stored>(problem, block, scratch, order, part, panel, panels);
    }
  }
}

inline std::size_t ProductScratchBytes(const ProductProblem& problem, const ProductBlock& block) {
  Arena counter;
  const ProductScratch sizes(counter, problem, block);
  return counter.used();
}

inline void MultiplyBlock(const ProductProblem& problem, const ProductBlock& block, std::span<std::byte> memory) {
  Arena arena(memory);
  const ProductScratch scratch(arena, problem, block);
  switch (problem.weights.dtype) {
    case DType::bf16: return MultiplyBlockOf<StoredBf16>(problem, block, scratch);
    case DType::f16: return MultiplyBlockOf<StoredF16>(problem, block, scratch);
    default: return MultiplyBlockOf<StoredF32>(problem, block, scratch);
  }
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
