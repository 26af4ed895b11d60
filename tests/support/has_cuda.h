// Whether this build has the CUDA engine, with or without a GPU.
#pragma once

#include "core/engine.h"

namespace rapt::test {

inline bool has_cuda() { return find_device({Device::Kind::cuda, 0}) != nullptr; }

// A message that differs between the builds.
inline const char* with_cuda(const char* with, const char* without) { return has_cuda() ? with : without; }

}  // namespace rapt::test
