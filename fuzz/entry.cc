// What libFuzzer calls: one of the checks, named by RAPT_FUZZ_CHECK, on bytes that it made up.
#include <cstdint>

#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rapt::fuzz::RAPT_FUZZ_CHECK(std::as_bytes(std::span(data, size)));  // what it throws ends the run, and is a finding
  return 0;
}
