// Forward attention on Hopper's tensor cores: the loop.
//
// A block is persistent: it processes its tiles as one sequence of steps. Each iteration issues two products together:
// the scores of the next step (q·kᵀ) and the output of the current one (p·v). While p·v runs, the softmax of the new
// scores is computed. Two consumers take turns issuing their products, so that the exponentials of one overlap with the
// products of the other. A new tile or chunk changes only what happens to o after p·v. Only the first scores are
// computed outside the loop. At the end of the sequence the loop computes scores once more, which are not used: a
// branch around the products would make the compiler serialize them.
#pragma once

#include "cuda/rows_output.cuh"
#include "cuda/rows_produce.cuh"
#include "cuda/rows_terms.cuh"

namespace rapt::cuda {

// Hides keys from the thread's two rows: their scores become −inf. With `window`, keys before the window may be hidden
// too, except initial keys; otherwise only keys at the end are hidden.
template <int kKeys>
RAPT_DEVICE void hide_keys(float (&s)[kKeys / 2], int first_column, const VisibleKeys (&rows)[2], bool window) {
  if (window) {
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
      const int key = first_column + i / 4 * 8 + i % 2;
      const VisibleKeys& row = rows[i / 2 % 2];
      const bool inside = static_cast<unsigned>(key - row.begin) < static_cast<unsigned>(row.end - row.begin);
      s[i] = static_cast<int>(inside) | static_cast<int>(key < row.first_end) ? s[i] : kHidden;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
      if (first_column + i / 4 * 8 + i % 2 >= rows[i / 2 % 2].end) s[i] = kHidden;
    }
  }
}

// The keys that a row of the tile sees. A row whose query does not exist gets the keys of the last query.
RAPT_DEVICE VisibleKeys visible_keys_of(const RowsArguments& a, const Tile& tile, int row) {
  const std::int32_t query = tile_row(a.plan, tile, row).query;
  const std::int32_t last = tile.queries - 1;
  return visible_keys(a.call, tile.sequence, tile.first_query + (query < last ? query : last));
}

// check_values has set the numbers of v that are not finite to 0 in shared memory, and marked their keys. For these
// numbers, this function adds p · v to o in the rows that see the key, which makes o infinite or NaN. This is rare, so
// v is read from global memory.
template <class Type, class Shape>
RAPT_DEVICE void restore_marked_values(const RowsArguments& a, const Tile& tile, const std::uint32_t* marks,
                                       std::int32_t first_key, const std::uint32_t (&p)[Shape::kKeys / 16][4],
                                       float (&o)[Shape::kSize / 2], int& add_output) {
  if (add_output == 0) {
#pragma unroll
    for (int i = 0; i < Shape::kSize / 2; ++i) o[i] = 0.0F;
    add_output = 1;
  }
  const int thread = reread_thread(), row = thread_row(thread), lane = thread % 4;
  const VisibleKeys keys[2] = {visible_keys_of(a, tile, row), visible_keys_of(a, tile, row + 8)};
  for (int key = 0; key < Shape::kKeys; ++key) {
    if ((marks[key / 32] >> (key % 32) & 1) == 0) continue;
    float weight[2];
#pragma unroll
    for (int x = 0; x < 2; ++x) {
      std::uint32_t pair = 0;
#pragma unroll
      for (int j = 0; j < Shape::kKeys / 8; ++j) {
        pair |= p[j / 2][j % 2 * 2 + x] & (key / 8 == j ? ~0U : 0U);
      }
      pair = __shfl_sync(~0U, pair, (thread & 28) | (key % 8 / 2));
      weight[x] = Type::value(key % 2 == 0 ? pair & 0xFFFF : pair >> 16);
    }
    bool sees[2] = {keys[0].sees(first_key + key), keys[1].sees(first_key + key)};
    if constexpr (Shape::kGeneral) {  // apply_terms turns a score of 0 into −inf if a mask hides the key
      const TermRows rows(a, tile, first_key, thread);
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        sees[x] = sees[x] &&
                  apply_terms(a.call, tile.sequence, rows.head[x], rows.query[x], first_key + key, 0.0F) != kHidden;
      }
    }
    const DeviceTensor& value = a.call.value;
    const std::uint16_t* v = static_cast<const std::uint16_t*>(value.data) +
                             value.offset(tile.sequence.batch, tile.kv_head, tile.sequence.key_begin + first_key + key);
#pragma unroll
    for (int i = 0; i < Shape::kSize / 4; ++i) {
      const int at = i / 2 * 4 + i % 2, column = i / 2 * 8 + 2 * lane + i % 2;
      const std::uint32_t bits = column < a.call.value_size ? v[column * value.element] : 0;
      const bool bad = (bits & 0x7FFF) >= Type::kInfinity;
      const float x = Type::value(bits);
      o[at] = bad && sees[0] ? __fmaf_rn(weight[0], x, o[at]) : o[at];
      o[at + 2] = bad && sees[1] ? __fmaf_rn(weight[1], x, o[at + 2]) : o[at + 2];
    }
  }
}

