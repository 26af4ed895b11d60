// Converts exceptions to status codes.
#pragma once

#include "rapt/rapt.h"

namespace rapt::c {

// The status for the exception that is being handled; its text is what rapt_last_error() gives on this thread.
rapt_status record_exception() noexcept;

// Runs the body of a C function, and catches everything it throws.
template <class Body>
rapt_status guarded(const Body& body) noexcept {
  try {
    body();
    return RAPT_OK;
  } catch (...) {
    return record_exception();
  }
}

}  // namespace rapt::c
