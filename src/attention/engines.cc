#include "attention/engines.h"

#include <array>

#include "reference/engine.h"

namespace rapt {

std::span<const EngineTable* const> engines() {
  static const std::array<const EngineTable*, 1> kEngines = {&reference_engine()};
  return kEngines;
}

const EngineTable& choose_engine(Engine wanted) {
  return wanted == Engine::reference ? reference_engine() : *engines().front();
}

}  // namespace rapt
