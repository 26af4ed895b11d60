// The packed matrix product: rows of x times panels of a packed matrix.
//
// Every sum is one chain of fused multiply-adds, k ascending, that begins with its bias or its element of `start`. If k
// is split into parts, the sums are kept in memory as f32 between the parts, which is exact.
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
#include "cpu/product/packed_order.h"
#include "cpu/product/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// ---------------------------------------------------------------- a vector of packed weights

// Two rows of a panel start at `rows`, `width` elements each. Columns gives vector v of the first row or, if `odd`, of
// the second. `crowded`: no register is free for a constant.
struct StoredF32 {
  static constexpr std::int64_t kBytes = 4;
  static HWY_INLINE Vec Columns(const std::byte* rows, std::int64_t width, std::int64_t v, bool odd, bool /*crowded*/) {
    return Load(reinterpret_cast<const float*>(rows) + (odd ? width : 0) + v * kLanes);
  }
};

struct StoredBf16 {
  static constexpr std::int64_t kBytes = 2;
  static HWY_INLINE Vec Columns(const std::byte* rows, std::int64_t /*width*/, std::int64_t v, bool odd, bool crowded) {
    const U32 u32;
    auto both = hn::Load(u32, reinterpret_cast<const std::uint32_t*>(rows) + v * kLanes);
    if (odd && !crowded) return hn::BitCast(kF32, hn::And(both, hn::Set(u32, 0xFFFF0000U)));
    if (odd) both = hn::ShiftRight<16>(both);  // a mask would cost a register
    return hn::BitCast(kF32, hn::ShiftLeft<16>(both));
  }
};

struct StoredF16 {
  static constexpr std::int64_t kBytes = 2;
  static HWY_INLINE Vec Columns(const std::byte* rows, std::int64_t width, std::int64_t v, bool odd, bool /*crowded*/) {
    return FromF16(hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(rows) + (odd ? width : 0) + v * kLanes));
  }
};

// ---------------------------------------------------------------- one register tile

// Some compilers reload a vector for each use to save a register, although one is free. Loads, not multiplications, are
// then the bottleneck.
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
  const float* from = nullptr;   // initial values of the sums
  std::int64_t from_stride = 0;
  float* to = nullptr;  // destination of the sums
  std::int64_t to_stride = 0;
  const std::byte* prefetch = nullptr;  // the data needed next, prefetched during this product
  std::int64_t prefetch_step = 0;       // bytes to prefetch per two rows of the panel
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
  constexpr std::int64_t kPair = 2 * kWidth * Stored::kBytes;  // two rows of a panel
  const auto columns = [&](int p, int v, int depth) HWY_ATTR {
    constexpr bool kCrowded = kMR == 4 && kRows > 2;
    return Stored::Columns(panel + p * panel_bytes + depth / 2 * kPair, kWidth, v, depth % 2 != 0, kCrowded);
  };
  // Rows k … k + kDepth − 1 of the panels. Elements of x or columns, whichever are fewer, stay in registers while the
  // others are streamed.
  const auto add = [&](std::int64_t k, auto depth_of) HWY_ATTR {
    constexpr int kDepth = depth_of();
    if constexpr (kRows <= 2) {
      Vec factors[static_cast<std::size_t>(kRows)][static_cast<std::size_t>(kDepth)];
      for (int r = 0; r < kRows; ++r) {
        for (int d = 0; d < kDepth; ++d) factors[r][d] = Set(x[r][k + d]);
      }
      for (int p = 0; p < kPanels; ++p) {
        for (int d = 0; d < kDepth; ++d) {
          for (int v = 0; v < kV; ++v) {
            const Vec column = columns(p, v, d);
            for (int r = 0; r < kRows; ++r) {
              Vec& sum = sums[r][p * kV + v];
              sum = hn::MulAdd(factors[r][d], column, sum);
            }
          }
        }
      }
    } else {
      static_assert(kPanels == 1);
      for (int d = 0; d < kDepth; ++d) {
        Vec column[static_cast<std::size_t>(kV)];
        for (int v = 0; v < kV; ++v) column[v] = KeepInRegister(columns(0, v, d));
        for (int r = 0; r < kRows; ++r) {
          const Vec factor = Set(x[r][k + d]);
          for (int v = 0; v < kV; ++v) sums[r][v] = KeepInRegister(hn::MulAdd(factor, column[v], sums[r][v]));
        }
      }
    }
  };
  std::int64_t k = 0;
  if constexpr (kRows == 1 && kPanels <= 2) {  // spare registers allow longer reads from each panel in turn
    for (; k + 4 <= tile.inputs; k += 4, panel += 2 * kPair) add(k, std::integral_constant<int, 4>());
  }
  if constexpr (kRows <= 2) {
    for (; k + 2 <= tile.inputs; k += 2, panel += kPair) add(k, std::integral_constant<int, 2>());
  } else {
    // A tile of many rows takes long, and its destination may be out of cache, so the destination is prefetched too,
    // row by row.
    const std::byte* prefetch = tile.prefetch;
    const std::int64_t share = RoundUp(tile.inputs, 2 * kRows) / kRows;
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kColumns; ++c) __builtin_prefetch(tile.to + r * tile.to_stride + c * kLanes, 1, 3);
      const std::int64_t end = std::min((r + 1) * share, tile.inputs);
      for (; k + 2 <= end; k += 2, panel += kPair, prefetch += tile.prefetch_step) {
        __builtin_prefetch(prefetch, 0, 2);
        add(k, std::integral_constant<int, 2>());
      }
    }
  }
  if (k < tile.inputs) add(k, std::integral_constant<int, 1>());

  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) hn::StoreU(sums[r][c], kF32, tile.to + r * tile.to_stride + c * kLanes);
  }
}