// Copies the new p to the registers that products read. These must not be written while products run, so the new p is
// computed in other registers. The compiler would remove a plain copy, but not the addition of a −0 that it does not
// know to be constant.
template <int kKeys>
RAPT_DEVICE void hand_over(const std::uint32_t (&from)[kKeys / 16][4], std::uint32_t (&to)[kKeys / 16][4],
                           float minus_zero) {
#pragma unroll
  for (int j = 0; j < kKeys / 16; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[j][i] = __float_as_uint(__fadd_rn(__uint_as_float(from[j][i]), minus_zero));
  }
}

// Fetches one batch of a thread's part of the chunk totals. The part is kSize / 8 float4, which are 128 apart; a batch
// has kBatch of them.
template <int kBatch>
RAPT_DEVICE void fetch_totals(const float4* totals, float4 (&batch)[kBatch]) {
#pragma unroll
  for (int i = 0; i < kBatch; ++i) batch[i] = totals[i * 128];
}

// Merges the totals of the earlier chunks into o. The first batch has been fetched; the others are fetched one at a
// time, into the registers of the first.
template <int kSize, int kBatch>
RAPT_DEVICE void merge_totals(const float4* totals, float4 (&batch)[kBatch], float (&o)[kSize / 2],
                              const MergeWeights& w) {
#pragma unroll
  for (int i = 0; i < kSize / 8; ++i) {
    if (i > 0 && i % kBatch == 0) {
      asm volatile("" ::: "memory");
      fetch_totals(totals + i * 128, batch);
    }
    const float4& total = batch[i % kBatch];
    o[4 * i] = merge(total.x, w.before[0], o[4 * i], w.now[0]);
    o[4 * i + 1] = merge(total.y, w.before[0], o[4 * i + 1], w.now[0]);
    o[4 * i + 2] = merge(total.z, w.before[1], o[4 * i + 2], w.now[1]);
    o[4 * i + 3] = merge(total.w, w.before[1], o[4 * i + 3], w.now[1]);
  }
}

