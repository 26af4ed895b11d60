#include "attention/engines.h"

#include <string>

#include "cpu/engine.h"
#include "reference/engine.h"

namespace rapt {

namespace {

const EngineTable& choose(const char* function, Engine wanted, AttentionProblem& problem) {
  if (wanted == Engine::reference) return reference_engine();
  const bool able = !problem.sums_in_f64();
  if (wanted == Engine::cpu && !able) {
    throw Error(std::string(function) + ": the cpu engine works in f32; f64 goes to the reference engine");
  }
  const EngineTable& engine = able ? cpu_engine() : reference_engine();
  problem.variant = engine.variant();
  return engine;
}

}  // namespace

const EngineTable& choose_engine(Engine wanted, ForwardProblem& problem) {
  return choose("attention", wanted, problem);
}

const EngineTable& choose_engine(Engine wanted, BackwardProblem& problem) {
  return choose("attention_backward", wanted, problem);
}

const ProductTable& choose_product(const Checks& checks, Engine wanted, DType dtype) {
  const bool able = dtype != DType::f64;
  checks.require(able || wanted != Engine::cpu, "the cpu engine works in f32; f64 goes to the reference engine");
  return able && wanted != Engine::reference ? cpu_product() : reference_product();
}

}  // namespace rapt
