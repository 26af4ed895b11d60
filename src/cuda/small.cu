#include "cuda/small.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "cuda/errors.h"
#include "rapt/dtype.h"

namespace rapt::cuda {

namespace {

constexpr int kThreads = 256;

// The shape of a copy and the strides of both tensors, in elements. Dimensions that are contiguous in both tensors are
// merged into one.
struct Walk {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t sizes[Dims::kMaxRank] = {};
  std::int64_t from[Dims::kMaxRank] = {}, to[Dims::kMaxRank] = {};
};

Walk walk_of(const Dims& shape, const Dims& from, const Dims& to) {
  Walk walk;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    walk.count *= shape[dim];
    if (shape[dim] == 1) continue;
    const int last = walk.rank - 1;
    if (last >= 0 && walk.from[last] == from[dim] * shape[dim] && walk.to[last] == to[dim] * shape[dim]) {
      walk.sizes[last] *= shape[dim];
    } else {
      walk.sizes[walk.rank++] = shape[dim];
    }
    walk.from[walk.rank - 1] = from[dim], walk.to[walk.rank - 1] = to[dim];
  }
  return walk;
}

struct Offsets {
  std::int64_t from = 0, to = 0;
};

__device__ __forceinline__ Offsets offsets_of(const Walk& walk, std::int64_t index) {
  Offsets offsets;
  for (int dim = walk.rank - 1; dim >= 0; --dim) {
    const std::int64_t rest = index / walk.sizes[dim], place = index - rest * walk.sizes[dim];
    offsets.from += place * walk.from[dim], offsets.to += place * walk.to[dim];
    index = rest;
  }
  return offsets;
}

__device__ __forceinline__ double load(const void* data, DType dtype, std::int64_t offset) {
  switch (dtype) {
    case DType::f32: return static_cast<double>(static_cast<const float*>(data)[offset]);
    case DType::f64: return static_cast<const double*>(data)[offset];
    case DType::bf16: return static_cast<double>(static_cast<const bfloat16*>(data)[offset]);
    case DType::f16: return static_cast<double>(static_cast<const float16*>(data)[offset]);
    case DType::i8: return static_cast<double>(static_cast<const std::int8_t*>(data)[offset]);
    case DType::boolean: break;
  }
  return static_cast<const std::uint8_t*>(data)[offset] != 0 ? 1.0 : 0.0;
}

// The bits of `value` as a number of the given type, rounded once, in the low bytes of the result.
RAPT_HOST_DEVICE std::uint64_t bits_as(DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::f64: return std::bit_cast<std::uint64_t>(value);
    case DType::bf16: return bfloat16(value).bits;
    case DType::f16: return float16(value).bits;
    case DType::i8: {
      if (value != value) return 0;
      const double whole = rint(value);
      return static_cast<std::uint8_t>(static_cast<std::int8_t>(whole < -128.0 ? -128.0 : whole > 127.0 ? 127.0 : whole));
    }
    case DType::boolean: break;
  }
  return value != 0.0 ? 1 : 0;
}

__device__ __forceinline__ void store(void* data, std::size_t size, std::int64_t offset, std::uint64_t bits) {
  switch (size) {
    case 1: static_cast<std::uint8_t*>(data)[offset] = static_cast<std::uint8_t>(bits); return;
    case 2: static_cast<std::uint16_t*>(data)[offset] = static_cast<std::uint16_t>(bits); return;
    case 4: static_cast<std::uint32_t*>(data)[offset] = static_cast<std::uint32_t>(bits); return;
    default: static_cast<std::uint64_t*>(data)[offset] = bits; return;
  }
}

__global__ void convert(const __grid_constant__ Walk walk, const void* from, DType from_type, void* to, DType to_type) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < walk.count; n += step) {
    const Offsets offsets = offsets_of(walk, n);
    store(to, size_of(to_type), offsets.to, bits_as(to_type, load(from, from_type, offsets.from)));
  }
}

// A copy without conversion. It keeps all bits, even those of a signaling NaN.
template <class Word>
__global__ void move(const __grid_constant__ Walk walk, const Word* from, Word* to) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < walk.count; n += step) {
    const Offsets offsets = offsets_of(walk, n);
    to[offsets.to] = from[offsets.from];
  }
}

__global__ void fill(const __grid_constant__ Walk walk, void* to, std::size_t size, std::uint64_t bits) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < walk.count; n += step) {
    store(to, size, offsets_of(walk, n).to, bits);
  }
}

// The bytes that one launch passes as a parameter. Together with its other parameters they fit into 4096 bytes, which
// every GPU since Turing accepts.
struct Parcel {
  static constexpr std::size_t kBytes = 3584;
  alignas(16) std::byte bytes[kBytes];
};

__global__ void write_parcel(const __grid_constant__ Parcel parcel, uint4* to, int words) {
  const auto* from = reinterpret_cast<const uint4*>(parcel.bytes);
  for (int n = static_cast<int>(threadIdx.x); n < words; n += static_cast<int>(blockDim.x)) to[n] = from[n];
}

unsigned blocks_for(std::int64_t count, const Launch& launch) {
  const std::int64_t most = std::int64_t{16} * launch.multiprocessors;
  return static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, most));
}

template <class Word>
void launch_move(const Walk& walk, const ConstTensorView& from, const TensorView& to, const Launch& launch) {
  move<<<blocks_for(walk.count, launch), kThreads, 0, launch.stream>>>(walk, static_cast<const Word*>(from.data()),
                                                                       static_cast<Word*>(to.data()));
}

}  // namespace

void launch_copy(const ConstTensorView& from, const TensorView& to, const Launch& launch) {
  const Walk walk = walk_of(to.shape(), from.strides(), to.strides());
  if (walk.count == 0) return;
  if (from.dtype() != to.dtype() || from.dtype() == DType::boolean) {  // a bool that is neither 0 nor 1 becomes 1
    convert<<<blocks_for(walk.count, launch), kThreads, 0, launch.stream>>>(walk, from.data(), from.dtype(), to.data(),
                                                                            to.dtype());
  } else {
    switch (size_of(to.dtype())) {
      case 1: launch_move<std::uint8_t>(walk, from, to, launch); break;
      case 2: launch_move<std::uint16_t>(walk, from, to, launch); break;
      case 4: launch_move<std::uint32_t>(walk, from, to, launch); break;
      default: launch_move<std::uint64_t>(walk, from, to, launch); break;
    }
  }
  require_launched("copy", launch.device);
}

void launch_fill(const TensorView& to, double value, const Launch& launch) {
  const Walk walk = walk_of(to.shape(), to.strides(), to.strides());
  if (walk.count == 0) return;
  fill<<<blocks_for(walk.count, launch), kThreads, 0, launch.stream>>>(walk, to.data(), size_of(to.dtype()),
                                                                       bits_as(to.dtype(), value));
  require_launched("fill", launch.device);
}

void launch_upload(std::span<const std::byte> from, std::byte* to, const Launch& launch) {
  constexpr std::size_t kWord = sizeof(uint4);
  while (!from.empty()) {
    const std::size_t size = std::min(from.size(), Parcel::kBytes);
    Parcel parcel;
    std::memcpy(parcel.bytes, from.data(), size);
    const std::size_t words = (size + kWord - 1) / kWord;  // a block of lists is a multiple of 16 bytes long
    write_parcel<<<1, kThreads, 0, launch.stream>>>(parcel, reinterpret_cast<uint4*>(to), static_cast<int>(words));
    from = from.subspan(size);
    to += size;
  }
  require_launched("upload", launch.device);
}

}  // namespace rapt::cuda