// ---------------------------------------------------------------- a block

// The number of panels that one row is multiplied with at once: enough chains to keep the FMA units busy, and several
// memory streams, since DRAM serves four streams faster than two.
constexpr std::int64_t kPanelsTogether = kMR > 4 ? 4 : 2;

// Divides rows into tiles of nearly the same height, because a tile of one row has too few chains to hide the FMA
// latency.
struct TileHeights {
  explicit TileHeights(std::int64_t rows) : tiles((rows + kMR - 1) / kMR), height(rows / tiles), higher(rows % tiles) {}
  std::int64_t of(std::int64_t tile) const { return tile < higher ? height + 1 : height; }

  std::int64_t tiles, height, higher;
};

// kRows rows times `panels` panels, all of one width.
template <class Stored, int kRows>
void MultiplyPanels(const ProductTile& first, std::int64_t panels, std::int64_t vectors) {
  const auto tile_of = [&](std::int64_t panel) {
    ProductTile tile = first;
    tile.panel += panel * tile.panel_bytes;
    tile.from += panel * kTileRows;
    tile.to += panel * kTileRows;
    return tile;
  };
  std::int64_t panel = 0;
  if constexpr (kRows <= 2) {
    constexpr int kTogether = kRows == 1 ? kPanelsTogether : 2;
    for (; vectors == kNR && panel + kTogether <= panels; panel += kTogether) {
      MultiplyTile<Stored, kRows, kTogether, kNR>(tile_of(panel));
    }
  }
  for (; panel < panels; ++panel) {
    WithVectors(vectors, [&](auto count_of) { MultiplyTile<Stored, kRows, 1, count_of()>(tile_of(panel)); });
  }
}

template <class Stored, int kRows = kMR>
void MultiplyRows(std::int64_t rows, const ProductTile& tile, std::int64_t panels, std::int64_t vectors) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MultiplyRows<Stored, kRows - 1>(rows, tile, panels, vectors);
  }
  MultiplyPanels<Stored, kRows>(tile, panels, vectors);
}

