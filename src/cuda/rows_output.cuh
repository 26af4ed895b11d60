// The outputs of the rows kernel: rows of out, and lse.
#pragma once

#include "cuda/lazy_softmax.cuh"
#include "cuda/rows_shared.cuh"

namespace rapt::cuda {

// The first of the two rows of a tile that a consumer's thread owns; the second is 8 rows further down.
RAPT_DEVICE int thread_row(int thread) { return thread / 32 * 16 + thread % 32 / 4 - kGroupRows; }

// A row of a tile, given as its query and head.
struct TileRow {
  std::int32_t query, head;  // counted from the tile's first
  bool exists;
};
RAPT_DEVICE TileRow tile_row(const RowsPlan& plan, const Tile& tile, int row) {
  const std::int32_t query = row & ((1 << plan.query_shift) - 1), head = row >> plan.query_shift;
  return {query, head, query < tile.queries && head < tile.heads};
}

// Exchanges 32 columns of a row within a quad. Each lane holds four pairs of adjacent columns, which begin at columns 2
// · lane, 8 + 2 · lane, …, and receives 8 adjacent columns: lane 0 columns 0 … 7, lane 1 columns 8 … 15, and so on. A
// second exchange restores the pairs.
RAPT_DEVICE uint4 gather_columns(std::uint32_t (&w)[4], int lane) {
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const std::uint32_t other = __shfl_xor_sync(~0U, (lane & 1) != 0 ? w[i] : w[i + 1], 1);
    if ((lane & 1) != 0) {
      w[i] = other;
    } else {
      w[i + 1] = other;
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t other = __shfl_xor_sync(~0U, (lane & 2) != 0 ? w[i] : w[i + 2], 2);
    if ((lane & 2) != 0) {
      w[i] = other;
    } else {
      w[i + 2] = other;
    }
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// Writes a row of out, 16 bytes at a time; `x` selects the thread's first or second row. `to` is null if the row does
// not exist. 0 is added so that every zero is +0; otherwise its sign would depend on how many steps without visible
// keys the tile visits.
template <class Type, int kSize>
RAPT_DEVICE void store_vectors(std::uint16_t* to, const float (&o)[kSize / 2], int x, float scale, int lane, int size) {
#pragma unroll
  for (int block = 0; block < kSize / 32; ++block) {
    std::uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = (block * 4 + i) * 4 + 2 * x;
      w[i] = Type::pair(__fmaf_rn(o[at], scale, 0.0F), __fmaf_rn(o[at + 1], scale, 0.0F));
    }
    const uint4 columns = gather_columns(w, lane);
    const int column = block * 32 + lane * 8;
    if (to != nullptr && column < size) *reinterpret_cast<uint4*>(to + column) = columns;
  }
}

// Writes a row of out element by element, with any strides.
template <class Type, int kSize>
RAPT_DEVICE void store_elements(std::uint16_t* to, std::int64_t stride, const float (&o)[kSize / 2], int x, float scale,
                                int lane, int size) {
#pragma unroll
  for (int i = 0; i < kSize / 8; ++i) {
    const int column = i * 8 + 2 * lane;
    const std::uint32_t pair =
        Type::pair(__fmaf_rn(o[4 * i + 2 * x], scale, 0.0F), __fmaf_rn(o[4 * i + 2 * x + 1], scale, 0.0F));
    if (to != nullptr && column < size) to[column * stride] = static_cast<std::uint16_t>(pair);
    if (to != nullptr && column + 1 < size) to[(column + 1) * stride] = static_cast<std::uint16_t>(pair >> 16);
  }
}

// Merges the sink, divides by the sum, and writes the thread's two rows of the tile.
template <class Type, int kSize>
RAPT_DEVICE void store_tile(const RowsArguments& a, const Tile& tile, const RowPair& total,
                            const float (&o)[kSize / 2]) {
  const Arguments& call = a.call;
  const int thread = reread_thread(), row = thread_row(thread), lane = thread % 4;
#pragma unroll
  for (int x = 0; x < 2; ++x) {
    const TileRow at = tile_row(a.plan, tile, row + 8 * x);
    const std::int64_t head = tile.head + at.head, query = tile.query_row() + at.query;
    float sink = kHidden;
    if (call.sinks.data != nullptr && at.exists) {
      sink = load_float(call.sinks.data, call.sinks.dtype, head * call.sinks.head);
    }
    const RowResult result = finish_row(total.maximum[x], total.sum[x], a.scale, sink);
    const float scale = __fmul_rn(result.scale, a.out_scale);
    std::uint16_t* to =
        at.exists ? static_cast<std::uint16_t*>(call.out.data) + call.out.offset(tile.sequence.batch, head, query)
                  : nullptr;
    if (a.store_vectors) {
      store_vectors<Type, kSize>(to, o, x, scale, lane, call.value_size);
    } else {
      store_elements<Type, kSize>(to, call.out.element, o, x, scale, lane, call.value_size);
    }
    if (call.lse.data != nullptr && at.exists && lane == 0) {
      static_cast<float*>(call.lse.data)[call.lse.offset(tile.sequence.batch, head, query)] = result.lse;
    }
  }
}

}  // namespace rapt::cuda
