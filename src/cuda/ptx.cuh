// Hopper's instructions, one function each: barriers in shared memory, bulk tensor copies, fences, named barriers, and
// the registers of a warpgroup.
#pragma once

#include <cstdint>
#include <cuda.h>

#include "cuda/arguments.h"

namespace rapt::cuda {

RAPT_DEVICE std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// An mbarrier in shared memory. A phase ends when `count` arrivals and all expected bytes have come in.
struct Barrier {
  std::uint64_t state;

  RAPT_DEVICE void init(int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&state)), "r"(count));
  }
  RAPT_DEVICE void arrive() {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(&state)) : "memory");
  }
  // Arrives, and makes the phase wait for `bytes` of bulk copies.
  RAPT_DEVICE void arrive_and_expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(&state)), "r"(bytes)
                 : "memory");
  }
  // Waits until the phase of this parity has ended.
  RAPT_DEVICE void wait(std::uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again_%=:\n"
        "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
        "@!done bra again_%=;\n"
        "}" ::"r"(shared_address(&state)),
        "r"(parity)
        : "memory");
  }
};

// Call after Barrier::init, so that other threads and the copy engine (TMA) see the barriers.
RAPT_DEVICE void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Call after ordinary stores to shared memory, before tensor cores or the copy engine read what was stored.
RAPT_DEVICE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Copies a box of a 4-D tensor to shared memory; its bytes count for `barrier`. Elements outside the tensor become 0.
RAPT_DEVICE void copy_box(void* to, const CUtensorMap& map, Barrier& barrier, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier.state)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
// Prefetches a box into the L2 cache.
RAPT_DEVICE void prefetch_box(const CUtensorMap& map, int x, int y, int z, int w) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];" ::"l"(&map), "r"(x), "r"(y), "r"(z),
               "r"(w)
               : "memory");
}
RAPT_DEVICE void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Named barriers 1 … 15 between warps: a barrier opens when `threads` threads have called one of these functions.
RAPT_DEVICE void named_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
RAPT_DEVICE void named_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// The thread's index, read again, so that values computed from it are not kept in registers across a loop that rarely
// uses them.
RAPT_DEVICE int reread_thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// Changes the number of registers of each thread of a warpgroup: gives some up, or takes some that others gave up.
template <int kRegisters>
RAPT_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
RAPT_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace rapt::cuda
