// The work behind `rapt check`: runs cases on every engine and instruction set, and compares each result with the
// expected one.
//
// It depends only on the library and the case list, so that tests/long can run it on a bare machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cases/case.h"

namespace rapt::cli {

struct CheckPlan {
  std::int64_t random = 0;           // number of random cases, with seeds `seed`, `seed` + 1, …
  std::uint64_t seed = 1;            // seed of the first random case
  std::string case_name{};           // only this case: one of the list, or "Random" and a seed; empty: all
  std::string instruction_set{};     // only this set, and no other engine; empty: every set that runs here
  std::optional<Engine> engine{};    // only this engine; absent: every engine that runs here
  std::int64_t most_failures = 100;  // maximum number of failures kept
};

// One engine, on one instruction set if it has several.
struct CheckTarget {
  Engine engine = Engine::cpu;
  std::string instruction_set{};

  std::string engine_name() const;  // "cpu"
  std::string name() const;         // "cpu avx2"
  // Why the engine skips a case, as text, if it supports no case of this kind; empty if it runs the case.
  std::string leaves_out(const cases::CaseSpec& spec) const;
  Device device() const;
};

// Selects the engine, and its instruction set, that will run a case.
void use(const CheckTarget& target);
void use(const CheckTarget& target, cases::Case& test);

// Restores the previous instruction set on destruction.
class InstructionSetInUse {
 public:
  InstructionSetInUse();
  ~InstructionSetInUse();
  InstructionSetInUse(const InstructionSetInUse&) = delete;
  InstructionSetInUse& operator=(const InstructionSetInUse&) = delete;

 private:
  std::string name_;
};

struct CheckFailure {
  CheckTarget target;
  std::string what;       // "out differs by …", or what was thrown
  std::string case_name;  // what CheckPlan::case_name takes
  std::string description;
  std::uint64_t seed = 0;
};

struct CheckScore {
  CheckTarget target;
  std::int64_t cases = 0;     // that were run
  std::int64_t left_out = 0;  // that were skipped, for the reason in `left_out_because`
  std::string left_out_because{};
  std::int64_t gradients = 0;   // run cases with gradients (not with pages or i8)
  std::int64_t differ = 0;      // cases with wrong results
  double worst = 0.0;           // the largest error of an output, relative to the limit
  std::string worst_case{};     // the case with that error
  double worst_gradient = 0.0;  // the largest error of a gradient, relative to the limit
  std::string worst_gradient_case{};
  double seconds = 0.0;  // spent in this engine
};

struct CheckReport {
  std::vector<CheckScore> scores;
  std::vector<CheckFailure> failures;
  double seconds = 0.0;  // in total, including the expected results

  bool good() const;
};

// Digests of the results of one engine: of attention (outputs, lse, captures, gradients), and of layers.
struct CheckDigest {
  CheckTarget target;
  std::int64_t cases = 0;
  std::string attention{};
  std::string layers{};  // empty if the plan names one case
};

// The cases of a plan. Throws Error if it names one that does not exist.
std::vector<cases::CaseSpec> planned_cases(const CheckPlan& plan);
// The engines of a plan. Throws Error if it names an instruction set that does not exist or run here.
std::vector<CheckTarget> planned_targets(const CheckPlan& plan);

// After each case, `progress` gets the number of finished cases and of wrong results.
using CheckProgress = std::function<void(std::int64_t done, std::int64_t total, std::int64_t wrong)>;
CheckReport run_check(const CheckPlan& plan, const CheckProgress& progress);
// Digests of the same cases, and of a few layers. Nothing is compared with expected results, and `wrong` is always 0.
std::vector<CheckDigest> run_digests(const CheckPlan& plan, const CheckProgress& progress);

}  // namespace rapt::cli
