#include "errors.h"

#include <emscripten.h>

// NOLINTBEGIN: JavaScript
EM_JS(void, rapt_throw, (const char* text), {
  const error = new Error(UTF8ToString(text));
  error.name = 'RaptError';
  throw error;
});
// NOLINTEND

namespace rapt::wasm {

void throw_error(const std::string& text) {
  rapt_throw(text.c_str());
  __builtin_unreachable();
}

}  // namespace rapt::wasm
