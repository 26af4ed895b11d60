// Exceptions of the library become errors of JavaScript, with the same text.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include <emscripten/val.h>

namespace rapt::wasm {

[[noreturn]] void throw_error(const std::string& text);

// Returns what `work` returns. Exceptions must not cross into JavaScript in any other way.
template <class Work>
auto guarded(const Work& work) -> decltype(work()) {
  std::string problem;
  try {
    return work();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  throw_error(problem);
}

}  // namespace rapt::wasm
