// Parts of dq that are added in order.
#include "cpu/backward/ordered_dq.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace rapt::cpu {
namespace {

constexpr std::int64_t kRows = 2;
constexpr std::int64_t kWidth = 4;
constexpr std::int64_t kNumbers = kRows * kWidth;

// A worker's buffer for `room` parts.
struct Worker {
  explicit Worker(std::int64_t room) : memory(static_cast<std::size_t>(room * kNumbers)) {
    parts.begin(memory, kRows, kWidth);
  }
  void add(const DqPart& part, float value) {
    parts.add(part, [&](float* to, std::int64_t stride) {
      for (std::int64_t r = 0; r < part.rows; ++r) {
        for (std::int64_t d = 0; d < kWidth; ++d) to[r * stride + d] += value;
      }
    });
  }

  std::vector<float> memory;
  PendingDq parts;
};

// Some tiles of dq, and the next chunk of each.
struct Tiles {
  explicit Tiles(std::size_t count) : numbers(count * kNumbers), next_chunks(count) {}
  DqPart part(std::size_t tile, std::int64_t chunk) {
    return {&next_chunks[tile], chunk, numbers.data() + tile * kNumbers, kWidth, kRows};
  }

  std::vector<float> numbers;
  std::vector<std::atomic<std::int64_t>> next_chunks;
};

TEST(OrderedDq, TheNextPartIsAddedAtOnce) {
  Tiles tiles(1);
  Worker worker(0);  // a worker without a buffer
  worker.add(tiles.part(0, 0), 1.0F);
  worker.add(tiles.part(0, 1), 2.0F);
  EXPECT_EQ(tiles.numbers, std::vector<float>(kNumbers, 3.0F));
  EXPECT_EQ(tiles.next_chunks[0].load(), 2);
}

TEST(OrderedDq, APartWaitsUntilThoseBeforeItAreAdded) {
  Tiles tiles(2);
  Worker first(4), second(4);
  second.add(tiles.part(0, 1), 2.0F);
  second.add(tiles.part(1, 1), 4.0F);
  EXPECT_EQ(tiles.numbers, std::vector<float>(2 * kNumbers, 0.0F));
  first.add(tiles.part(1, 0), 1.0F);
  EXPECT_EQ(tiles.numbers.back(), 1.0F);
  second.add(tiles.part(0, 2), 8.0F);  // checks the buffered parts
  EXPECT_EQ(tiles.numbers.back(), 5.0F);
  EXPECT_EQ(tiles.numbers.front(), 0.0F);
  first.add(tiles.part(0, 0), 1.0F);
  second.parts.add_rest();
  EXPECT_EQ(tiles.numbers.front(), 11.0F);
  EXPECT_EQ(tiles.next_chunks[0].load(), 3);
}

// The bits of these sums depend on their order. The workers are at different chunks and tiles, have small buffers, and
// take one or several chunks at a time.
TEST(OrderedDq, ManyWorkersAddInAscendingOrder) {
  constexpr std::size_t kTiles = 7;
  constexpr std::int64_t kChunks = 60;
  const auto value = [](std::size_t tile, std::int64_t chunk) {
    return 1.0F / static_cast<float>(1 + (chunk * 7 + static_cast<std::int64_t>(tile)) % 13);
  };
  Tiles expected(kTiles);
  Worker alone(0);
  for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
    for (std::size_t tile = 0; tile < kTiles; ++tile) alone.add(expected.part(tile, chunk), value(tile, chunk));
  }
  const auto add_all = [&](std::int64_t room, std::int64_t at_once) {
    Tiles tiles(kTiles);
    std::atomic<std::int64_t> next = 0;
    std::vector<std::thread> threads;
    for (int n = 0; n < 4; ++n) {
      threads.emplace_back([&] {
        Worker worker(room);
        for (std::int64_t first = next.fetch_add(at_once); first < kChunks; first = next.fetch_add(at_once)) {
          for (std::size_t tile = 0; tile < kTiles; ++tile) {
            for (std::int64_t chunk = first; chunk < std::min(first + at_once, kChunks); ++chunk) {
              worker.add(tiles.part(tile, chunk), value(tile, chunk));
            }
          }
        }
        worker.parts.add_rest();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return tiles.numbers;
  };
  for (const std::int64_t room : {0, 1, 3, 16, 40}) {
    for (const std::int64_t at_once : {1, 2, 7}) {
      EXPECT_EQ(add_all(room, at_once), expected.numbers) << room << ", " << at_once << " at once";
    }
  }
}

}  // namespace
}  // namespace rapt::cpu