// The scratch memory of one worker.
struct ProductScratch {
  ProductScratch(Arena& arena, const ProductProblem& problem, const ProductBlock& block)
      : is_few(block.row_count <= kMR),
        in_place(is_few && problem.x.dtype() == DType::f32 && problem.x.stride(1) == 1),
        step(Step(problem.weights.inputs, is_few)),
        x_stride(in_place ? problem.x.stride(0) : RoundUp(step, 16) + 16),
        columns(block.panel_count * kTileRows),
        x(arena.take<float>(in_place ? 0 : block.row_count * x_stride)),
        start(arena.take<float>(problem.bias.defined() ? columns : kPanelsTogether * kTileRows)),
        sums(arena.take<float>(step < problem.weights.inputs ? block.row_count * columns : 0)) {}

  // How much of k is processed at a time: all of it for few rows; for many rows, so much that this part of a panel and
  // of x stays in L2.
  static std::int64_t Step(std::int64_t inputs, bool is_few) {
    constexpr std::int64_t kStep = 1024;
    if (is_few || inputs <= kStep) return inputs;
    const std::int64_t parts = (inputs + kStep - 1) / kStep;
    return RoundUp((inputs + parts - 1) / parts, 2);  // even: see PackedOrder
  }

  bool is_few;
  bool in_place;  // few rows of x are read in place: a copy would be expensive compared with one pass over the weights
  std::int64_t step, x_stride, columns;
  std::span<float> x;      // (rows, step): x as f32. The stride keeps rows out of the same cache sets
  std::span<float> start;  // (columns): the bias; without one, zeros for as many columns as are processed at once
  std::span<float> sums;   // (rows, columns): the sums between the parts of k
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
  const float* x = scratch.x.data();
  if (scratch.in_place) x = static_cast<const float*>(problem.x.data()) + block.first_row * scratch.x_stride;
  const std::int64_t column = order.first_column(panel);
  const std::int64_t in_block = column - order.first_column(block.first_panel);
  const std::int64_t width = order.width(panel);
  const std::int64_t columns = (panels - 1) * kTileRows + order.columns(panel + panels - 1);
  const bool direct = y.dtype() == DType::f32 && y.stride(1) == 1 && columns == (panels - 1) * kTileRows + width;
  constexpr std::int64_t kStride = kPanelsTogether * kTileRows;
  HWY_ALIGN float finished[kMR * kStride];
  const ConstTensorView& start = problem.start;
  const bool starts = part.begins && start.defined();
  const bool direct_start =
      starts && start.dtype() == DType::f32 && start.stride(1) == 1 && columns == (panels - 1) * kTileRows + width;

  ProductTile tile;
  tile.panel = order.panel(panel) + part.first * width * Stored::kBytes;
  tile.panel_bytes = order.panel_bytes();
  tile.inputs = part.count;
  tile.x_stride = scratch.x_stride;
  const TileHeights heights(block.row_count);
  // The next panel is not in cache, while this one is read again for every tile, so each tile prefetches its share of
  // the next.
  const bool prefetches = !scratch.is_few && panel + panels < block.first_panel + block.panel_count;
  const std::int64_t pairs = (part.count + 1) / 2;
  tile.prefetch = tile.panel + (prefetches ? panels * tile.panel_bytes : 0);
  tile.prefetch_step = prefetches ? 2 * width * Stored::kBytes / heights.tiles : 0;
  for (std::int64_t t = 0, r = 0; t < heights.tiles;
       r += heights.of(t++), tile.prefetch += pairs * tile.prefetch_step) {
    const std::int64_t height = heights.of(t);
    float* sums = scratch.sums.data() + (scratch.sums.empty() ? 0 : r * scratch.columns + in_block);
    const std::int64_t y_row = (block.first_row + r) * y.stride(0);
    tile.x = x + r * scratch.x_stride;
    tile.from = part.begins ? scratch.start.data() + (problem.bias.defined() ? in_block : 0) : sums;
    tile.from_stride = part.begins ? 0 : scratch.columns;
    if (starts) {
      const std::int64_t start_row = (block.first_row + r) * start.stride(0) + column * start.stride(1);
      if (direct_start) {
        tile.from = static_cast<const float*>(start.data()) + start_row, tile.from_stride = start.stride(0);
      } else {
        for (std::int64_t n = 0; n < height; ++n) {
          std::fill_n(finished + n * kStride, kStride, 0.0F);
          LoadRow(start, start_row + n * start.stride(0), start.stride(1), columns, finished + n * kStride);
        }
        tile.from = finished, tile.from_stride = kStride;
      }
    }
    if (!part.ends) {
      tile.to = sums, tile.to_stride = scratch.columns;
    } else if (direct) {
      tile.to = static_cast<float*>(y.data()) + y_row + column, tile.to_stride = y.stride(0);
    } else {
      tile.to = finished, tile.to_stride = kStride;
    }
    MultiplyRows<Stored>(height, tile, panels, width / kLanes);
    if (!part.ends || direct) continue;
    for (std::int64_t n = 0; n < height; ++n) {
      StoreRow(finished + n * tile.to_stride, columns, y, y_row + n * y.stride(0) + column * y.stride(1), y.stride(1));
    }
  }
}

