// Which sanitizer a test runs under, and what is not possible under it.
#pragma once

#include <gtest/gtest.h>

// g++ defines macros, clang has __has_feature.
#if defined(__has_feature)
#define RAPT_TEST_FEATURE(name) __has_feature(name)
#else
#define RAPT_TEST_FEATURE(name) 0
#endif

namespace rapt::test {

#if defined(__SANITIZE_THREAD__) || RAPT_TEST_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || RAPT_TEST_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

// Under a sanitizer, code takes many times as long. Tests that repeat one computation for many cases take fewer there.
inline constexpr bool kSlow = kAddressSanitizer || kThreadSanitizer;

}  // namespace rapt::test

// ThreadSanitizer ends a child of a fork that starts threads. AddressSanitizer's heap may stay locked in the child by a
// thread of the parent that was just starting: about one child in two thousand hangs when it starts its first thread.
#define SKIP_WHERE_A_FORKED_CHILD_MAY_NOT_START_THREADS()            \
  if (rapt::test::kThreadSanitizer || rapt::test::kAddressSanitizer) \
  GTEST_SKIP() << "threads after fork, under a sanitizer"
