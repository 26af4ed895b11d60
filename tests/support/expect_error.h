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

// The error message, or none if there was no error.
template <class Attempt>
std::string refusal(const Attempt& attempt) {
  try {
    attempt();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// If the expected text ends in a space, it is the beginning of the message.
inline void expect_words(const std::string& expected, const std::string& message) {
  EXPECT_EQ(expected.back() == ' ' ? message.substr(0, expected.size()) : message, expected);
}

}  // namespace rapt::test
