#include "attention/engines.h"

#include "cpu/engine.h"
#include "reference/engine.h"

namespace rapt {

const EngineTable& choose_engine(Engine wanted, ForwardProblem& problem) {
  if (wanted == Engine::reference) return reference_engine();
  const bool able = !problem.sums_in_f64();
  if (wanted == Engine::cpu && !able) {
    throw Error("attention: the cpu engine works in f32; f64 goes to the reference engine");
  }
  const EngineTable& engine = able ? cpu_engine() : reference_engine();
  problem.variant = engine.variant();
  return engine;
}

const EngineTable& choose_engine(Engine wanted, BackwardProblem& /*problem*/) {
  if (wanted == Engine::cpu) throw Error("attention_backward: the cpu engine has no backward yet");
  return reference_engine();
}

const ProductTable& choose_product(const Checks& checks, Engine wanted, DType dtype) {
  const bool able = dtype != DType::f64;
  checks.require(able || wanted != Engine::cpu, "the cpu engine works in f32; f64 goes to the reference engine");
  return able && wanted != Engine::reference ? cpu_product() : reference_product();
}

}  // namespace rapt
