// Checks for an exact error message.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "rapt/error.h"

namespace rapt::test {

template <class Call>
void expect_error(const Call& call, const std::string& message) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), message);
  }
}

// The text of a refusal, or none where there was none.
template <class Attempt>
std::string refusal(const Attempt& attempt) {
  try {
    attempt();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Where the expected text ends in a space, it is how the message begins.
inline void expect_words(const std::string& expected, const std::string& message) {
  EXPECT_EQ(expected.back() == ' ' ? message.substr(0, expected.size()) : message, expected);
}

}  // namespace rapt::test
