#include "core/cpu_limits.h"

#include <map>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace rapt::core {
namespace {

using Files = std::map<std::string, std::string>;

std::optional<double> quota_with(const Files& files) {
  return cgroup_cpu_quota([&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  });
}

TEST(CpuLimits, AThreadCountIsAPositiveWholeNumber) {
  EXPECT_EQ(parse_thread_count("1"), 1);
  EXPECT_EQ(parse_thread_count("16"), 16);
  EXPECT_EQ(parse_thread_count(" 8\n"), 8);
  EXPECT_EQ(parse_thread_count("1024"), 1024);
}

TEST(CpuLimits, AThreadCountBeyondTheMostIsCutToIt) {
  EXPECT_EQ(parse_thread_count("1025"), kMaxThreads);
  EXPECT_EQ(parse_thread_count("9223372036854775807"), kMaxThreads);
}

TEST(CpuLimits, AnythingElseIsNoThreadCount) {
  for (const char* text : {"", " ", "0", "-1", "+4", "two", "4x", "4 4", "3.0", "1e2", "0x4", "99999999999999999999"}) {
    EXPECT_EQ(parse_thread_count(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(CpuLimits, TheUnifiedLineNamesTheVersion2Group) {
  const CgroupPaths paths = parse_cgroup_paths("0::/user.slice/session-1.scope\n");
  EXPECT_EQ(paths.unified, "/user.slice/session-1.scope");
  EXPECT_EQ(paths.cpu, std::nullopt);
}

TEST(CpuLimits, TheCpuControllerIsFoundAmongOthersAndNotMistakenForCpusetOrCpuacct) {
  const CgroupPaths paths = parse_cgroup_paths(
      "12:cpuset:/set\n"
      "9:cpuacct:/acct\n"
      "4:cpuacct,cpu:/docker/abc\n"
      "1:name=systemd:/init.scope\n"
      "0::/\n");
  EXPECT_EQ(paths.cpu, "/docker/abc");
  EXPECT_EQ(paths.unified, "/");
}

TEST(CpuLimits, APathWithColonsIsKeptWhole) {
  EXPECT_EQ(parse_cgroup_paths("0::/kube:pod:1/a").unified, "/kube:pod:1/a");
}

TEST(CpuLimits, BrokenCgroupLinesAreSkipped) {
  const CgroupPaths paths = parse_cgroup_paths("\n:\n0:\n0::\nnonsense\n0::relative\n3:cpu\n");
  EXPECT_EQ(paths.unified, std::nullopt);
  EXPECT_EQ(paths.cpu, std::nullopt);
}

TEST(CpuLimits, CpuMaxIsQuotaOverPeriod) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("25000 50000"), 0.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  for (const char* text : {"", "max", "100000", "100000 0", "-1 100000", "a b", "1 2 3"}) {
    EXPECT_EQ(parse_cpu_max(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(CpuLimits, CfsQuotaIsQuotaOverPeriodAndMinusOneIsNoLimit) {
  EXPECT_EQ(parse_cfs_quota("400000\n", "100000\n"), 4.0);
  EXPECT_EQ(parse_cfs_quota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("", "100000"), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("100000", "0"), std::nullopt);
}

TEST(CpuLimits, AQuotaIsRoundedUpAndNeverRaisesTheCount) {
  EXPECT_EQ(cpus_within(8, std::nullopt), 8);
  EXPECT_EQ(cpus_within(8, 2.0), 2);
  EXPECT_EQ(cpus_within(8, 2.001), 3);
  EXPECT_EQ(cpus_within(8, 0.1), 1);
  EXPECT_EQ(cpus_within(8, 64.0), 8);
  EXPECT_EQ(cpus_within(2, 1.5), 2);
  EXPECT_EQ(cpus_within(0, std::nullopt), 1);
  EXPECT_EQ(cpus_within(1 << 20, std::nullopt), kMaxThreads);
}

TEST(CpuLimits, TheTightestQuotaOfAllGroupsAboveBinds) {
  EXPECT_EQ(quota_with({{"/proc/self/cgroup", "0::/a/b/c\n"},
                        {"/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n"},
                        {"/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n"},
                        {"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"}}),
            2.0);
}

TEST(CpuLimits, AContainerThatSeesTheHostsPathFindsItsLimitAtTheMount) {
  EXPECT_EQ(quota_with({{"/proc/self/cgroup", "0::/docker/0123abcd\n"}, {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}}),
            0.5);
  EXPECT_EQ(quota_with({{"/proc/self/cgroup", "3:cpu,cpuacct:/docker/0123abcd\n"},
                        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n"},
                        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}}),
            2.5);
}

TEST(CpuLimits, BothVersionsAreReadWhereBothAreMounted) {
  EXPECT_EQ(quota_with({{"/proc/self/cgroup", "1:cpu:/job\n0::/\n"},
                        {"/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000"},
                        {"/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000"},
                        {"/sys/fs/cgroup/unified/cpu.max", "max 100000"}}),
            3.0);
}

TEST(CpuLimits, WithoutControlGroupsThereIsNoQuota) {
  EXPECT_EQ(quota_with({}), std::nullopt);
  EXPECT_EQ(quota_with({{"/proc/self/cgroup", "0::/a\n"}}), std::nullopt);
}

TEST(CpuLimits, ThisProcessHasAtLeastOneCoreAndNoMoreThanItsAffinity) {
  EXPECT_GE(available_cpus(), 1);
  EXPECT_LE(available_cpus(), cpus_in_affinity());
}

}  // namespace
}  // namespace rapt::core
