// `rapt convert`: tensors from one kind of file to another, and layers from one family of names to another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "exit_code.h"
#include "rapt/layer_names.h"

namespace rapt::cli {

struct ConvertOptions {
  std::string in, out;
  std::optional<NameFamily> names;
  std::optional<bool> packed;
  std::optional<DType> dtype;
  std::string prefix;
  bool compress = false;
  bool json = false;
};

CLI::App* add_convert(CLI::App& app, ConvertOptions& options);
ExitCode run_convert(const ConvertOptions& options);

}  // namespace rapt::cli
