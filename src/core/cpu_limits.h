// How many cores this process may use. The implementation depends on the operating system and the processor, this
// interface does not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rapt::core {

// Upper limit for every thread count.
inline constexpr int kMaxThreads = 1024;

// The number of cores this process may use under CPU affinity and the container's CPU quota: at least 1.
int available_cpus();

// The number of cores in the calling thread's affinity mask. Threads that it starts inherit the mask.
int cpus_in_affinity();

// Tells the CPU that this thread is spinning, so that its SMT sibling gets the execution units.
void relax_cpu();

// The functions below do not query the system themselves, so that tests can pass their own texts and numbers.

// Parses RAPT_NUM_THREADS: a positive integer, surrounding spaces allowed, clamped to kMaxThreads. Anything else gives
// nullopt, because a typo must not stop a program that runs without the variable.
std::optional<int> parse_thread_count(std::string_view text);

// The cgroup paths of this process in /proc/self/cgroup.
struct CgroupPaths {
  std::optional<std::string> unified;  // cgroup v2: the line "0::/path"
  std::optional<std::string> cpu;      // cgroup v1: the line whose controllers include "cpu"
};
CgroupPaths parse_cgroup_paths(std::string_view proc_self_cgroup);

// A quota in cores: "150000 100000" is 1.5, and so is quota "150000" with period "100000", the form of cgroup v1.
// nullopt: no limit, or the text cannot be parsed.
std::optional<double> parse_cpu_max(std::string_view cpu_max);
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);

// The contents of a file, or nullopt if it cannot be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

// The smallest quota of this process's cgroup and all its ancestors, in cores.
std::optional<double> cgroup_cpu_quota(const ReadFile& read_file);

// The number of cores within both limits. The quota is rounded up: with a quota of 2.5 cores, two threads would leave
// half a core unused, and a third thread uses it.
int cpus_within(int affinity, std::optional<double> quota);

}  // namespace rapt::core
