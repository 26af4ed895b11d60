// A test that runs once on each instruction set this machine has.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/cpu.h"
#include "support/sanitizers.h"

namespace rapt::test {

// Under ThreadSanitizer, which is slow, only the best one is used: all sets have the same synchronisation.
inline std::vector<std::string> instruction_sets_here() {
  std::vector<std::string> names;
  for (const InstructionSetInfo& set : instruction_sets()) {
    if (set.runs_here && !(kThreadSanitizer && !names.empty())) names.push_back(set.name);
  }
  return names;
}

inline std::string instruction_set_in_use() {
  for (const InstructionSetInfo& set : instruction_sets()) {
    if (set.in_use) return set.name;
  }
  return "";
}

// Restores the instruction set that was in use, also if a test throws.
class KeepInstructionSet {
 public:
  KeepInstructionSet() = default;
  KeepInstructionSet(const KeepInstructionSet&) = delete;
  KeepInstructionSet& operator=(const KeepInstructionSet&) = delete;
  ~KeepInstructionSet() { use_instruction_set(before_); }

 private:
  std::string before_ = instruction_set_in_use();
};

class EveryInstructionSet : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_instruction_set(GetParam()); }

 private:
  KeepInstructionSet keep_;
};

}  // namespace rapt::test

// Instantiates a suite that derives from EveryInstructionSet.
#define RAPT_ON_EVERY_INSTRUCTION_SET(suite)                                                  \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(rapt::test::instruction_sets_here()), \
                           [](const testing::TestParamInfo<std::string>& set) { return set.param; })
