#include "core/utf8.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace rapt {
namespace {

bool is_surrogate(char32_t point) { return point >= 0xD800 && point < 0xE000; }

TEST(Utf8, EveryCodePointIsReadAsItWasWritten) {
  for (char32_t point = 0; point <= 0x10FFFF; ++point) {
    if (is_surrogate(point)) continue;
    const std::string text = to_utf8(point);
    const CodePoint found = first_code_point(text + "after");
    ASSERT_EQ(found.value, point);
    ASSERT_EQ(found.bytes, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) ASSERT_EQ(first_code_point(text.substr(0, cut)).bytes, 0U);
  }
}

TEST(Utf8, LengthsChangeWhereTheStandardSays) {
  EXPECT_EQ(to_utf8(0x7F).size(), 1U);
  EXPECT_EQ(to_utf8(0x80), "\xC2\x80");
  EXPECT_EQ(to_utf8(0x7FF), "\xDF\xBF");
  EXPECT_EQ(to_utf8(0x800), "\xE0\xA0\x80");
  EXPECT_EQ(to_utf8(0xFFFF), "\xEF\xBF\xBF");
  EXPECT_EQ(to_utf8(0x10000), "\xF0\x90\x80\x80");
  EXPECT_EQ(to_utf8(0x10FFFF), "\xF4\x8F\xBF\xBF");
}

TEST(Utf8, WhatIsNotWellFormedHasNoBytes) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text :
       {"\x80"sv, "\xBF\x80"sv, "\xC0\x80"sv, "\xC1\xBF"sv, "\xC3("sv, "\xE0\x9F\xBF"sv, "\xED\xA0\x80"sv,
        "\xED\xBF\xBF"sv, "\xE2\x82("sv, "\xF0\x8F\xBF\xBF"sv, "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv}) {
    EXPECT_EQ(first_code_point(text).bytes, 0U) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace rapt
