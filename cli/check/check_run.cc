#include "cli/check/check_run.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>

#include "cases/compare.h"
#include "cases/digest.h"
#include "cases/list.h"
#include "rapt/cpu.h"

namespace rapt::cli {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Restores the previous instruction set on destruction.
class InstructionSetInUse {
 public:
  InstructionSetInUse() {
    for (const InstructionSetInfo& set : instruction_sets()) {
      if (set.in_use) name_ = set.name;
    }
  }
  ~InstructionSetInUse() { use_instruction_set(name_); }
  InstructionSetInUse(const InstructionSetInUse&) = delete;
  InstructionSetInUse& operator=(const InstructionSetInUse&) = delete;

 private:
  std::string name_;
};

std::vector<cases::CaseSpec> whole_list() {
  std::vector<cases::CaseSpec> list = cases::all_cases();
  for (cases::CaseSpec& spec : cases::all_cases_in_every_type()) list.push_back(std::move(spec));
  return list;
}

cases::CaseSpec case_by_name(const std::string& name) {
  for (cases::CaseSpec& spec : whole_list()) {
    if (spec.name == name) return std::move(spec);
  }
  constexpr std::string_view kRandom = "Random";
  std::uint64_t seed = 0;
  if (name.starts_with(kRandom)) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kRandom.size(), end, seed);
    if (error == std::errc() && stop == end) return cases::random_case(seed);
  }
  throw Error("check: unknown case " + name +
              "; give a name from the case list, or Random and a seed, such as Random17");
}

// The expected results of a case: forward, and backward if it has one.
struct Truth {
  explicit Truth(const cases::Case& test) : answer(cases::truth(test)) {
    if (cases::has_backward(test.spec)) gradients = cases::true_gradients(test);
  }

  cases::Answer answer;
  cases::Gradients gradients;
};

// Describes what is wrong with the result of one engine; empty: nothing. Updates `score`.
std::string judge(const cases::Case& test, const Truth& truth, CheckScore& score) {
  const Clock::time_point start = Clock::now();
  bool untouched = false, untouched_by_backward = true;
  const cases::Answer got = cases::run(test, &untouched);
  const cases::Gradients gradients =
      cases::has_backward(test.spec) ? cases::run_backward(test, &untouched_by_backward) : cases::Gradients();
  score.seconds += since(start);

  const std::vector<cases::Comparison> of_answer = cases::compare(test.spec, got, truth.answer);
  const std::vector<cases::Comparison> of_gradients = cases::compare(test.spec, gradients, truth.gradients);
  const auto keep_worst = [&](const std::vector<cases::Comparison>& all, double& worst, std::string& worst_case) {
    for (const cases::Comparison& one : all) {
      const double part = one.error / one.allowed;
      if (part > worst) worst = part, worst_case = test.spec.name;
    }
  };
  keep_worst(of_answer, score.worst, score.worst_case);
  keep_worst(of_gradients, score.worst_gradient, score.worst_gradient_case);
  if (!of_gradients.empty()) ++score.gradients;
  std::string wrong = cases::mismatch(of_answer) + cases::mismatch(of_gradients);
  if (!untouched) wrong += "memory around `out` was written; ";
  if (!untouched_by_backward) wrong += "memory around a gradient was written; ";
  return wrong;
}

}  // namespace

bool CheckReport::good() const {
  return std::all_of(scores.begin(), scores.end(), [](const CheckScore& score) { return score.differ == 0; });
}

std::vector<cases::CaseSpec> planned_cases(const CheckPlan& plan) {
  if (!plan.case_name.empty()) return {case_by_name(plan.case_name)};
  std::vector<cases::CaseSpec> list = whole_list();
  for (std::int64_t n = 0; n < plan.random; ++n) {
    list.push_back(cases::random_case(plan.seed + static_cast<std::uint64_t>(n)));
  }
  return list;
}

std::vector<CheckTarget> planned_targets(const CheckPlan& plan) {
  if (!plan.instruction_set.empty()) {
    const InstructionSetInUse before;
    use_instruction_set(plan.instruction_set);  // throws if it is not available
    return {{Engine::cpu, plan.instruction_set}};
  }
  std::vector<CheckTarget> targets = {{Engine::reference, ""}};
  for (const InstructionSetInfo& set : instruction_sets()) {
    if (set.runs_here) targets.push_back({Engine::cpu, set.name});
  }
  return targets;
}

CheckReport run_check(const CheckPlan& plan, const CheckProgress& progress) {
  const Clock::time_point start = Clock::now();
  const std::vector<cases::CaseSpec> specs = planned_cases(plan);
  CheckReport report;
  for (CheckTarget& target : planned_targets(plan)) report.scores.push_back({.target = std::move(target)});

  const InstructionSetInUse before;
  std::int64_t done = 0, wrong = 0;
  for (const cases::CaseSpec& spec : specs) {
    cases::Case test(spec);
    const Truth truth(test);
    for (CheckScore& score : report.scores) {
      if (score.target.engine == Engine::cpu && spec.query_type == DType::f64) continue;
      test.options.engine = score.target.engine;
      if (score.target.engine == Engine::cpu) use_instruction_set(score.target.instruction_set);
      std::string what;
      try {
        what = judge(test, truth, score);
      } catch (const std::exception& error) {
        what = error.what();
      }
      ++score.cases;
      if (what.empty()) continue;
      ++score.differ, ++wrong;
      if (static_cast<std::int64_t>(report.failures.size()) < plan.most_failures) {
        report.failures.push_back({score.target, what, spec.name, describe(spec), spec.seed});
      }
    }
    progress(++done, static_cast<std::int64_t>(specs.size()), wrong);
  }
  report.seconds = since(start);
  return report;
}

std::vector<CheckDigest> run_digests(const CheckPlan& plan, const CheckProgress& progress) {
  const std::vector<cases::CaseSpec> specs = planned_cases(plan);
  std::vector<CheckDigest> digests;
  for (CheckTarget& target : planned_targets(plan)) digests.push_back({.target = std::move(target)});
  std::vector<cases::Digest> states(digests.size());

  const InstructionSetInUse before;
  const auto use = [](const CheckTarget& target) {
    if (target.engine == Engine::cpu) use_instruction_set(target.instruction_set);
  };
  std::int64_t done = 0;
  for (const cases::CaseSpec& spec : specs) {
    cases::Case test(spec);
    for (std::size_t n = 0; n < digests.size(); ++n) {
      const CheckTarget& target = digests[n].target;
      if (target.engine == Engine::cpu && spec.query_type == DType::f64) continue;
      test.options.engine = target.engine;
      use(target);
      states[n].add(cases::run(test));
      if (cases::has_backward(spec)) states[n].add(cases::run_backward(test));
      ++digests[n].cases;
    }
    progress(++done, static_cast<std::int64_t>(specs.size()), 0);
  }
  for (std::size_t n = 0; n < digests.size(); ++n) {
    digests[n].attention = states[n].text();
    if (!plan.case_name.empty()) continue;
    use(digests[n].target);
    cases::Digest layers;
    cases::add_layers(digests[n].target.engine, layers);
    digests[n].layers = layers.text();
  }
  return digests;
}

}  // namespace rapt::cli
