// `rapt check` without its dependencies: the library, the case list, and nothing else, so that it can be linked
// statically and run on another processor, under an emulator or on a machine without a compiler.
//
//   rapt_check [RANDOM [SEED [INSTRUCTION_SET]]]     the list, and RANDOM random cases from SEED on
//   rapt_check CASE [INSTRUCTION_SET]                one case by name, such as Random17
//   rapt_check --digest …                            digests of the bits of all results instead: rapt check --digest
//
// Exit code: 0 all good, 2 wrong usage or another error, 3 numbers differ.
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/check/check_run.h"

namespace {

template <class Number>
bool reads(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool understood(const std::vector<std::string>& arguments, rapt::cli::CheckPlan& plan) {
  if (arguments.empty()) return true;
  std::size_t next = 1;
  if (!reads(arguments[0], plan.random)) {
    plan.case_name = arguments[0];
  } else if (arguments.size() > next && !reads(arguments[next++], plan.seed)) {
    return false;
  }
  if (arguments.size() > next) plan.instruction_set = arguments[next++];
  return arguments.size() <= next && plan.random >= 0;
}

void show_progress(std::int64_t done, std::int64_t total, std::int64_t wrong) {
  if (done % 500 != 0) return;
  std::fprintf(stderr, "%lld of %lld cases, %lld answers wrong\n", static_cast<long long>(done),
               static_cast<long long>(total), static_cast<long long>(wrong));
}

int print_digests(const rapt::cli::CheckPlan& plan) {
  for (const rapt::cli::CheckDigest& digest : rapt::cli::run_digests(plan, show_progress)) {
    std::printf("%-12s %6lld cases  attention %s  layers %s\n", digest.target.name().c_str(),
                static_cast<long long>(digest.cases), digest.attention.c_str(), digest.layers.c_str());
  }
  return 0;
}

int check(std::vector<std::string> arguments) {
  rapt::cli::CheckPlan plan{.random = 200};
  const bool digest = !arguments.empty() && arguments[0] == "--digest";
  if (digest) arguments.erase(arguments.begin());
  if (!understood(arguments, plan)) {
    std::fputs(
        "usage: rapt_check [--digest] [RANDOM [SEED [INSTRUCTION_SET]]]\n"
        "       rapt_check [--digest] CASE [INSTRUCTION_SET]\n",
        stderr);
    return 2;
  }
  if (digest) return print_digests(plan);
  const rapt::cli::CheckReport report = rapt::cli::run_check(plan, show_progress);
  std::printf("the list and %lld random cases, seeds from %llu, %.1f s\n", static_cast<long long>(plan.random),
              static_cast<unsigned long long>(plan.seed), report.seconds);
  for (const rapt::cli::CheckScore& score : report.scores) {
    std::printf(
        "%-12s %6lld cases, %lld with gradients, %lld differ, worst error %.2f of what is allowed (%s), %.1f s\n",
        score.target.name().c_str(), static_cast<long long>(score.cases), static_cast<long long>(score.gradients),
        static_cast<long long>(score.differ), score.worst, score.worst_case.c_str(), score.seconds);
    std::printf("%-12s worst error of a gradient %.2f of what is allowed (%s)\n", "", score.worst_gradient,
                score.worst_gradient_case.c_str());
  }
  for (const rapt::cli::CheckFailure& failure : report.failures) {
    std::printf("%s: %s\n  %s\n", failure.target.name().c_str(), failure.what.c_str(), failure.description.c_str());
  }
  return report.good() ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return check({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rapt_check: %s\n", error.what());
    return 2;
  }
}
