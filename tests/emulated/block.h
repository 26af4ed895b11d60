// A thread block on the CPU, for device code that runs as it is.
//
// Each GPU thread is a function call with a stack of its own. They run one after another, each until it has to wait: in
// a barrier, or in an exchange between the lanes of its warp. If all of them wait for good, run_block throws. The
// headers in tests/emulated/gpu stand in for those of src/cuda that contain instructions of the GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace rapt::test {

inline constexpr int kWarpSize = 32;
inline constexpr std::size_t kSharedBytes = std::size_t{227} << 10;  // of a block on Hopper

// Runs `body` once per GPU thread of a block. Warps run in an order that depends on `seed`.
void run_block(int count, const std::function<void()>& body, std::uint32_t seed = 0);

// The rest is for GPU threads that run.

int block_thread();  // its number in the block
int block_size();

// Returns once `ready` is true; it is asked whenever another thread may have changed the answer.
using Ready = bool (*)(const void* object, std::uint64_t value);
void wait_until(Ready ready, const void* object, std::uint64_t value);

// Waits for all lanes of the warp. Returns what each of them gave.
using WarpValues = std::array<std::uint64_t, kWarpSize>;
const WarpValues& exchange(std::uint64_t mine);

// Hopper's named barriers; 0 is that of __syncthreads. `count` GPU threads arrive, of which some wait.
void arrive_at(int barrier, int count);
void wait_at(int barrier, int count);

// Work of another unit of the GPU: it is done some time later, in any order.
void defer(std::function<void()> work);

}  // namespace rapt::test
