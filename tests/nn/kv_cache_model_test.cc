// Compares the cache with a simple model of it, through many random operations.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "rapt/kv_cache.h"
#include "support/sanitizers.h"

namespace rapt::test {
namespace {

using cases::Stream;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kHeads = 2, kSize = 3, kValueSize = 2;

// A token is a number that determines its keys and values.
float key_of(int token, std::int64_t h, std::int64_t d) { return static_cast<float>(token * 8 + h * 4 + d); }
float value_of(int token, std::int64_t h, std::int64_t d) { return -key_of(token, h, d) - 0.5F; }

// A model of the cache, with a vector for each sequence. Pages have no contents here and are only counted.
class Model {
 public:
  explicit Model(const KvCacheConfig& config) : config_(config) {}

  struct Sequence {
    std::vector<int> tokens;
    std::vector<std::shared_ptr<int>> pages;
  };
  std::map<std::int64_t, Sequence> sequences;

  std::int64_t free_pages() const {
    std::set<const int*> held;
    for (const auto& [id, sequence] : sequences) {
      for (const auto& page : sequence.pages) held.insert(page.get());
    }
    return config_.pages - static_cast<std::int64_t>(held.size());
  }
  void cut(Sequence& sequence, std::size_t length) const {
    sequence.tokens.resize(length);
    if (config_.page_size > 0) sequence.pages.resize(pages_for(length));
  }
  bool fits(const Ids& ids, const Ids& counts) {
    std::int64_t pages = 0;
    std::map<const int*, std::pair<long, long>> shared;  // per partly filled page: its users, and those that write now
    for (std::size_t n = 0; n < ids.size(); ++n) {
      const Sequence& sequence = sequences[ids[n]];
      const std::size_t before = sequence.tokens.size(), after = before + static_cast<std::size_t>(counts[n]);
      if (config_.length > 0 && static_cast<std::int64_t>(after) > config_.length) return false;
      if (config_.page_size == 0) continue;
      pages += static_cast<std::int64_t>(pages_for(after) - pages_for(before));
      if (counts[n] == 0 || before % static_cast<std::size_t>(config_.page_size) == 0) continue;
      auto& [users, writers] = shared[sequence.pages.back().get()];
      users = sequence.pages.back().use_count();
      ++writers;
    }
    for (const auto& [page, use] : shared) pages += std::min(use.second, use.first - 1);
    return config_.page_size == 0 || pages <= free_pages();
  }
  void append(std::int64_t id, const std::vector<int>& tokens) {
    Sequence& sequence = sequences[id];
    if (config_.page_size > 0 && !tokens.empty()) {
      const bool partly = sequence.tokens.size() % static_cast<std::size_t>(config_.page_size) != 0;
      if (partly && sequence.pages.back().use_count() > 1) sequence.pages.back() = std::make_shared<int>();
      while (sequence.pages.size() < pages_for(sequence.tokens.size() + tokens.size())) {
        sequence.pages.push_back(std::make_shared<int>());
      }
    }
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  }

 private:
  std::size_t pages_for(std::size_t tokens) const {
    const auto size = static_cast<std::size_t>(config_.page_size);
    return (tokens + size - 1) / size;
  }

  KvCacheConfig config_;
};

// A cache and its model, changed together at random.
class Pair {
 public:
  Pair(const KvCacheConfig& config, std::uint64_t seed) : cache_(config), model_(config), stream_(seed) {}

  void step() {
    const std::int64_t choice = stream_.integer(0, 99);
    if (choice < 12 || model_.sequences.empty()) {
      add();
    } else if (choice < 70) {
      append();
    } else if (choice < 80) {
      fork();
    } else if (choice < 92) {
      truncate();
    } else {
      const std::int64_t id = some();
      cache_.remove(id);
      model_.sequences.erase(id);
    }
  }

  void expect_same_counts() {
    if (cache_.config().page_size > 0) {
      ASSERT_EQ(cache_.free_pages(), model_.free_pages());
    }
    ASSERT_EQ(cache_.sequence_count(), static_cast<std::int64_t>(model_.sequences.size()));
    for (const auto& [id, sequence] : model_.sequences) {
      ASSERT_EQ(cache_.length(id), static_cast<std::int64_t>(sequence.tokens.size()));
    }
  }

  void expect_same_tokens() {
    Ids ids;
    for (const auto& [id, sequence] : model_.sequences) ids.push_back(id);
    if (stream_.chance(0.5)) std::reverse(ids.begin(), ids.end());
    cache_.view(ids, view_);
    for (std::size_t b = 0; b < ids.size(); ++b) {
      const std::vector<int>& tokens = model_.sequences[ids[b]].tokens;
      ASSERT_EQ(view_.key_lengths[b], static_cast<std::int64_t>(tokens.size()));
      for (std::size_t j = 0; j < tokens.size(); ++j) expect_token(b, static_cast<std::int64_t>(j), tokens[j]);
    }
  }

  int refused() const { return refused_; }
  int appended() const { return appended_; }

 private:
  std::int64_t some() {
    auto place = model_.sequences.begin();
    std::advance(place, stream_.integer(0, static_cast<std::int64_t>(model_.sequences.size()) - 1));
    return place->first;
  }
  bool has_room() const { return static_cast<std::int64_t>(model_.sequences.size()) < cache_.config().sequences; }

  void add() {
    if (!has_room()) return expect_refused([&] { cache_.add(); });
    const std::int64_t id = cache_.add();
    ASSERT_EQ(model_.sequences.count(id), 0U);
    model_.sequences[id] = {};
  }

