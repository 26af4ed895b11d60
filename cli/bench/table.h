// Formatting of benchmark numbers and tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/bench/report.h"
#include "cli/terminal/page.h"

namespace rapt::cli {

std::string number(double value);                       // about three digits
std::string ratio(const std::optional<double>& value);  // "–" where there is none
std::string spread(const bench::Samples& ms);           // half the interquartile range, in percent of the median

nlohmann::ordered_json or_null(const std::optional<double>& value);
nlohmann::ordered_json as_json(const BenchMachine& machine);
void put_times(const bench::Samples& ms, nlohmann::ordered_json& data);  // over all rounds: median, extremes, quartiles

// The first row holds the headings; the first column is left-aligned, all others right-aligned.
void show_table(Page& page, const std::vector<std::vector<std::string>>& rows);

}  // namespace rapt::cli
