#include <cuda_runtime.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cuda/errors.h"
#include "cuda/random_dots.h"
#include "cuda/tensor_core.h"
#include "cuda/tensor_core_instructions.cuh"
#include "rapt/cuda.h"
#include "rapt/error.h"
#include "rapt/tensor_core.h"

namespace rapt::cuda {
namespace {

constexpr int kRows = 64, kColumns = 256, kDepth = 16, kDots = kRows * kColumns;
constexpr int kThreads = 128;  // one warpgroup

// The data of one block: A (64, 16) and B (256, 16), both with k contiguous; the accumulators `c`, the expected sums
// and the sums of an instruction, all (64, 256). Everything is stored as bits.
struct Tile {
  std::uint16_t* a;
  std::uint16_t* b;
  std::uint32_t* c;
  std::uint32_t* expected;
  std::uint32_t* got;

  __device__ float accumulator(int row, int column) const { return __uint_as_float(c[row * kColumns + column]); }
  __device__ void store(int row, int column, float sum) const { got[row * kColumns + column] = __float_as_uint(sum); }
  __device__ Tile of_block() const {
    const std::size_t n = blockIdx.x;
    return {a + n * kRows * kDepth, b + n * kColumns * kDepth, c + n * kDots, expected + n * kDots, got + n * kDots};
  }
};

struct Failure {
  int tile, row, column;
  std::uint32_t got;
};

// The number of results that differ from the expected ones, and the first few of them.
struct Tally {
  static constexpr int kKept = 4;