  void append() {
    Ids ids, counts;
    std::int64_t most = 0;
    for (const auto& [id, sequence] : model_.sequences) {
      if (!ids.empty() && stream_.chance(0.6)) continue;
      ids.push_back(id);
      counts.push_back(stream_.chance(0.5) ? 1 : stream_.integer(0, stream_.chance(0.1) ? 90 : 20));
      most = std::max(most, counts.back());
    }
    const std::int64_t rows = static_cast<std::int64_t>(ids.size());
    Tensor key({rows, kHeads, most, kSize}), value({rows, kHeads, most, kValueSize});
    std::vector<std::vector<int>> tokens(ids.size());
    float* k = key.values<float>().data();
    float* v = value.values<float>().data();
    for (std::size_t b = 0; b < ids.size(); ++b) {
      for (std::int64_t n = 0; n < counts[b]; ++n) tokens[b].push_back(next_token_++ % 1'000'000);
      for (std::int64_t h = 0; h < kHeads; ++h) {
        for (std::int64_t i = 0; i < most; ++i, k += kSize, v += kValueSize) {
          if (i >= counts[b]) continue;
          for (std::int64_t d = 0; d < kSize; ++d) k[d] = key_of(tokens[b][static_cast<std::size_t>(i)], h, d);
          for (std::int64_t d = 0; d < kValueSize; ++d) v[d] = value_of(tokens[b][static_cast<std::size_t>(i)], h, d);
        }
      }
    }
    if (!model_.fits(ids, counts)) return expect_refused([&] { cache_.append(ids, key, value, counts); });
    cache_.append(ids, key, value, counts);
    ++appended_;
    for (std::size_t b = 0; b < ids.size(); ++b) model_.append(ids[b], tokens[b]);
  }

  void fork() {
    const std::int64_t id = some();
    const auto all = static_cast<std::int64_t>(model_.sequences[id].tokens.size());
    const std::int64_t length = stream_.chance(0.5) ? all : stream_.integer(0, all);
    if (!has_room()) return expect_refused([&] { cache_.fork(id, length); });
    const std::int64_t forked = length == all ? cache_.fork(id) : cache_.fork(id, length);
    ASSERT_EQ(model_.sequences.count(forked), 0U);
    Model::Sequence copy = model_.sequences[id];
    model_.cut(copy, static_cast<std::size_t>(length));
    model_.sequences[forked] = std::move(copy);
  }

  void truncate() {
    const std::int64_t id = some();
    Model::Sequence& sequence = model_.sequences[id];
    const std::int64_t length = stream_.integer(0, static_cast<std::int64_t>(sequence.tokens.size()));
    cache_.truncate(id, length);
    model_.cut(sequence, static_cast<std::size_t>(length));
  }

  template <class Call>
  void expect_refused(const Call& call) {
    ++refused_;
    EXPECT_THROW(call(), Error);
  }

  void expect_token(std::size_t b, std::int64_t j, int token) {
    std::int64_t row = static_cast<std::int64_t>(b);
    if (view_.pages_per_row > 0) {
      const std::int64_t size = view_.key.size(2);
      row = view_.page_table[b * static_cast<std::size_t>(view_.pages_per_row) + static_cast<std::size_t>(j / size)];
      j %= size;
    }
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const auto* key = view_.key.data_as<float>() + row * view_.key.stride(0) + h * view_.key.stride(1) + j * kSize;
      const auto* value =
          view_.value.data_as<float>() + row * view_.value.stride(0) + h * view_.value.stride(1) + j * kValueSize;
      for (std::int64_t d = 0; d < kSize; ++d) ASSERT_EQ(key[d], key_of(token, h, d));
      for (std::int64_t d = 0; d < kValueSize; ++d) ASSERT_EQ(value[d], value_of(token, h, d));
    }
  }

  KvCache cache_;
  Model model_;
  Stream stream_;
  CacheView view_;
  int next_token_ = 0, refused_ = 0, appended_ = 0;
};

void expect_same_as_model(const KvCacheConfig& config, int steps, std::uint64_t seed) {
  Pair pair(config, seed);
  for (int n = 0; n < steps; ++n) {
    pair.step();
    pair.expect_same_counts();
    if (n % 16 == 0 || n + 1 == steps) pair.expect_same_tokens();
    if (testing::Test::HasFailure()) {
      FAIL() << "after " << n << " steps, page size " << config.page_size << ", seed " << seed;
    }
  }
  EXPECT_GT(pair.refused(), steps / 200);  // full from time to time
  EXPECT_GT(pair.appended(), steps / 5);
}

// The tests below run 4.5 · kSteps random operations in total.
constexpr int kSteps = kAddressSanitizer || kThreadSanitizer ? 5000 : 25000;

TEST(KvCacheModel, HoldsForPagesOfEverySize) {
  KvCacheConfig config{.kv_heads = kHeads, .head_size = kSize, .value_size = kValueSize, .sequences = 6};
  config.page_size = 16, config.pages = 24;
  expect_same_as_model(config, 2 * kSteps, 1);
  config.page_size = 32, config.pages = 13;
  expect_same_as_model(config, kSteps, 2);
  config.page_size = 128, config.pages = 7, config.length = 300;
  expect_same_as_model(config, kSteps, 3);
}

TEST(KvCacheModel, HoldsWithoutPages) {
  KvCacheConfig config{.kv_heads = kHeads, .head_size = kSize, .value_size = kValueSize, .sequences = 5, .length = 90};
  expect_same_as_model(config, kSteps / 2, 4);
}

}  // namespace
}  // namespace rapt::test
