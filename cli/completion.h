// `rapt completion` and `rapt man`: written from the options themselves, so that they cannot lag behind.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "exit_code.h"

namespace rapt::cli {

CLI::App* add_completion(CLI::App& app, std::string& shell);
CLI::App* add_man(CLI::App& app);

std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string man_page(const CLI::App& app);

}  // namespace rapt::cli
