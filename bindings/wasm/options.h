// Options of attention from a JavaScript object, with the C++ names in camelCase: keyLengths.
#pragma once

#include <initializer_list>
#include <string_view>

#include <emscripten/val.h>

#include "rapt/attention.h"

namespace rapt::wasm {

// Throws if the object has an unknown key, so that misspelt options are not ignored.
void require_known(const emscripten::val& object, const char* what, std::initializer_list<std::string_view> known);

// Options of rapt/attention.h. Their views point to tensors of the object, which must live until the call returns. Keys
// in `besides` are left to the caller.
AttentionOptions attention_options(const emscripten::val& object, std::initializer_list<std::string_view> besides = {});

Stage stage_named(const std::string& name);
Selection selection_of(const emscripten::val& capture);

}  // namespace rapt::wasm
