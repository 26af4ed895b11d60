// How many cores this process may use. All that differs between operating systems and processors is behind this header.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rapt::core {

// More threads than this are never started, whoever asks.
inline constexpr int kMaxThreads = 1024;

// The cores that affinity and the container's CPU quota leave to this process: at least 1.
int available_cpus();

// The cores in the calling thread's affinity mask, which the threads it starts inherit.
int cpus_in_affinity();

// Tells the processor that this thread is spinning, so that its sibling gets the execution units.
void relax_cpu();

// What follows is pure text work: tests feed it strings.

// A thread count as a person would write it in RAPT_NUM_THREADS: a positive whole number, spaces around it allowed, at
// most kMaxThreads (more is cut to that). Anything else is nullopt: a typo must not stop a program that runs without.
std::optional<int> parse_thread_count(std::string_view text);

// Where /proc/self/cgroup says that this process stands.
struct CgroupPaths {
  std::optional<std::string> unified;  // version 2: the line "0::/path"
  std::optional<std::string> cpu;      // version 1: the line whose controllers include "cpu"
};
CgroupPaths parse_cgroup_paths(std::string_view proc_self_cgroup);

// A quota in cores: "150000 100000" is 1.5, and so is quota "150000" with period "100000", as version 1 writes it.
// nullopt: no limit, or a text that is not understood.
std::optional<double> parse_cpu_max(std::string_view cpu_max);
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);

// The text of a file, or nullopt where there is none.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

// The tightest quota over this process's control group and all groups above it, in cores.
std::optional<double> cgroup_cpu_quota(const ReadFile& read_file);

// A quota of 2.5 cores keeps three threads busy part of the time; two would leave some of it unused.
int cpus_within(int affinity, std::optional<double> quota);

}  // namespace rapt::core
