// Options that the commands on files share.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "rapt/dtype.h"

namespace rapt::cli {

inline constexpr std::array<std::pair<std::string_view, DType>, 4> kFloats{
    {{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}, {"f64", DType::f64}}};

inline void add_dtype(Command& command, std::optional<DType>& dtype, const std::string& help) {
  command.one("--dtype", "f32|bf16|f16|f64", help,
              [&dtype](const std::string& text) { dtype = chosen("--dtype", text, kFloats); });
}

}  // namespace rapt::cli
