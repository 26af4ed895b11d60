// A second device for tests: host memory that only its engine may touch.
//
// All of its memory is locked (mprotect) except while a function of its engine runs, so whatever reaches around the
// seam stops with a segmentation fault. Its engine hands every problem to the CPU engine, so results have the CPU's
// bits, and throws where it is given memory that is not its own.
#pragma once

#include "rapt/tensor.h"

namespace rapt::test {

// Adds the engine to those of the process, once, and returns the device.
Device fake_device();

}  // namespace rapt::test
