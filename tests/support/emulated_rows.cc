#include "support/emulated_rows.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "support/block.h"
#include "support/listed_tiles.h"

#include "cuda/lanes.cuh"
// The kernel's source needs what lanes.cuh has.
#include "cuda/rows.cuh"

namespace rapt::test {

namespace {

using cuda::Arguments;
using cuda::DeviceTensor;
using cuda::RowsArguments;

CUtensorMap map_of(const DeviceTensor& view, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                   std::int64_t elements, int box_rows, int box_heads) {
  return {view, batch, heads, rows, elements, box_rows, box_heads};
}

bool stores_vectors(const Arguments& call) {
  const auto whole = [](std::int64_t stride) { return stride % 8 == 0; };
  return call.out.element == 1 && call.value_size % 8 == 0 && whole(call.out.row) && whole(call.out.head) &&
         whole(call.out.batch) && reinterpret_cast<std::uintptr_t>(call.out.data) % 16 == 0;
}

template <class Type>
cuda::RowsKernel kernel_of(int padded_size, bool general) {
  if (padded_size == 64) return cuda::rows_instantiation<Type, 64>(general);
  if (padded_size == 128) return cuda::rows_instantiation<Type, 128>(general);
  return cuda::rows_instantiation<Type, 256>(general);
}

}  // namespace

bool rows_can_run(const Arguments& call) {
  const DType type = call.query.dtype;
  return (type == DType::bf16 || type == DType::f16) && call.key.dtype == type && call.value.dtype == type &&
         !call.paged && call.head_size <= cuda::kMaxHeadSize && call.value_size <= cuda::kMaxHeadSize &&
         !is_general(call);
}

void run_emulated_rows(const Arguments& call, int blocks, std::uint32_t seed) {
  const int size = cuda::padded_head_size(call.head_size, call.value_size);
  const bool general = is_general(call);
  const cuda::RowsPlan plan = cuda::plan_rows(call, general);
  const std::vector<cuda::TileEntry> list = listed_tiles(call, plan);
  const auto list_length = static_cast<std::int32_t>(list.size());
  const std::int32_t tiles = plan.columns * (plan.listed ? list_length : plan.tiles_per_column);
  if (tiles == 0) return;

  const int box_rows = std::min(cuda::kGroupRows, 1 << plan.query_shift), box_heads = cuda::kGroupRows / box_rows;
  std::int32_t next_tile = 0;
  RowsArguments a;
  a.call = call;
  a.query = map_of(call.query, call.batch, call.query_heads, call.queries, call.head_size, box_rows, box_heads);
  a.key = map_of(call.key, call.batch, call.kv_heads, call.keys, call.head_size, plan.step, 1);
  a.value = map_of(call.value, call.batch, call.kv_heads, call.keys, call.value_size, plan.step, 1);
  a.plan = plan;
  a.next_tile = &next_tile;
  a.list = list.data();
  a.list_length = &list_length;
  a.scale = call.scale * 1.4426950408889634F;
  a.window = call.left <= std::numeric_limits<std::int32_t>::max() || call.first_keys > 0;
  a.store_vectors = stores_vectors(call);
  const auto block_count = static_cast<unsigned>(std::min<std::int32_t>(blocks, tiles));
  std::vector<float> totals(std::size_t{block_count} * cuda::kTileRows * static_cast<std::size_t>(size),
                            std::numeric_limits<float>::quiet_NaN());
  a.totals = totals.data();

  const cuda::RowsKernel kernel =
      call.query.dtype == DType::bf16 ? kernel_of<cuda::Bf16>(size, general) : kernel_of<cuda::F16>(size, general);
  const auto function = reinterpret_cast<void (*)(RowsArguments)>(const_cast<void*>(kernel.function));
  cuda::gridDim.x = block_count;
  for (cuda::blockIdx.x = 0; cuda::blockIdx.x < block_count; ++cuda::blockIdx.x) {
    cuda::emulate_block();
    run_block(kernel.threads, [&] { function(a); }, seed + cuda::blockIdx.x);
  }
}

}  // namespace rapt::test
