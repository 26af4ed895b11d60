#include "cli/info.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#if defined(__linux__)
#include <sched.h>
#endif

#include "cli/command.h"
#include "rapt/cpu.h"
#include "rapt/cuda.h"
#include "rapt/error.h"
#include "rapt/parallel.h"

namespace rapt::cli {
namespace {

struct EngineInfo {
  std::string_view name;
  std::string_view does;
};
constexpr EngineInfo kEngines[] = {
    {"cpu", "forward and backward in f32, bf16, f16: tiled, vectorised, threaded"},
    {"reference", "forward and backward in every type: the plain formula, in f64"},
    {"cuda", "forward and backward of tensors on a GPU, in f32, bf16, f16"},
};

struct Machine {
  std::string model = "unknown";
  int cores = 1;     // that are online
  int affinity = 1;  // that this process may run on
};

Machine look_around() {
  Machine machine;
  machine.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.affinity = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) machine.affinity = CPU_COUNT(&allowed);
#endif
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      machine.model = line.substr(colon + 2);
      break;
    }
  }
  return machine;
}

// The most likely reason for the value of thread_count().
std::string reason_for(int threads, const Machine& machine) {
  const char* asked = std::getenv("RAPT_NUM_THREADS");
  std::string ignored;
  if (asked != nullptr && *asked != '\0') {
    char* end = nullptr;
    const long value = std::strtol(asked, &end, 10);
    const bool whole = std::string_view(end).find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (whole && value >= 1) {
      return value == threads ? fmt::format("RAPT_NUM_THREADS={}", asked)
                              : fmt::format("RAPT_NUM_THREADS={}, limited to {}", asked, threads);
    }
    ignored = fmt::format(" (RAPT_NUM_THREADS={} is not a positive integer and is ignored)", asked);
  }
  std::string reason = "all cores";
  if (threads < machine.affinity) {
    reason = "the container's CPU quota";
  } else if (machine.affinity < machine.cores) {
    reason = "the cores this process may run on (affinity)";
  }
  return reason + ignored;
}

std::vector<InstructionSetInfo> sets_or_usage_error() {
  try {
    return instruction_sets();
  } catch (const Error& error) {  // only an invalid name in RAPT_ISA throws
    const char* asked = std::getenv("RAPT_ISA");
    throw UsageError(fmt::format("RAPT_ISA={}: {}", asked == nullptr ? "" : asked, error.what()));
  }
}

// The GPUs and kernel sets that `rapt info` shows.
struct Gpus {
  std::vector<cuda::DeviceInfo> devices;
  std::vector<cuda::KernelSetInfo> sets;
  std::string driver, unavailable_because;
};

Gpus gpus_or_usage_error() {
  try {
    return {cuda::devices(), cuda::kernel_sets(), cuda::driver(), cuda::unavailable_because()};
  } catch (const Error& error) {  // an invalid name in RAPT_CUDA_KERNELS, or a GPU that does not answer
    throw UsageError(error.what());
  }
}

std::string in_words(const cuda::DeviceInfo& gpu) {
  return fmt::format("{}, compute capability {}.{}, {:.0f} GiB, {} multiprocessors", gpu.name, gpu.capability_major,
                     gpu.capability_minor, static_cast<double>(gpu.memory_bytes) / 0x1p30, gpu.multiprocessors);
}

void print_text(const Gpus& gpus) {
  if (gpus.devices.empty()) {
    fmt::print("\nGPUs              none: {}\n", gpus.unavailable_because);
    return;
  }
  fmt::print("\nGPUs              driver {}\n", gpus.driver);
  for (const cuda::DeviceInfo& gpu : gpus.devices)
    fmt::print("  {:<16}{}\n", to_string({Device::Kind::cuda, gpu.index}), in_words(gpu));
  fmt::print("\nkernel sets of the cuda engine, fastest first (RAPT_CUDA_KERNELS=NAME uses only that one)\n");
  for (const cuda::KernelSetInfo& set : gpus.sets) {
    fmt::print("  {:<16}{}{}\n", set.name, set.does,
               set.in_use      ? ""
               : set.runs_here ? " (not in use)"
                               : " (not for this GPU)");
  }
}

void put_json(const Gpus& gpus, nlohmann::ordered_json& data) {
  data["gpus"] = nlohmann::ordered_json::array();
  for (const cuda::DeviceInfo& gpu : gpus.devices) {
    data["gpus"].push_back({{"name", gpu.name},
                            {"compute_capability", fmt::format("{}.{}", gpu.capability_major, gpu.capability_minor)},
                            {"memory_bytes", gpu.memory_bytes},
                            {"multiprocessors", gpu.multiprocessors}});
  }
  data["no_gpu_because"] = gpus.unavailable_because;
  data["gpu_driver"] = gpus.driver;
  data["cuda_kernel_sets"] = nlohmann::ordered_json::array();
  for (const cuda::KernelSetInfo& set : gpus.sets) {
    data["cuda_kernel_sets"].push_back({{"name", set.name}, {"runs_here", set.runs_here}, {"in_use", set.in_use}});
  }
}

void print_text(const Machine& machine, const std::vector<InstructionSetInfo>& sets, const Gpus& gpus) {
  const int threads = thread_count();
  fmt::print("rapt {}\n\n", RAPT_VERSION);
  fmt::print("processor         {}\n", machine.model);
  fmt::print("cores             {}\n", machine.cores);
  fmt::print("threads           {}: {}\n", threads, reason_for(threads, machine));
  fmt::print("\ninstruction sets, best first (RAPT_ISA=NAME uses another)\n");
  for (const InstructionSetInfo& set : sets) {
    fmt::print("  {:<16}{}\n", set.name,
               set.in_use      ? "in use"
               : set.runs_here ? "available"
                               : "not available on this machine");
  }
  fmt::print("\nengines\n");
  for (const EngineInfo& engine : kEngines) fmt::print("  {:<16}{}\n", engine.name, engine.does);
  print_text(gpus);
}

void print_json(const Machine& machine, const std::vector<InstructionSetInfo>& sets, const Gpus& gpus) {
  const int threads = thread_count();
  nlohmann::ordered_json data = {{"schema", 1},
                                 {"version", RAPT_VERSION},
                                 {"processor", machine.model},
                                 {"cores", machine.cores},
                                 {"affinity", machine.affinity},
                                 {"threads", threads},
                                 {"threads_because", reason_for(threads, machine)}};
  for (const InstructionSetInfo& set : sets) {
    data["instruction_sets"].push_back({{"name", set.name}, {"runs_here", set.runs_here}, {"in_use", set.in_use}});
  }
  for (const EngineInfo& engine : kEngines) {
    data["engines"].push_back({{"name", engine.name}, {"does", engine.does}});
  }
  put_json(gpus, data);
  // A processor's name, or a variable's value, may contain any bytes.
  fmt::print("{}\n", data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

Command add_info(Command& rapt, InfoOptions& options) {
  Command command = rapt.below("info", "Show the processor, threads, instruction sets, engines and GPUs");
  command.flag("--json", options.json, "Print the result as JSON");
  return command;
}

ExitCode run_info(const InfoOptions& options) {
  const std::vector<InstructionSetInfo> sets = sets_or_usage_error();
  const Gpus gpus = gpus_or_usage_error();
  const Machine machine = look_around();
  if (options.json) {
    print_json(machine, sets, gpus);
  } else {
    print_text(machine, sets, gpus);
  }
  return ExitCode::good;
}

}  // namespace rapt::cli
