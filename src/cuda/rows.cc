#include "cuda/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cuda_runtime_api.h>
#include <limits>

#include "core/arena.h"
#include "cuda/errors.h"
#include "cuda/rows_arguments.h"
#include "cuda/rows_setup.h"

namespace rapt::cuda {

namespace {

constexpr int kHopper = 90;

std::span<const Sequence> sequences_of(const Arguments& call, const Launch& launch) {
  return {reinterpret_cast<const Sequence*>(launch.host_lists + call.lists.sequences),
          static_cast<std::size_t>(call.sequence_count)};
}

// Whether a call needs the general variant, because it does more with scores than multiply them and hide ranges of
// keys. A scale that is not a positive normal number needs it too: a negative one, for example, reverses the order of
// scores, which the other variant does not support.
bool needs_general(const Arguments& call) {
  const float scale = call.scale * kLog2E;
  return call.mask_count > 0 || call.has_alibi || call.softcap > 0.0F || call.dropout.on ||
         !(scale >= std::numeric_limits<float>::min() && scale <= std::numeric_limits<float>::max());
}

RowsKernel kernel_of(const Arguments& call) {
  const int size = padded_head_size(call.head_size, call.value_size);
  const bool general = needs_general(call), bf16 = call.query.dtype == DType::bf16;
  switch (size) {
    case 64: return bf16 ? rows_bf16_64(general) : rows_f16_64(general);
    case 128: return bf16 ? rows_bf16_128(general) : rows_f16_128(general);
    default: return bf16 ? rows_bf16_256(general) : rows_f16_256(general);
  }
}

bool can(const Arguments& call, const Launch& /*launch*/) {
  const DType type = call.query.dtype;
  const auto fits = [](std::int32_t size) { return size > 0 && size <= kMaxHeadSize; };
  return (type == DType::bf16 || type == DType::f16) && call.key.dtype == type && call.value.dtype == type &&
         !call.paged && call.key_scales.data == nullptr && call.value_scales.data == nullptr && fits(call.head_size) &&
         fits(call.value_size);
}

// A tensor for the copy engine (TMA), packed first if the copy engine cannot read it in place.
struct Input {
  DeviceTensor view;
  TensorSizes sizes;

  std::int64_t packed_bytes() const {
    if (can_copy_in_place(view, sizes)) return 0;
    return sizes.batch * sizes.heads * sizes.rows * packed_row(sizes.elements) * 2;
  }
};

std::array<Input, 3> inputs_of(const Arguments& call) {
  const Input query{call.query, {call.batch, call.query_heads, call.queries, call.head_size}};
  if (call.keys == 0) return {query, query, query};  // k and v are not read, but their maps need some tensor
  return {query, Input{call.key, {call.batch, call.kv_heads, call.keys, call.head_size}},
          Input{call.value, {call.batch, call.kv_heads, call.keys, call.value_size}}};
}

// The parts of the workspace.
struct RowsMemory {
  RowsMemory(Arena& arena, const Arguments& call, const RowsPlan& plan, const Launch& launch)
      : counter(arena.take<std::int32_t>(1).data()),
        list(arena.take<TileEntry>(plan.listed ? plan.tiles_per_column : 0).data()) {
    const std::int64_t size = padded_head_size(call.head_size, call.value_size);
    totals = arena.take<float>(size > 128 ? launch.multiprocessors * kTileRows * size : 0).data();
    const std::array<Input, 3> inputs = inputs_of(call);
    for (std::size_t n = 0; n < inputs.size(); ++n) packed[n] = arena.take<std::byte>(inputs[n].packed_bytes()).data();
  }

  std::int32_t* counter;
  TileEntry* list;
  float* totals;
  std::byte* packed[3];
};

RowsPlan plan_of(const Arguments& call, const Launch& launch) {
  return plan_rows(call, sequences_of(call, launch), needs_general(call));
}

std::size_t workspace_bytes(const Arguments& call, const Launch& launch) {
  Arena counter;
  const RowsMemory sizes(counter, call, plan_of(call, launch), launch);
  return counter.used();
}

CUtensorMap map_input(const Input& input, std::byte* packed, int box_rows, int box_heads, const Launch& launch) {
  DeviceTensor view = input.view;
  if (input.packed_bytes() > 0) view = pack_tensor(input.view, input.sizes, packed, launch);
  return map_tensor(view, input.sizes, box_rows, box_heads, launch.device);
}

bool rows_are_aligned(const DeviceTensor& out, const Arguments& call) {
  const auto fits = [](std::int64_t stride, std::int32_t size) { return size <= 1 || stride % 8 == 0; };
  return reinterpret_cast<std::uintptr_t>(out.data) % 16 == 0 && out.element == 1 && call.value_size % 8 == 0 &&
         fits(out.batch, call.batch) && fits(out.head, call.query_heads) && fits(out.row, call.queries);
}

// A kernel can use more than 48 KB of dynamic shared memory only after its limit is raised on the device. One call per
// device is enough, and repeating it is harmless.
void allow_shared_memory(const RowsKernel& kernel, const Launch& launch) {
  require(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.shared_bytes),
          "cudaFuncSetAttribute", launch.device);
}

void forward(const Arguments& call, const Launch& launch) {
  const RowsPlan plan = plan_of(call, launch);
  const std::int64_t tiles = std::int64_t{plan.columns} * plan.tiles_per_column;
  if (tiles == 0) return;
  Arena arena(launch.workspace);
  const RowsMemory memory(arena, call, plan, launch);
  const std::array<Input, 3> inputs = inputs_of(call);

  RowsArguments arguments;
  arguments.call = call;
  arguments.plan = plan;
  const int box_rows = std::min(kGroupRows, 1 << plan.query_shift);
  arguments.query = map_input(inputs[0], memory.packed[0], box_rows, kGroupRows / box_rows, launch);
  arguments.key = map_input(inputs[1], memory.packed[1], plan.step, 1, launch);
  arguments.value = map_input(inputs[2], memory.packed[2], plan.step, 1, launch);
  arguments.next_tile = memory.counter;
  arguments.list = memory.list;
  arguments.totals = memory.totals;
  arguments.scale = needs_general(call) ? kLog2E : call.scale * kLog2E;
  arguments.out_scale = call.dropout.on ? call.dropout.keep_scale : 1.0F;
  arguments.window = call.left < std::numeric_limits<std::int32_t>::max() || call.first_keys > 0;
  for (std::int32_t n = 0; n < call.mask_count; ++n) {
    arguments.masks_hide |= launch.mask(call, n).kind != MaskKind::fill;
  }
  arguments.store_vectors = rows_are_aligned(call.out, call);

  clear_counter(memory.counter, launch);
  if (plan.listed) upload_tiles(list_tiles(call, plan, sequences_of(call, launch)), memory.list, launch);
  const RowsKernel kernel = kernel_of(call);
  allow_shared_memory(kernel, launch);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, launch.multiprocessors));
  void* parameters[] = {&arguments};
  require(cudaLaunchKernel(kernel.function, dim3(blocks), dim3(static_cast<unsigned>(kernel.threads)), parameters,
                           static_cast<std::size_t>(kernel.shared_bytes), launch.stream),
          "rows", launch.device);
}

}  // namespace

constinit const KernelSet kRowsKernels = {
    .name = "rows",
    .does = "forward in bf16 and f16 on Hopper's tensor cores",
    .runs_on = [](int capability) { return capability == kHopper; },
    .can = can,
    .workspace_bytes = workspace_bytes,
    .forward = forward,
};

}  // namespace rapt::cuda
