// Tests every error and its exact message; a failing call must write nothing.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "support/bad_calls.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

class BadForward : public testing::TestWithParam<BadCall> {};
class BadBackward : public testing::TestWithParam<BadCall> {};
const auto name_of_call = [](const auto& instance) { return std::string(instance.param.name); };
INSTANTIATE_TEST_SUITE_P(Calls, BadForward, testing::ValuesIn(bad_forward_calls()), name_of_call);
INSTANTIATE_TEST_SUITE_P(Calls, BadBackward, testing::ValuesIn(bad_backward_calls()), name_of_call);

TEST_P(BadForward, IsRefusedWithItsOwnMessage) {
  expect_refusal(GetParam(), [](AttentionCall& call) {
    return refusal([&] { attention(call.outputs, call.query, call.key, call.value, call.options); });
  });
}

TEST_P(BadBackward, IsRefusedWithItsOwnMessage) {
  expect_refusal(GetParam(), [](AttentionCall& call) {
    return refusal(
        [&] { attention_backward(call.gradients, call.upstream, call.query, call.key, call.value, call.options); });
  });
}

TEST(BadCalls, AreManyAndTheGoodOneIsGood) {
  std::set<std::string> messages;
  for (const BadCall& bad : bad_forward_calls()) messages.insert(bad.message);
  for (const BadCall& bad : bad_backward_calls()) messages.insert(bad.message);
  EXPECT_GE(messages.size(), 90U);
  AttentionCall call;
  attention(call.outputs, call.query, call.key, call.value, call.options);
  attention_backward(call.gradients, call.upstream, call.query, call.key, call.value, call.options);
}

TEST(BadCalls, EveryFieldOfAWindowIsNotNegative) {
  Window names;
  for_each_field(names, [](std::string_view name, const auto&) {
    AttentionCall call;
    call.options.alignment = Alignment::top_left();
    for_each_field(call.options.window, [&](std::string_view other, auto& field) {
      if (other == name) field = -1;
    });
    const std::string said = refusal([&] { attention(call.outputs, call.query, call.key, call.value, call.options); });
    EXPECT_EQ(said.find("attention: window." + std::string(name) + " is -1; it must not be negative"), 0U) << said;
  });
}

TEST(BadCalls, AWindowPastEveryKeyIsNoLimitAndNeedsNoAlignment) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  AttentionCall call;  // 3 queries and 5 keys
  call.options.window = {.left = kMost, .right = kMost};
  attention(call.outputs, call.query, call.key, call.value, call.options);
  call.options.window = {.left = kMost / 4 - 1};
  EXPECT_NE(refusal([&] {
              attention(call.outputs, call.query, call.key, call.value, call.options);
            }).find("needs an alignment"),
            std::string::npos);
}

TEST(BadCalls, GetTheirErrorFromTheAllocatingCallToo) {
  AttentionCall call;
  call.query = call.query.select(0, 0);
  EXPECT_THROW(attention(call.query, call.key, call.value), Error);
  EXPECT_THROW(attention({}, {}, {}), Error);
}

TEST(Workspace, ServesAtItsSizeFromAnyAddressAndNotBelow) {
  AttentionCall call;
  const Tensor wanted = attention(call.query, call.key, call.value);
  const std::size_t bytes = attention_workspace_bytes(call.outputs, call.query, call.key, call.value);
  std::vector<std::byte> memory(bytes + 64);
  for (std::size_t shift = 0; shift < 64; shift += 7) {
    call.options.workspace = std::span(memory).subspan(shift, bytes);
    attention(call.outputs, call.query, call.key, call.value, call.options);
    EXPECT_TRUE(std::equal(wanted.values<float>().begin(), wanted.values<float>().end(),
                           call.out_memory.values<float>().begin()));
  }
  call.options.workspace = std::span(memory).first(bytes - 1);
  EXPECT_THROW(attention(call.outputs, call.query, call.key, call.value, call.options), Error);
}

TEST(Workspace, ServesBackwardToo) {
  AttentionCall call;
  const std::size_t bytes =
      attention_backward_workspace_bytes(call.gradients, call.upstream, call.query, call.key, call.value);
  std::vector<std::byte> memory(bytes);
  call.options.workspace = memory;
  attention_backward(call.gradients, call.upstream, call.query, call.key, call.value, call.options);
  call.options.workspace = std::span(memory).first(bytes - 1);
  EXPECT_THROW(attention_backward(call.gradients, call.upstream, call.query, call.key, call.value, call.options),
               Error);
}

}  // namespace
}  // namespace rapt::test
