// A thread block on the CPU, which runs device code unchanged.
//
// Each GPU thread is a function call with its own stack. Threads run one after another, each until it has to wait, at a
// barrier or in an exchange between the lanes of its warp. If all of them wait forever, run_block throws. The headers
// in tests/emulated/gpu replace those of src/cuda that contain GPU instructions.
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

// The functions below are called by running GPU threads.

int block_thread();  // the thread's number in the block
int block_size();

// wait_until returns once `ready` gives true, and calls it again whenever another thread may have changed its result.
using Ready = bool (*)(const void* object, std::uint64_t value);
void wait_until(Ready ready, const void* object, std::uint64_t value);

// Waits for all lanes of the warp. Returns the value that each of them passed.
using WarpValues = std::array<std::uint64_t, kWarpSize>;
const WarpValues& exchange(std::uint64_t mine);

// Hopper's named barriers; 0 is the one of __syncthreads. `count` GPU threads arrive, some of which wait.
void arrive_at(int barrier, int count);
void wait_at(int barrier, int count);

// Work of another unit of the GPU, which is done some time later, in any order.
void defer(std::function<void()> work);

}  // namespace rapt::test
