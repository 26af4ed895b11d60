// `rapt convert`: converts tensor files between formats, and layers between naming schemes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/exit_code.h"
#include "rapt/layer_names.h"

namespace rapt::cli {

class Command;

struct ConvertOptions {
  std::string in, out;
  std::optional<NameFamily> names;
  std::optional<bool> packed;
  std::optional<DType> dtype;
  std::string prefix;
  bool compress = false;
  bool json = false;
};

Command add_convert(Command& rapt, ConvertOptions& options);
ExitCode run_convert(const ConvertOptions& options);

}  // namespace rapt::cli
