#include "cuda/kernel_sets.h"

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/text.h"
#include "cuda/plain.h"
#include "cuda/rows.h"

namespace rapt::cuda {

namespace {

constexpr std::array<const KernelSet*, 2> kSets = {&kRowsKernels, &kPlainKernels};

const KernelSet* set_named(std::string_view name) {
  if (name.empty()) return nullptr;
  std::string names;
  for (const KernelSet* set : kSets) {
    if (name == set->name) return set;
    names += (names.empty() ? "" : ", ") + std::string(set->name);
  }
  throw Error(text("RAPT_CUDA_KERNELS is ", name, "; the kernel sets of this build are ", names));
}

}  // namespace

std::span<const KernelSet* const> all_sets() { return kSets; }

const KernelSet* forced_set() {
  // The variable is read once, because the environment must not be read while another thread changes it.
  static const std::string name = [] {
    const char* given = std::getenv("RAPT_CUDA_KERNELS");
    return std::string(given == nullptr ? "" : given);
  }();
  return set_named(name);
}

const KernelSet& choose_set(const Arguments& arguments, const Launch& launch) {
  const KernelSet* forced = forced_set();
  for (const KernelSet* set : kSets) {
    if (forced != nullptr && forced != set) continue;
    if (set->runs_on(launch.capability) && set->can(arguments, launch)) return *set;
  }
  std::string who = "no kernels of this build can";
  if (forced != nullptr) who = text("the kernel set ", forced->name, ", chosen by RAPT_CUDA_KERNELS, cannot");
  throw Error(text("cuda:", launch.device, ": ", who, " compute this call on a GPU of compute capability ",
                   launch.capability / 10, ".", launch.capability % 10));
}

}  // namespace rapt::cuda
