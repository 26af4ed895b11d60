// The tensor core of the emulated block: computes the products of a warp by the model of the tensor core's arithmetic.

#include <array>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cuda/tensor_core.h"
#include "cuda/wgmma.cuh"
#include "emulated/block.h"

namespace rapt::cuda {
namespace {

constexpr int kRows = 16;      // of a warp
constexpr int kTileRows = 64;  // of A in shared memory

std::uint16_t shared_element(std::uint32_t address) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, memory + swizzled(address), sizeof bits);
  return bits;
}

// The address in a descriptor, and the distance between panels of 64 columns of an MN-major tile.
std::uint32_t begin_of(std::uint32_t descriptor) { return (descriptor & 0x3FFF) << 4; }
std::uint32_t leading_of(std::uint32_t descriptor) { return descriptor >> 16 << 4; }

using Lanes = std::array<const EmulatedProduct*, test::kWarpSize>;

// Rows of factors with the summed index last.
class Factors {
 public:
  Factors(int rows, int depth)
      : depth_(static_cast<std::size_t>(depth)),
        bits_(static_cast<std::size_t>(rows) * depth_),
        factors_(bits_.size()),
        traits_(bits_.size() / 16) {}

  void set(int row, int k, DType type, std::uint16_t bits) {
    bits_[index(row, k)] = bits;
    factors_[index(row, k)] = factor_of(type, bits);
  }
  const Factor* step(int row, int k) const { return &factors_[index(row, k)]; }

  // Whether the 16 factors of a step are all zero, and whether they are all finite.
  struct Traits {
    bool zero = true, finite = true;
  };
  const Traits& traits(int row, int k) const { return traits_[index(row, k) / 16]; }
  void look() {
    for (std::size_t n = 0; n < factors_.size(); ++n) {
      Traits& traits = traits_[n / 16];
      traits.zero = traits.zero && factors_[n].kind == Factor::finite && factors_[n].significand == 0;
      traits.finite = traits.finite && factors_[n].kind == Factor::finite;
    }
  }
  bool same_rows(int row, int other) const {
    return std::memcmp(&bits_[index(row, 0)], &bits_[index(other, 0)], depth_ * sizeof bits_[0]) == 0;
  }

 private:
  std::size_t index(int row, int k) const {
    return static_cast<std::size_t>(row) * depth_ + static_cast<std::size_t>(k);
  }

  std::size_t depth_;
  std::vector<std::uint16_t> bits_;
  std::vector<Factor> factors_;
  std::vector<Traits> traits_;
};

Factors read_a(const Lanes& lanes, int warp) {
  const EmulatedProduct& product = *lanes[0];
  Factors a(kRows, product.depth);
  for (int row = 0; row < kRows; ++row) {
    for (int k = 0; k < product.depth; ++k) {
      std::uint16_t bits = 0;
      if (product.a != nullptr) {
        const int number = row % 8 * 4 + k % 8 / 2;
        const EmulatedProduct& lane = *lanes[static_cast<std::size_t>(number)];
        const std::uint32_t pair = lane.a[k / 16 * 4 + row / 8 + 2 * (k % 16 / 8)];
        bits = static_cast<std::uint16_t>(k % 2 == 0 ? pair : pair >> 16);
      } else {
        const int panel = k / 64 * kTileRows + warp * kRows + row;
        bits = shared_element(begin_of(product.a_tile) + static_cast<std::uint32_t>(panel * 128 + k % 64 * 2));
      }
      a.set(row, k, product.type, bits);
    }
  }
  a.look();
  return a;
}

Factors read_b(const EmulatedProduct& product) {
  Factors b(product.columns, product.depth);
  const std::uint32_t begin = begin_of(product.b_tile);
  for (int column = 0; column < product.columns; ++column) {
    for (int k = 0; k < product.depth; ++k) {
      const int k_major = (k / 64 * product.columns + column) * 128 + k % 64 * 2;
      const int mn_major = column / 64 * static_cast<int>(leading_of(product.b_tile)) + k * 128 + column % 64 * 2;
      b.set(column, k, product.type,
            shared_element(begin + static_cast<std::uint32_t>(product.b_is_k_major ? k_major : mn_major)));
    }
  }
  b.look();
  return b;
}

