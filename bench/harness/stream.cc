#include "bench/harness/stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "bench/harness/peak.h"

namespace rapt::bench {
namespace {

using Read = std::uint64_t (*)(const std::byte* data, std::size_t bytes);

// Sums 512 bytes per step, from kStreams positions at once, in eight chains. It is a macro for the same reason as
// RAPT_MULTIPLY_ADD in peak.cc. With kPrefetch 0 there is no prefetch.
#define RAPT_READ(Vector, kStreams, kPrefetch)                                  \
  constexpr std::size_t kEach = 512 / (kStreams);                               \
  constexpr std::size_t kLoads = kEach / sizeof(Vector);                        \
  const std::size_t part = bytes / (kStreams) / kEach * kEach;                  \
  Vector sums[8] = {};                                                          \
  for (std::size_t at = 0; at < part; at += kEach) {                            \
    _Pragma("GCC unroll 8") for (std::size_t s = 0; s < (kStreams); ++s) {      \
      const std::byte* from = data + s * part + at;                             \
      if ((kPrefetch) > 0) {                                                    \
        _Pragma("GCC unroll 8") for (std::size_t n = 0; n < kEach; n += 64)     \
            __builtin_prefetch(from + (kPrefetch) + n, 0, 0);                   \
      }                                                                         \
      _Pragma("GCC unroll 32") for (std::size_t n = 0; n < kLoads; ++n) {       \
        sums[(s * kLoads + n) % 8] += reinterpret_cast<const Vector*>(from)[n]; \
      }                                                                         \
    }                                                                           \
  }                                                                             \
  for (std::size_t n = 1; n < 8; ++n) sums[0] += sums[n];                       \
  std::uint64_t sum = 0;                                                        \
  for (std::size_t n = 0; n < sizeof(Vector) / 8; ++n) sum += sums[0][n];       \
  return sum

using Vector2 [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;
std::uint64_t read_16(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector2, 1, 0); }
std::uint64_t read_16_prefetch(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector2, 1, 6144); }

#if defined(__x86_64__)
using Vector4 [[gnu::vector_size(32), gnu::may_alias]] = std::uint64_t;
using Vector8 [[gnu::vector_size(64), gnu::may_alias]] = std::uint64_t;
#define RAPT_AVX2 [[gnu::target("avx2")]] std::uint64_t
#define RAPT_AVX512 [[gnu::target("avx512f")]] std::uint64_t
RAPT_AVX2 read_32(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector4, 1, 0); }
RAPT_AVX2 read_32_prefetch(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector4, 1, 6144); }
RAPT_AVX2 read_32_4(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector4, 4, 0); }
RAPT_AVX2 read_32_8(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector4, 8, 0); }
RAPT_AVX512 read_64(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector8, 1, 0); }
RAPT_AVX512 read_64_prefetch(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector8, 1, 6144); }
RAPT_AVX512 read_64_4(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector8, 4, 0); }
RAPT_AVX512 read_64_8(const std::byte* data, std::size_t bytes) { RAPT_READ(Vector8, 8, 0); }
#endif

struct Way {
  std::string_view name;
  Read read;
  bool one_stream = true;
};

std::span<const Way> ways() {
  static const std::vector<Way> kWays = [] {
    std::vector<Way> all{{"16 bytes", read_16}, {"16 bytes, prefetch", read_16_prefetch}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
      all.insert(all.end(), {{"avx2", read_32},
                             {"avx2, prefetch", read_32_prefetch},
                             {"avx2, 4 streams", read_32_4, false},
                             {"avx2, 8 streams", read_32_8, false}});
    }
    if (__builtin_cpu_supports("avx512f")) {
      all.insert(all.end(), {{"avx512", read_64},
                             {"avx512, prefetch", read_64_prefetch},
                             {"avx512, 4 streams", read_64_4, false},
                             {"avx512, 8 streams", read_64_8, false}});
    }
#endif
    return all;
  }();
  return kWays;
}

using Bytes = FastestRead::Bytes;

// Divides each piece of memory among the threads. The parts begin at multiples of a page.
std::vector<std::vector<Bytes>> shared_out(const std::vector<Bytes>& data, int threads) {
  constexpr std::size_t kPage = 4096;
  std::vector<std::vector<Bytes>> shares(static_cast<std::size_t>(threads));
  for (const Bytes& all : data) {
    const auto bound = [&](std::size_t n) {
      return n == shares.size() ? all.size() : all.size() * n / shares.size() / kPage * kPage;
    };
    for (std::size_t n = 0; n < shares.size(); ++n) {
      shares[n].push_back(all.subspan(bound(n), bound(n + 1) - bound(n)));
    }
  }
  return shares;
}

}  // namespace

FastestRead::FastestRead(std::size_t bytes, int threads)
    : memory_({static_cast<std::int64_t>(bytes / sizeof(float))}), bytes_(bytes / sizeof(float) * sizeof(float)) {
  // The memory is written once, because untouched pages all map to one page of zeros, which stays in cache.
  std::ranges::fill(memory_.values<float>(), 1.0F);
  shares_ = shared_out({std::as_bytes(memory_.values<float>())}, threads);
  find_way();
}

FastestRead::FastestRead(const std::vector<Bytes>& data, int threads) : shares_(shared_out(data, threads)) {
  for (const Bytes& each : data) bytes_ += each.size();
  find_way();
}

// Alternates between the ways, and compares medians, so that a single lucky sample does not decide.
void FastestRead::find_way() {
  constexpr std::size_t kRounds = 7;
  const auto times = 1 + static_cast<std::int64_t>((std::size_t{32} << 20) / (bytes_ + 1));
  std::vector<std::vector<double>> rates(ways().size());
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t way = 0; way < rates.size(); ++way) rates[way].push_back(gbps(way, times));
  }
  double best = 0.0;
  double best_of_all = 0.0;
  for (std::size_t way = 0; way < rates.size(); ++way) {
    std::ranges::nth_element(rates[way], rates[way].begin() + kRounds / 2);
    const double median = rates[way][kRounds / 2];
    if (ways()[way].one_stream && median > best) best = median, way_ = way;
    if (median > best_of_all) best_of_all = median, way_of_all_ = way;
  }
}

std::string_view FastestRead::way() const { return ways()[way_].name; }
double FastestRead::gbps(std::int64_t times) const { return gbps(way_, times); }
double FastestRead::gbps_of_all(std::int64_t times) const { return gbps(way_of_all_, times); }

double FastestRead::gbps(std::size_t way, std::int64_t times) const {
  std::atomic<std::uint64_t> sum = 0;  // keeps the compiler from removing the reads
  const double taken = seconds_on_threads(static_cast<int>(shares_.size()), [&](int index) {
    for (std::int64_t n = 0; n < times; ++n) {
      for (const Bytes& each : shares_[static_cast<std::size_t>(index)]) {
        sum += ways()[way].read(each.data(), each.size());
      }
    }
  });
  return static_cast<double>(bytes_) * static_cast<double>(times) / taken / 1e9;
}

}  // namespace rapt::bench
