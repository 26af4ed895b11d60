// Instruction sets of the CPU engine: list them, see which is in use, force one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace rapt {

struct InstructionSetInfo {
  std::string name;  // "avx512", "avx2", "sse4", "neon", …
  bool runs_here = false;
  bool in_use = false;
};

// Every instruction set this build has kernels for, best first. Throws, as every call of the CPU engine does, if
// RAPT_ISA names a set that this build does not have or this machine does not support.
std::vector<InstructionSetInfo> instruction_sets();

// Selects an instruction set for all later calls, in all threads; "" restores the default: the set that the environment
// variable RAPT_ISA names, or else the best one. Throws if the name is unknown or this machine does not support the
// set. Bits may differ between instruction sets, never within one.
void use_instruction_set(std::string_view name);

}  // namespace rapt
#pragma GCC visibility pop