// Runs consumer `group` (0 or 1), which computes 64 rows of every tile of the block.
template <class Type, class Shape>
RAPT_DEVICE void consume(const RowsArguments& a, RowsShared<Shape>& shared, int group) {
  constexpr int kKeys = Shape::kKeys, kSize = Shape::kSize;
  // Chunk totals are fetched while p·v runs, into the registers of s.
  constexpr int kBatch = kSize / 8 < kKeys / 8 ? kSize / 8 : kKeys / 8;
  constexpr bool kTermsEarly = kSize <= 128;  // inputs of the terms are read while the scores are computed
  constexpr int kTurn = 1;                    // kTurn + group is the named barrier of a consumer's turn
  constexpr int kStageUnits = RowsShared<Shape>::kTileElements * 2 / 16;
  const bool first_lane = (threadIdx.x & 31) == 0;
  const std::uint32_t q_tile = descriptor(shared.query[group], 16), k_tile = descriptor(shared.key[0], 16);
  const std::uint32_t v_tile = descriptor(shared.value[0], kKeys * kSwizzledRow);
  // The thread's part of the chunk totals.
  const auto totals = [&] {
    constexpr int kTileTotals = kTileRows * kSize / 4;
    float4* const all =
        Shape::kTotalsInShared ? shared.totals : reinterpret_cast<float4*>(a.totals) + blockIdx.x * kTileTotals;
    const int thread = reread_thread() - kTileRows;
    return all + thread / 128 * (kTileTotals / 2) + thread % 128;
  };

  float s[kKeys / 2], o[kSize / 2];
  std::uint32_t p[kKeys / 16][4];
  RowPair chunk, total;
  bool has_total = false;
  int add_output = 0;
  Cursor<Shape::kStages> k, v;  // of the next step, and of the step whose p is ready
  int tile = 0;                 // index, in this block, of the tile that o belongs to
  const auto tile_at = [&](int number) -> const Tile& { return shared.tiles[number % kTileSlots]; };

  const auto release = [&](Barrier& barrier) {
    if (first_lane) barrier.arrive();
  };
  const auto hide = [&](std::int32_t from, const Tile& of) {
    const int thread = reread_thread(), row = thread_row(thread);
    const VisibleKeys rows[2] = {visible_keys_of(a, of, row), visible_keys_of(a, of, row + 8)};
    hide_keys<kKeys>(s, from + 2 * (thread % 4), rows, a.window);
  };

  shared.k.wait_full(k);
  StepFlags step = shared.steps[0].flags, next = shared.steps[0].next;
  if (step.end()) return;
  const std::int32_t first_key = shared.steps[0].first_key;
  shared.query_full[group].wait(0);
  if (group == 0) named_arrive(kTurn, 256);
  products_begin();
  multiply_transposed<Type, kSize, kKeys>(s, q_tile, k_tile);
  products_commit();
  products_wait<0>();
  release(shared.k.empty[k.stage]);
  if (step.ends_tile()) release(shared.query_empty[group]);
  k.advance();
  {
    StepTerms<Shape::kGeneral> terms;
    terms.template begin<kTermsEarly>(a, tile_at(0), first_key);
    terms.template apply<kTermsEarly>(a, s);
    if (step.masked()) hide(first_key, tile_at(0));
    float rescale[2];
    softmax_step<Type, kKeys>(s, chunk, a.scale, true, p, rescale);
    terms.drop(a, p);
  }

  for (;; k.advance(), v.advance()) {
    // The scores of the next step, and the output of this one.
    if (step.masked()) [[unlikely]] {
      shared.v.wait_full(v);
      const std::uint32_t* const marks = shared.bad_keys[v.stage];
      std::uint32_t any = 0;
      for (int i = 0; i < kKeys / 32; ++i) any |= marks[i];
      if (any != 0) [[unlikely]] {
        restore_marked_values<Type, Shape>(a, tile_at(tile), marks, shared.value_keys[v.stage], p, o, add_output);
      }
    }
    if (next.begins_tile() && !next.end()) shared.query_full[group].wait((tile + 1) & 1);
    shared.k.wait_full(k);
    const std::int32_t next_key = shared.steps[k.stage].first_key;
    const StepFlags after_next = shared.steps[k.stage].next;
    named_sync(kTurn + group, 256);
    products_begin();
    multiply_transposed<Type, kSize, kKeys>(s, q_tile, k_tile + k.stage * kStageUnits);
    products_commit();
    shared.v.wait_full(v);
    products_begin();
    multiply<Type, kSize, kKeys>(o, p, v_tile + v.stage * kStageUnits, add_output);
    products_commit();
    named_arrive(kTurn + (group ^ 1), 256);
    const Tile& next_tile = tile_at(next.begins_tile() && !next.end() ? tile + 1 : tile);
    StepTerms<Shape::kGeneral> terms;
    if (kTermsEarly) terms.template begin<true>(a, next_tile, next_key);
    products_wait<1>();
    release(shared.k.empty[k.stage]);
    if (next.ends_tile()) release(shared.query_empty[group]);

    // The softmax of the next step.
    if (!kTermsEarly) terms.template begin<false>(a, next_tile, next_key);
    terms.template apply<kTermsEarly>(a, s);
    if (next.masked()) [[unlikely]] {
      hide(next_key, next_tile);
    }
    const bool fresh = next.begins_chunk();
    MergeWeights weights;
    if (fresh) [[unlikely]] {
      weights = merge_chunk(total, chunk, a.scale, has_total);
      chunk = RowPair{};
    }
    std::uint32_t new_p[kKeys / 16][4];
    float rescale[2];
    const bool moved = softmax_step<Type, kKeys>(s, chunk, a.scale, fresh, new_p, rescale);
    terms.drop(a, new_p);

    // The output of this step is complete after p·v.
    const auto output_done = [&] {
      products_wait<0>();
      release(shared.v.empty[v.stage]);
    };
    add_output = fresh ? 0 : 1;
    if (!fresh) [[likely]] {
      output_done();
      if (moved) {
#pragma unroll
        for (int i = 0; i < kSize / 2; ++i) o[i] = __fmul_rn(o[i], rescale[i / 2 % 2]);
      }
    } else {
      if (has_total) {
        float4 batch[kBatch];
        fetch_totals(totals(), batch);
        output_done();
        merge_totals<kSize>(totals(), batch, o, weights);
      } else {
        output_done();
      }
      has_total = !next.begins_tile();
      if (has_total) {
        float4* const to = totals();
#pragma unroll
        for (int i = 0; i < kSize / 2; i += 4) to[i * 32] = make_float4(o[i], o[i + 1], o[i + 2], o[i + 3]);
      } else {
        store_tile<Type, kSize>(a, tile_at(tile), total, o);
        __syncwarp();
        release(shared.tile.empty[tile % kTileSlots]);
        if (next.end()) return;
        total = RowPair{};
        ++tile;
      }
    }
    hand_over<kKeys>(new_p, p, a.minus_zero);
    step = next;
    next = after_next;
  }
}

