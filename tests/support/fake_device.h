// A second device for tests: host memory that only its engine may touch.
//
// All of its memory is locked (mprotect) except while a function of its engine runs, so code that bypasses the engine
// stops with a segmentation fault. Its engine passes every problem to the CPU engine, so results have the CPU's bits,
// and throws if it is given memory of another device.
#pragma once

#include "rapt/tensor.h"

namespace rapt::test {

// Registers the engine in this process, once, and returns the device.
Device fake_device();

}  // namespace rapt::test