  unsigned long long wrong;
  Failure first[kKept];
};

// Makes the inputs, and computes the model's sums.
__global__ void __launch_bounds__(kThreads) make_dots(DotKind kind, DType type, std::uint64_t seed, Tile tiles) {
  __shared__ Factor a_factors[kRows][kDepth], b_factors[kColumns][kDepth];
  const Tile tile = tiles.of_block();
  const auto position = [](int what, int n) {
    return (static_cast<std::uint64_t>(blockIdx.x) * 3 + static_cast<unsigned>(what)) * kDots +
           static_cast<unsigned>(n);
  };
  const auto make_side = [&](bool left, int row, std::uint16_t* numbers, Factor* factors) {
    random_side(kind, type, left, DotRandom(seed, position(left ? 0 : 1, row)), numbers);
    for (int k = 0; k < kDepth; ++k) factors[k] = factor_of(type, numbers[k]);
  };
  for (int row = threadIdx.x; row < kRows; row += kThreads)
    make_side(true, row, tile.a + row * kDepth, a_factors[row]);
  for (int row = threadIdx.x; row < kColumns; row += kThreads)
    make_side(false, row, tile.b + row * kDepth, b_factors[row]);
  __syncthreads();
  for (int n = threadIdx.x; n < kDots; n += kThreads) {
    const Factor *a = a_factors[n / kColumns], *b = b_factors[n % kColumns];
    tile.c[n] = random_accumulator(kind, type, add_products(a, b, 0), DotRandom(seed, position(2, n)));
    tile.expected[n] = add_products(a, b, tile.c[n]);
  }
}

__global__ void __launch_bounds__(kThreads) compare(Tile tiles, Tally* tally) {
  const Tile tile = tiles.of_block();
  for (int n = threadIdx.x; n < kDots; n += kThreads) {
    if (tile.got[n] == tile.expected[n]) continue;
    const unsigned long long place = atomicAdd(&tally->wrong, 1ULL);
    if (place < Tally::kKept) {
      tally->first[place] = {static_cast<int>(blockIdx.x), n / kColumns, n % kColumns, tile.got[n]};
    }
  }
}

__device__ std::uint32_t pair_at(const std::uint16_t* row, int k) {
  return row[k] | static_cast<std::uint32_t>(row[k + 1]) << 16;
}

// The fragment of A for 16 rows (PTX ISA, "Matrix fragments for mma.m16n8k16"). For wgmma, each warp of a warpgroup
// holds its own 16 rows in the same layout.
__device__ void load_a(const std::uint16_t* rows, std::uint32_t (&fragment)[4]) {
  const int lane = threadIdx.x % 32, k = 2 * (lane % 4);
  const std::uint16_t *upper = rows + lane / 4 * kDepth, *lower = upper + 8 * kDepth;
  fragment[0] = pair_at(upper, k), fragment[1] = pair_at(lower, k);
  fragment[2] = pair_at(upper, k + 8), fragment[3] = pair_at(lower, k + 8);
}

// The row and the column of accumulator n of this thread, within the 16 rows of its warp.
__device__ int row_of(int n) { return static_cast<int>(threadIdx.x) % 32 / 4 + 8 * (n / 2 % 2); }
__device__ int column_of(int n) { return n / 4 * 8 + 2 * (static_cast<int>(threadIdx.x) % 4) + n % 2; }

template <DType kType>
__global__ void __launch_bounds__(kThreads) run_mma(Tile tiles) {
  const Tile tile = tiles.of_block();
  const int lane = threadIdx.x % 32, first_row = static_cast<int>(threadIdx.x) / 32 * 16;
  std::uint32_t a[4];
  load_a(tile.a + first_row * kDepth, a);
  for (int first_column = 0; first_column < kColumns; first_column += 8) {
    const std::uint16_t* column = tile.b + (first_column + lane / 4) * kDepth;
    const std::uint32_t b[2] = {pair_at(column, 2 * (lane % 4)), pair_at(column, 2 * (lane % 4) + 8)};
    float sums[4];
    for (int n = 0; n < 4; ++n) sums[n] = tile.accumulator(first_row + row_of(n), first_column + column_of(n));
    mma_m16n8k16<kType>(sums, a, b);
    for (int n = 0; n < 4; ++n) tile.store(first_row + row_of(n), first_column + column_of(n), sums[n]);
  }
}

// The layout of B in shared memory: K-major without swizzle, or MN-major (transposed) with the 128-byte swizzle.
enum class Major { k, mn };

template <DType kType, int kN, bool kAInRegisters, Major kMajor>
__global__ void __launch_bounds__(kThreads) run_wgmma(Tile tiles) {
  __shared__ __align__(1024) std::uint16_t shared_a[kRows * kDepth];
  __shared__ __align__(1024) std::uint16_t shared_b[kN * kDepth];
  const Tile tile = tiles.of_block();
  const int first_row = static_cast<int>(threadIdx.x) / 32 * 16;
  // K-major: core matrices of 8 rows by 8 numbers; the two core matrices of a row are adjacent.
  const auto core = [](int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; };
  // MN-major: 128 bytes hold 64 columns of one k; the order of their 16-byte parts depends on k.
  const auto swizzled = [](int column, int k) {
    return column / 64 * 1024 + k * 64 + (column % 64 ^ (k % 8) * 8);
  };
  for (int n = threadIdx.x; n < kRows * kDepth; n += kThreads) shared_a[core(n / kDepth, n % kDepth)] = tile.a[n];
  std::uint32_t a[4];
  load_a(tile.a + first_row * kDepth, a);

  for (int first_column = 0; first_column < kColumns; first_column += kN) {
    __syncthreads();  // the previous products have read shared_b
    for (int n = threadIdx.x; n < kN * kDepth; n += kThreads) {
      const int column = n / kDepth, k = n % kDepth;
      shared_b[kMajor == Major::k ? core(column, k) : swizzled(column, k)] = tile.b[first_column * kDepth + n];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float sums[kN / 2];
#pragma unroll
    for (int n = 0; n < kN / 2; ++n)
      sums[n] = tile.accumulator(first_row + row_of(n), first_column + column_of(n));
    const std::uint64_t descriptor =
        kMajor == Major::k ? matrix_descriptor(shared_b, 128, 256, Swizzle::none)
                           : matrix_descriptor(shared_b, 2048, 1024, Swizzle::bytes_128);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    if constexpr (kAInRegisters) {
      Wgmma<kN>::template run<kType, kMajor == Major::mn>(sums, a, descriptor);
    } else {
      Wgmma<kN>::template run<kType, kMajor == Major::mn>(
          sums, matrix_descriptor(shared_a, 128, 256, Swizzle::none), descriptor);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int n = 0; n < kN / 2; ++n) tile.store(first_row + row_of(n), first_column + column_of(n), sums[n]);
  }
}

// The kernel of one instruction, for both types.
struct Instruction {
  const char* name;
  void (*bf16)(Tile);
  void (*f16)(Tile);
};

template <int kN, bool kAInRegisters, Major kMajor>
constexpr Instruction wgmma(const char* name) {
  return {name, run_wgmma<DType::bf16, kN, kAInRegisters, kMajor>, run_wgmma<DType::f16, kN, kAInRegisters, kMajor>};
}

// With N = 8, a transposed B would be narrower than the swizzle, so N = 8 is checked with K-major B only.
constexpr Instruction kInstructions[] = {
    {"mma.sync m16n8k16", run_mma<DType::bf16>, run_mma<DType::f16>},
    wgmma<8, false, Major::k>("wgmma m64n8k16, A shared, B K-major"),
    wgmma<8, true, Major::k>("wgmma m64n8k16, A in registers, B K-major"),
    wgmma<64, false, Major::k>("wgmma m64n64k16, A shared, B K-major"),
    wgmma<64, true, Major::k>("wgmma m64n64k16, A in registers, B K-major"),
    wgmma<64, false, Major::mn>("wgmma m64n64k16, A shared, B MN-major"),
    wgmma<64, true, Major::mn>("wgmma m64n64k16, A in registers, B MN-major"),
    wgmma<128, false, Major::k>("wgmma m64n128k16, A shared, B K-major"),
    wgmma<128, true, Major::k>("wgmma m64n128k16, A in registers, B K-major"),
    wgmma<128, false, Major::mn>("wgmma m64n128k16, A shared, B MN-major"),
    wgmma<128, true, Major::mn>("wgmma m64n128k16, A in registers, B MN-major"),
    wgmma<256, false, Major::k>("wgmma m64n256k16, A shared, B K-major"),
    wgmma<256, true, Major::k>("wgmma m64n256k16, A in registers, B K-major"),
    wgmma<256, false, Major::mn>("wgmma m64n256k16, A shared, B MN-major"),
    wgmma<256, true, Major::mn>("wgmma m64n256k16, A in registers, B MN-major"),
};

// 48 tiles of each kind and type make 25 million dots.
constexpr int kTiles = 48;
constexpr std::uint64_t kSeed = 1;

struct Free {
  void operator()(void* memory) const { cudaFree(memory); }
};
template <class T>
class DeviceArray {
 public:
  DeviceArray(std::size_t count, int device) : device_(device) {
    void* memory = nullptr;
    require(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc", device_);
    memory_.reset(static_cast<T*>(memory));
  }
  T* get() const { return memory_.get(); }
  std::vector<T> read(std::size_t from, std::size_t count) const {
    std::vector<T> values(count);
    require(cudaMemcpy(values.data(), get() + from, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy", device_);
    return values;
  }

 private:
  int device_;
  std::unique_ptr<T, Free> memory_;
};

std::string hex(std::uint32_t bits, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "%0*x", digits, bits);
  return text;
}

// Checks the dots of one kind and type with every instruction.
class Check {
 public:
  explicit Check(int device) : device_(device) {}

  TensorCoreScore run(DType type, DotKind kind, std::vector<std::string>& failures) const {
    TensorCoreScore score{name_of(kind), type, std::int64_t{kTiles} * kDots, 0};
    const Tile tile{a_.get(), b_.get(), c_.get(), expected_.get(), got_.get()};
    make_dots<<<kTiles, kThreads>>>(kind, type, kSeed, tile);
    require_launched("make_dots", device_);
    for (const Instruction& instruction : kInstructions) {
      // The results of the previous instruction are overwritten, so that a dot that this instruction does not write is
      // found.
      require(cudaMemset(got_.get(), 0xEE, sizeof(std::uint32_t) * kTiles * kDots), "cudaMemset", device_);
      require(cudaMemset(tally_.get(), 0, sizeof(Tally)), "cudaMemset", device_);
      (type == DType::bf16 ? instruction.bf16 : instruction.f16)<<<kTiles, kThreads>>>(tile);
      require_launched(instruction.name, device_);
      compare<<<kTiles, kThreads>>>(tile, tally_.get());
      require_launched("compare", device_);
      const Tally tally = tally_.read(0, 1)[0];
      score.wrong += static_cast<std::int64_t>(tally.wrong);
      for (unsigned n = 0; n < tally.wrong && n < Tally::kKept && failures.size() < kMostFailures; ++n)
        failures.push_back(describe(instruction.name, score, tally.first[n]));
    }
    return score;
  }

 private:
  static constexpr std::size_t kMostFailures = 20;

  std::string describe(const char* instruction, const TensorCoreScore& score, const Failure& failure) const {
    const auto tile = static_cast<std::size_t>(failure.tile);
    const auto row = tile * kRows + static_cast<std::size_t>(failure.row);
    const auto column = tile * kColumns + static_cast<std::size_t>(failure.column);
    const std::size_t dot = row * kColumns + static_cast<std::size_t>(failure.column);
    const auto a = a_.read(row * kDepth, kDepth), b = b_.read(column * kDepth, kDepth);
    std::string text = std::string(instruction) + ", " + std::string(rapt::name_of(score.type)) + ", " + score.kind +
                       ", row " + std::to_string(failure.row) + ", column " + std::to_string(failure.column) +
                       ": device " + hex(failure.got, 8) + ", model " + hex(expected_.read(dot, 1)[0], 8) + "; " +
                       hex(c_.read(dot, 1)[0], 8);
    for (std::size_t k = 0; k < kDepth; ++k) text += " + " + hex(a[k], 4) + "·" + hex(b[k], 4);
    return text;
  }

  int device_;
  DeviceArray<std::uint16_t> a_{std::size_t{kTiles} * kRows * kDepth, device_};
  DeviceArray<std::uint16_t> b_{std::size_t{kTiles} * kColumns * kDepth, device_};
  DeviceArray<std::uint32_t> c_{std::size_t{kTiles} * kDots, device_};
  DeviceArray<std::uint32_t> expected_{std::size_t{kTiles} * kDots, device_};
  DeviceArray<std::uint32_t> got_{std::size_t{kTiles} * kDots, device_};
  DeviceArray<Tally> tally_{1, device_};
};

}  // namespace

TensorCoreReport check_tensor_core(int device) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<DeviceInfo> all = devices();
  if (all.empty()) throw Error("tensor-core check: " + unavailable_because());
  if (device < 0 || device >= static_cast<int>(all.size())) {
    throw Error("tensor-core check: there is no cuda:" + std::to_string(device) + "; devices are cuda:0 to cuda:" +
                std::to_string(all.size() - 1));
  }
  const DeviceInfo& info = all[static_cast<std::size_t>(device)];
  if (info.capability_major != 9) {
    throw Error("tensor-core check: the model is that of Hopper (compute capability 9.0); cuda:" +
                std::to_string(device) + " is " + info.name + " with compute capability " +
                std::to_string(info.capability_major) + "." + std::to_string(info.capability_minor));
  }
  require(cudaSetDevice(device), "cudaSetDevice", device);
  TensorCoreReport report;
  report.device = info.name;
  for (const Instruction& instruction : kInstructions) report.instructions.emplace_back(instruction.name);
  const Check check(device);
  for (const DType type : {DType::bf16, DType::f16}) {
    for (int kind = 0; kind < kDotKinds; ++kind)
      report.scores.push_back(check.run(type, static_cast<DotKind>(kind), report.failures));
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace rapt::cuda