// The rows of x for a part of k, if x is the transpose of a matrix with contiguous rows.
inline void LoadRowsAcross(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t count, float* to,
                           std::int64_t to_stride) {
  std::int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
    float* places[kLanes];
    for (std::int64_t n = 0; n < kLanes; ++n) places[n] = to + (r + n) * to_stride;
    std::int64_t k =
        StoreColumns([&](std::int64_t n) HWY_ATTR { return hn::LoadU(kF32, from + n * stride + r); }, count, places);
    for (; k < count; ++k) {
      for (std::int64_t n = 0; n < kLanes; ++n) places[n][k] = from[k * stride + r + n];
    }
  }
  for (; r < rows; ++r) {
    for (std::int64_t k = 0; k < count; ++k) to[r * to_stride + k] = from[k * stride + r];
  }
}

// The rows of x that belong to a block, for a part of k, as f32.
inline void LoadRows(const ConstTensorView& x, const ProductBlock& block, InputRange part,
                     const ProductScratch& scratch) {
  const std::int64_t first = block.first_row * x.stride(0) + part.first * x.stride(1);
  if (x.dtype() == DType::f32 && x.stride(0) == 1 && x.stride(1) != 1) {
    return LoadRowsAcross(static_cast<const float*>(x.data()) + first, x.stride(1), block.row_count, part.count,
                          scratch.x.data(), scratch.x_stride);
  }
  for (std::int64_t r = 0; r < block.row_count; ++r) {
    LoadRow(x, first + r * x.stride(0), x.stride(1), part.count, scratch.x.data() + r * scratch.x_stride);
  }
}

template <class Stored>
void MultiplyBlockOf(const ProductProblem& problem, const ProductBlock& block, const ProductScratch& scratch) {
  const PackedOrder order(problem.weights, kTileRows, kLanes);
  const ConstTensorView& x = problem.x;
  const std::int64_t column = order.first_column(block.first_panel);
  const std::int64_t last_panel = block.first_panel + block.panel_count;

  std::fill(scratch.start.begin(), scratch.start.end(), 0.0F);
  if (problem.bias.defined()) {
    const std::int64_t stride = problem.bias.stride(0);
    const std::int64_t columns = std::min(scratch.columns, problem.weights.outputs - column);
    LoadRow(problem.bias, column * stride, stride, columns, scratch.start.data());
  }
  InputRange part{0, 0, true, false};
  for (; !part.ends; part.first += part.count, part.begins = false) {
    part.count = std::min(scratch.step, problem.weights.inputs - part.first);
    part.ends = part.first + part.count == problem.weights.inputs;
    if (!scratch.in_place) LoadRows(x, block, part, scratch);
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
