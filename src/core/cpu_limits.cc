#include "core/cpu_limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace rapt::core {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Returns the text up to `separator`, and removes both from the front of `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view head = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return head;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trimmed(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool has_controller(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    if (take_until(controllers, ',') == wanted) return true;
  }
  return false;
}

void tighten(std::optional<double>& quota, std::optional<double> other) {
  if (other && (!quota || *other < *quota)) quota = other;
}

// "/a/b" -> "/a/b", "/a", "". A limit on any of them applies. Inside a container the path may be the host's; then only
// the last entry, the mount point, exists.
std::vector<std::string> path_and_parents(std::string path) {
  std::vector<std::string> paths;
  while (!path.empty() && path.back() == '/') path.pop_back();
  while (!path.empty()) {
    paths.push_back(path);
    path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  paths.emplace_back();
  return paths;
}

[[maybe_unused]] std::optional<std::string> read_whole_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::optional<int> parse_thread_count(std::string_view text) {
  const std::optional<std::int64_t> value = parse_integer(text);
  if (!value || *value < 1) return std::nullopt;
  return static_cast<int>(std::min<std::int64_t>(*value, kMaxThreads));
}

CgroupPaths parse_cgroup_paths(std::string_view proc_self_cgroup) {
  CgroupPaths paths;
  while (!proc_self_cgroup.empty()) {  // each line: hierarchy:controller,controller:/path
    std::string_view line = take_until(proc_self_cgroup, '\n');
    const std::string_view hierarchy = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    if (line.empty() || line.front() != '/') continue;
    if (hierarchy == "0" && controllers.empty()) paths.unified = std::string(line);
    if (has_controller(controllers, "cpu")) paths.cpu = std::string(line);
  }
  return paths;
}

std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period) {
  const std::optional<std::int64_t> quota_us = parse_integer(quota);
  const std::optional<std::int64_t> period_us = parse_integer(period);
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return std::nullopt;  // quota -1: no limit
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

std::optional<double> parse_cpu_max(std::string_view cpu_max) {
  std::string_view rest = trimmed(cpu_max);
  const std::string_view quota = take_until(rest, ' ');  // "max" is not a number, so there is no limit
  return parse_cfs_quota(quota, rest);
}

std::optional<double> cgroup_cpu_quota(const ReadFile& read_file) {
  const std::optional<std::string> listing = read_file("/proc/self/cgroup");
  if (!listing) return std::nullopt;
  const CgroupPaths own = parse_cgroup_paths(*listing);

  std::optional<double> quota;
  if (own.unified) {
    for (const std::string& path : path_and_parents(*own.unified)) {
      for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
        if (const auto text = read_file(mount + path + "/cpu.max")) tighten(quota, parse_cpu_max(*text));
      }
    }
  }
  if (own.cpu) {
    for (const std::string& path : path_and_parents(*own.cpu)) {
      for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
        const auto quota_text = read_file(mount + path + "/cpu.cfs_quota_us");
        const auto period_text = read_file(mount + path + "/cpu.cfs_period_us");
        if (quota_text && period_text) tighten(quota, parse_cfs_quota(*quota_text, *period_text));
      }
    }
  }
  return quota;
}

int cpus_within(int affinity, std::optional<double> quota) {
  int cpus = std::clamp(affinity, 1, kMaxThreads);
  if (quota && *quota < cpus) cpus = std::max(1, static_cast<int>(std::ceil(*quota)));
  return cpus;
}

#if defined(__linux__)

int cpus_in_affinity() {
  // The kernel rejects a mask shorter than its own and does not report the length, so longer ones are tried.
  for (std::size_t bits = 1024; bits <= std::size_t{1} << 20; bits *= 2) {
    cpu_set_t* mask = CPU_ALLOC(bits);
    if (mask == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    const int cpus = sched_getaffinity(0, bytes, mask) == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (cpus > 0) return cpus;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int available_cpus() { return cpus_within(cpus_in_affinity(), cgroup_cpu_quota(read_whole_file)); }

#else

int cpus_in_affinity() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

int available_cpus() { return cpus_within(cpus_in_affinity(), std::nullopt); }

#endif

void relax_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace rapt::core
