#include <atomic>
#include <cstdlib>

#include "core/text.h"
#include "cpu/kernel_table.h"
#include "rapt/cpu.h"

namespace rapt {

namespace {

std::atomic<const cpu::InstructionSet*> forced{nullptr};

const cpu::InstructionSet& find(std::string_view name) {
  std::string built, supported;
  bool known = false;
  for (const cpu::InstructionSet& set : cpu::instruction_sets()) {
    if (name == set.name && set.runs_here()) return set;
    known = known || name == set.name;
    built += (built.empty() ? "" : ", ") + std::string(set.name);
    if (set.runs_here()) supported += (supported.empty() ? "" : ", ") + std::string(set.name);
  }
  if (known) throw Error(text("instruction set: this machine does not support ", name, "; it supports ", supported));
  throw Error(text("instruction set: unknown name ", name, "; this build has ", built));
}

const cpu::InstructionSet& best() {
  for (const cpu::InstructionSet& set : cpu::instruction_sets()) {
    if (set.runs_here()) return set;
  }
  throw Error("instruction set: this machine supports none of the sets in this build");
}

}  // namespace

const cpu::InstructionSet& cpu::chosen_instruction_set() {
  if (const InstructionSet* set = forced.load(std::memory_order_acquire)) return *set;
  static const InstructionSet& initial = [&]() -> const InstructionSet& {
    const char* name = std::getenv("RAPT_ISA");
    return name != nullptr && *name != '\0' ? find(name) : best();
  }();
  return initial;
}

std::vector<InstructionSetInfo> instruction_sets() {
  const cpu::InstructionSet* in_use = &cpu::chosen_instruction_set();
  std::vector<InstructionSetInfo> sets;
  for (const cpu::InstructionSet& set : cpu::instruction_sets()) {
    sets.push_back({set.name, set.runs_here(), &set == in_use});
  }
  return sets;
}

void use_instruction_set(std::string_view name) {
  forced.store(name.empty() ? nullptr : &find(name), std::memory_order_release);
}

}  // namespace rapt