// Whether a step leaves the accumulator as it is, because all products are zero. (Even such a step would change an
// accumulator of −0 or NaN.)
bool adds_nothing(const Factors::Traits& a, const Factors::Traits& b, std::uint32_t c) {
  const bool c_is_nan = (c & 0x7FFFFFFF) > 0x7F800000;
  return ((a.zero && b.finite) || (b.zero && a.finite)) && !c_is_nan && c != 0x80000000;
}

std::uint32_t chain(const Factors& a, int row, const Factors& b, int column, int depth, std::uint32_t c) {
  for (int k = 0; k < depth; k += 16) {
    if (adds_nothing(a.traits(row, k), b.traits(column, k), c)) continue;
    c = add_products(a.step(row, k), b.step(column, k), c);
  }
  return c;
}

void multiply_warp(const Lanes& lanes, int warp) {
  const EmulatedProduct& product = *lanes[0];
  const Factors a = read_a(lanes, warp), b = read_b(product);
  std::vector<std::uint32_t> before(static_cast<std::size_t>(product.columns)), after = before;
  for (int row = 0; row < kRows; ++row) {
    const auto sum_at = [&](int column) -> float& {
      const int lane = row % 8 * 4 + column % 8 / 2;
      return lanes[static_cast<std::size_t>(lane)]->sums[column / 8 * 4 + 2 * (row / 8) + column % 2];
    };
    // Rows of a tile without a query are all the same.
    bool repeats = row > 0 && a.same_rows(row, row - 1);
    for (int column = 0; column < product.columns; ++column) {
      const std::uint32_t c = product.add ? __float_as_uint(sum_at(column)) : 0;
      const auto n = static_cast<std::size_t>(column);
      repeats = repeats && before[n] == c;
      before[n] = c;
    }
    for (int column = 0; column < product.columns; ++column) {
      const auto n = static_cast<std::size_t>(column);
      if (!repeats) after[n] = chain(a, row, b, column, product.depth, before[n]);
      sum_at(column) = __uint_as_float(after[n]);
    }
  }
}

// The products of one GPU thread: groups under way, and the group that is not committed yet.
struct UnderWay {
  std::deque<std::vector<EmulatedProduct>> groups;
  std::vector<EmulatedProduct> open;
};
std::array<UnderWay, 1024> under_way;
UnderWay& mine() { return under_way[static_cast<std::size_t>(test::block_thread())]; }

// A hash of the operands in shared memory. The device may read them at any time between issue and wait, so they must be
// there when a product is issued, and must not change.
std::uint64_t operands_of(const EmulatedProduct& product) {
  std::uint64_t hash = 0;
  const auto add = [&](std::uint32_t begin, int bytes) {
    for (int n = 0; n < bytes; n += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, memory + begin + n, sizeof word);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    }
  };
  add(begin_of(product.b_tile), product.columns * product.depth * 2);
  if (product.a == nullptr) add(begin_of(product.a_tile), kTileRows * product.depth * 2);
  return hash;
}

bool is_first_lane() { return test::block_thread() % test::kWarpSize == 0; }

// Computes a product; all lanes of a warp call this together.
void run(const EmulatedProduct& product) {
  const auto& values = test::exchange(reinterpret_cast<std::uint64_t>(&product));
  if (is_first_lane()) {
    if (operands_of(product) != product.operands) {
      throw std::logic_error("shared memory changed while a product that reads it was under way");
    }
    Lanes lanes{};
    for (std::size_t n = 0; n < lanes.size(); ++n) {
      lanes[n] = reinterpret_cast<const EmulatedProduct*>(values[n]);  // NOLINT(performance-no-int-to-ptr)
    }
    multiply_warp(lanes, test::block_thread() / test::kWarpSize % 4);
  }
  test::exchange(0);
}

}  // namespace

alignas(1024) std::byte memory[test::kSharedBytes];

void emulate_block() {
  for (UnderWay& thread : under_way) thread = {};
  std::memset(memory, 0xFF, sizeof memory);
}
void emulate(const EmulatedProduct& product) {
  mine().open.push_back(product);
  if (is_first_lane()) mine().open.back().operands = operands_of(product);
}
void emulate_commit() { mine().groups.push_back(std::exchange(mine().open, {})); }
void emulate_wait(int groups) {
  UnderWay& thread = mine();
  while (static_cast<int>(thread.groups.size()) > groups) {
    for (const EmulatedProduct& product : thread.groups.front()) run(product);
    thread.groups.pop_front();
  }
}

}  // namespace rapt::cuda
