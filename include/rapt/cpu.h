// Instruction sets of the CPU engine: which there are, which is in use, and how to force one.
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

// Every instruction set this build has kernels for, best first. Where RAPT_ISA names one that cannot be used, this
// throws, as every call would; the message lists those there are.
std::vector<InstructionSetInfo> instruction_sets();

// Uses this one from now on, in every thread; "" returns to the first choice. The variable RAPT_ISA does the same from
// outside. Throws where there is no such instruction set, or this machine lacks it. Bits may differ between instruction
// sets, never within one.
void use_instruction_set(std::string_view name);

}  // namespace rapt
#pragma GCC visibility pop
