// Whether this build has the CUDA engine, with or without a GPU.
#pragma once

#include <string>
#include <utility>

#include "core/engine.h"

namespace rapt::test {

inline bool has_cuda() { return find_device({Device::Kind::cuda, 0}) != nullptr; }

// A message that differs between the builds.
inline std::string with_cuda(std::string with, std::string without) {
  return has_cuda() ? std::move(with) : std::move(without);
}

}  // namespace rapt::test
