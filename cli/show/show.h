// `rapt show`: what the heads of a trained model attend to in a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/exit_code.h"
#include "exhibits/exhibit.h"
#include "models/model.h"

namespace rapt::cli {

struct ShowOptions {
  std::string model;
  std::optional<std::string> text;
  std::optional<std::int64_t> layer, head;
  std::optional<std::string> token;
  std::vector<models::HeadPlace> off;
  bool next = false;
  std::optional<std::int64_t> generate;
  std::optional<double> temperature;
  std::optional<std::uint64_t> seed;
  bool json = false;
  exhibits::Lang lang = exhibits::Lang::en;
  ColorChoice color = ColorChoice::automatic;
};

Command add_show(Command& rapt, ShowOptions& options);
ExitCode run_show(const ShowOptions& options);

}  // namespace rapt::cli
