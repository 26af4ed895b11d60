// Memory beyond inputs and outputs is O(L) for any mask. The tests use up to 131072 queries and keys of one head.
#include <algorithm>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "rapt/attention.h"
#include "support/every_instruction_set.h"

namespace rapt::test {
namespace {

constexpr std::int64_t kLength = 131072, kSize = 64;
constexpr std::size_t kMiB = std::size_t{1} << 20;

// The bound is one packed copy of the keys, and 8 MiB per thread; the goal is half of that.
constexpr std::size_t bound(int threads) {
  return kLength * kSize * sizeof(float) + static_cast<std::size_t>(threads) * 8 * kMiB;
}

class Memory : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(Memory);

struct LongCall {
  Tensor query{{1, 1, kLength, kSize}}, key{{1, 1, kLength, kSize}}, value{{1, 1, kLength, kSize}};
  Tensor out{{1, 1, kLength, kSize}}, lse{{1, 1, kLength}};

  std::size_t workspace(const AttentionOptions& options) const {
    auto& self = const_cast<LongCall&>(*this);  // NOLINT(cppcoreguidelines-pro-type-const-cast): nothing is written
    return attention_workspace_bytes({.out = self.out, .lse = self.lse}, query, key, value, options);
  }
};

TEST_P(Memory, OfALongCallIsWithinHalfOfItsBound) {
  const LongCall call;
  const Tensor padding({1, kLength}, DType::boolean);
  for (const int threads : {1, 2, 8}) {
    const AttentionOptions plain{.threads = threads};
    AttentionOptions everything{.softcap = 5.0, .causal = true, .threads = threads};
    everything.alibi_slopes = {0.5};
    everything.masks = {Mask::drop(padding)};
    everything.dropout.rate = 0.1;
    for (const AttentionOptions& options : {plain, everything}) {
      const std::size_t bytes = call.workspace(options);
      RecordProperty("bytes_on_" + std::to_string(threads) + "_threads", std::to_string(bytes));
      EXPECT_LE(bytes, bound(threads) / 2) << threads << " threads";
    }
  }
}

// With split-KV there is a partial for each row and chunk; for many rows, all partials together would be large.
TEST_P(Memory, OfSomeQueriesOnManyKeysIsWithinItsBound) {
  const LongCall call;
  for (const std::int64_t queries : {1, 40, 300, 700, 5000}) {
    Tensor out({1, 1, queries, kSize});
    for (const int threads : {2, 7, 16, 64}) {
      const std::size_t bytes = attention_workspace_bytes({.out = out}, call.query.view().slice(2, 0, queries),
                                                          call.key, call.value, {.threads = threads});
      EXPECT_LE(bytes, bound(threads)) << queries << " queries, " << threads << " threads";
    }
  }
}

TEST_P(Memory, GrowsNoFasterThanTheLength) {
  const auto bytes_for = [](std::int64_t length) {
    Tensor query({1, 2, length, kSize}), key({1, 2, length, kSize}), value({1, 2, length, kSize});
    Tensor out({1, 2, length, kSize});
    Tensor bias({length, 1});
    AttentionOptions options{.threads = 2};
    options.masks = {Mask::add(bias)};
    return attention_workspace_bytes({.out = out}, query, key, value, options);
  };
  EXPECT_LE(bytes_for(16384), 4 * bytes_for(4096) + kMiB);
}

// Backward takes, besides the memory of each thread, three numbers per row, and dq in f32 if its tensor has a narrower
// type.
TEST_P(Memory, OfALongBackwardIsWithinItsBound) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Tensor query({1, 1, kLength, kSize}, type), key({1, 1, kLength, kSize}, type);
    const Tensor lse({1, 1, kLength});
    Tensor dquery({1, 1, kLength, kSize}, type), dkey({1, 1, kLength, kSize}, type),
        dvalue({1, 1, kLength, kSize}, type);
    const AttentionGradients gradients{.dquery = dquery, .dkey = dkey, .dvalue = dvalue};
    constexpr std::size_t kRows = kLength * kSize * sizeof(float);
    for (const int threads : {1, 2, 8}) {
      for (const bool reuse : {false, true}) {
        AttentionUpstream upstream{.dout = query};
        if (reuse) upstream.out = query, upstream.lse = lse;
        const std::size_t bytes =
            attention_backward_workspace_bytes(gradients, upstream, query, key, key, {.threads = threads});
        const std::size_t rows = type == DType::f32 ? 0 : kRows;
        EXPECT_LE(bytes, rows + 3 * kMiB + static_cast<std::size_t>(threads) * 2 * kMiB)
            << name_of(type) << ", " << threads << " threads" << (reuse ? ", with forward's results" : "");
      }
    }
  }
}

// A size from /proc/self/status, in bytes; 0 if it is not there.
std::size_t status(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoul(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// The peak memory of the process, measured during a call with a window, because such a call is fast.
TEST_P(Memory, AtItsPeakIsWithinHalfOfItsBound) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer's own memory would be counted";
  LongCall call;
  for (Tensor* tensor : {&call.query, &call.key, &call.value, &call.out, &call.lse}) {
    std::ranges::fill(tensor->values<float>(), 0.25F);  // so that all memory is resident before the measurement
  }
  AttentionOptions options{.causal = true, .threads = 2};
  options.window.left = 256;
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const std::size_t before = status("VmRSS");
  if (before == 0 || status("VmHWM") > before + kMiB) GTEST_SKIP() << "this system does not tell the peak";
  attention({.out = call.out, .lse = call.lse}, call.query, call.key, call.value, options);
  const std::size_t peak = status("VmHWM") - before;
  RecordProperty("peak_bytes", std::to_string(peak));
  EXPECT_LE(peak, bound(2) / 2);
  EXPECT_FLOAT_EQ(call.out.values<float>()[0], 0.25F);
}

}  // namespace
}  // namespace rapt::test