template <class Type, int kSize, bool kGeneral>
__global__ void __launch_bounds__(kRowsThreads, 1) rows_kernel(const __grid_constant__ RowsArguments a) {
  using Shape = RowsShape<kSize, kGeneral>;
  extern __shared__ __align__(1024) std::byte memory[];
  RowsShared<Shape>& shared = *reinterpret_cast<RowsShared<Shape>*>(memory);
  const int group = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 128, 0);
  if (threadIdx.x == 0) {
    shared.tile.init(1, 1 + kConsumerWarps);
    shared.k.init(1, kConsumerWarps);
    shared.v.init(kCheckWarps, kCheckWarps + kConsumerWarps);
    for (int i = 0; i < Shape::kStages; ++i) shared.value_loaded[i].init(1);
    for (int i = 0; i < 2; ++i) {
      shared.query_full[i].init(1);
      shared.query_empty[i].init(4);
    }
    fence_barrier_init();
  }
  __syncthreads();
  if (group == 0) {
    give_registers<40>();
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (warp == 0 && lane == 0) produce_steps(a, shared);
    if (warp == 1 && lane == 0) produce_tiles(a, shared);
    if (warp >= 2) check_values<Type>(shared, warp - 2, lane);
  } else {
    take_registers<232>();
    consume<Type, Shape>(a, shared, group - 1);
  }
}

template <class Type, int kSize, bool kGeneral>
RowsKernel rows_variant() {
  return {reinterpret_cast<const void*>(&rows_kernel<Type, kSize, kGeneral>), kRowsThreads,
          static_cast<int>(sizeof(RowsShared<RowsShape<kSize, kGeneral>>))};
}

template <class Type, int kSize>
RowsKernel rows_instantiation(bool general) {
  return general ? rows_variant<Type, kSize, true>() : rows_variant<Type, kSize, false>();
}

}  // namespace rapt::cuda
