// Options of attention from a JavaScript object, with the C++ names in camelCase: keyLengths.
#pragma once

#include <initializer_list>
#include <string_view>

#include <emscripten/val.h>

#include "rapt/attention.h"

namespace rapt::wasm {

// Throws if the object has an unknown key, so that misspelt options are not ignored.
void require_known(const emscripten::val& object, const char* what, std::initializer_list<std::string_view> known);

// Options of rapt/attention.h. Views in it point at tensors of the object: it must live until the call is over. Keys in
// `besides` are the caller's.
AttentionOptions attention_options(const emscripten::val& object, std::initializer_list<std::string_view> besides = {});

Stage stage_named(const std::string& name);
Selection selection_of(const emscripten::val& capture);

}  // namespace rapt::wasm
