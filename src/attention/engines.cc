#include "attention/engines.h"

#include <array>
#include <string>

#include "cpu/engine.h"
#include "reference/engine.h"

namespace rapt {

namespace {

template <class Cannot>
const EngineRow& choose(const Checks& checks, Engine wanted, const Cannot& cannot) {
  for (const EngineRow* row : engines()) {
    if (wanted != Engine::automatic && wanted != row->engine) continue;
    const std::string reason = cannot(*row);
    if (reason.empty()) return *row;
    checks.require(wanted == Engine::automatic, reason);
  }
  checks.fail("no engine of this build can compute it");
}

}  // namespace

std::span<const EngineRow* const> engines() {
  static constexpr std::array<const EngineRow*, 2> kRows = {&kCpuEngine, &kReferenceEngine};
  return kRows;
}

const EngineRow& choose_engine(const Checks& checks, Engine wanted, AttentionProblem& problem) {
  const EngineRow& row = choose(checks, wanted, [&](const EngineRow& each) { return each.attention.cannot(problem); });
  problem.variant = row.variant();
  return row;
}

const EngineRow& choose_engine(const Checks& checks, Engine wanted, DType dtype) {
  return choose(checks, wanted, [&](const EngineRow& each) { return each.product.cannot(dtype); });
}

}  // namespace rapt
