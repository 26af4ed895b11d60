#include "cli/check/check_run.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>

#include "cases/compare.h"
#include "cases/digest.h"
#include "cases/list.h"
#include "rapt/cpu.h"
#include "rapt/cuda.h"

namespace rapt::cli {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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
  if (!untouched) wrong += "memory outside `out` was overwritten; ";
  if (!untouched_by_backward) wrong += "memory outside a gradient was overwritten; ";
  return wrong;
}

}  // namespace

InstructionSetInUse::InstructionSetInUse() {
  for (const InstructionSetInfo& set : instruction_sets()) {
    if (set.in_use) name_ = set.name;
  }
}

InstructionSetInUse::~InstructionSetInUse() { use_instruction_set(name_); }

void use(const CheckTarget& target) {
  if (target.engine == Engine::cpu) use_instruction_set(target.instruction_set);
}

void use(const CheckTarget& target, cases::Case& test) {
  use(target);
  test.options.engine = target.engine;
  test.device = target.device();
}

std::string CheckTarget::engine_name() const {
  switch (engine) {
    case Engine::reference: return "reference";
    case Engine::cuda: return "cuda";
    default: return "cpu";
  }
}

std::string CheckTarget::name() const { return engine == Engine::cpu ? "cpu " + instruction_set : engine_name(); }

std::string CheckTarget::leaves_out(const cases::CaseSpec& spec) const {
  if (engine == Engine::reference || spec.query_type != DType::f64) return {};
  return "only the reference engine computes f64";
}

Device CheckTarget::device() const { return {engine == Engine::cuda ? Device::Kind::cuda : Device::Kind::cpu, 0}; }

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
    if (plan.engine && *plan.engine != Engine::cpu) throw Error("check: only the cpu engine has instruction sets");
    return {{Engine::cpu, plan.instruction_set}};
  }
  const std::string no_gpu = cuda::unavailable_because();
  if (plan.engine == Engine::cuda && !no_gpu.empty()) throw Error("check: the cuda engine cannot run here: " + no_gpu);
  const auto wanted = [&](Engine engine) { return !plan.engine || *plan.engine == engine; };
  std::vector<CheckTarget> targets;
  if (wanted(Engine::reference)) targets.push_back({Engine::reference});
  for (const InstructionSetInfo& set : instruction_sets()) {
    if (wanted(Engine::cpu) && set.runs_here) targets.push_back({Engine::cpu, set.name});
  }
  if (wanted(Engine::cuda) && no_gpu.empty()) targets.push_back({Engine::cuda});
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
      if (std::string reason = score.target.leaves_out(spec); !reason.empty()) {
        ++score.left_out, score.left_out_because = std::move(reason);
        continue;
      }
      use(score.target, test);
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
  std::int64_t done = 0;
  for (const cases::CaseSpec& spec : specs) {
    cases::Case test(spec);
    for (std::size_t n = 0; n < digests.size(); ++n) {
      const CheckTarget& target = digests[n].target;
      if (!target.leaves_out(spec).empty()) continue;
      use(target, test);
      states[n].add(cases::run(test));
      if (cases::has_backward(spec)) states[n].add(cases::run_backward(test));
      ++digests[n].cases;
    }
    progress(++done, static_cast<std::int64_t>(specs.size()), 0);
  }
  for (std::size_t n = 0; n < digests.size(); ++n) {
    digests[n].attention = states[n].text();
    if (!plan.case_name.empty() || digests[n].target.engine == Engine::cuda) continue;  // the layers run on the CPU
    use(digests[n].target);
    cases::Digest layers;
    cases::add_layers(digests[n].target.engine, layers);
    digests[n].layers = layers.text();
  }
  return digests;
}

}  // namespace rapt::cli
