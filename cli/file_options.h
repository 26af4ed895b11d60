// What the commands on files share: an option, and how they pass errors on.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bench_arguments.h"
#include "rapt/dtype.h"
#include "rapt/error.h"

namespace rapt::cli {

inline constexpr std::array<std::pair<std::string_view, DType>, 4> kFloats{
    {{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}, {"f64", DType::f64}}};

inline void add_dtype(Adder& add, std::optional<DType>& dtype, const std::string& help) {
  add.one("--dtype", "f32|bf16|f16|f64", help,
          [&dtype](const std::string& text) { dtype = chosen("--dtype", text, kFloats); });
}

// What an error says, without the function of the library that says it.
inline std::string without_function(const Error& error) {
  const std::string_view what = error.what();
  constexpr std::string_view kClass = "MultiHeadAttention::";
  const std::size_t colon = what.find(": ");
  return std::string(what.starts_with(kClass) && colon != std::string_view::npos ? what.substr(colon + 2) : what);
}

}  // namespace rapt::cli
