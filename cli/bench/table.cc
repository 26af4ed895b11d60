#include "cli/bench/table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/terminal/text.h"

namespace rapt::cli {

std::string spread(const bench::Samples& ms) {
  const double half = (ms.quantile(0.75) - ms.quantile(0.25)) / 2.0;
  return fmt::format("±{:.1f}%", 100.0 * half / ms.median());
}

std::string number(double value) {
  return value >= 100  ? fmt::format("{:.0f}", value)
         : value >= 10 ? fmt::format("{:.1f}", value)
         : value >= 1  ? fmt::format("{:.2f}", value)
                       : fmt::format("{:.3f}", value);
}

std::string ratio(const std::optional<double>& value) { return value ? fmt::format("{:.3f}", *value) : "–"; }

nlohmann::ordered_json or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json as_json(const BenchMachine& machine) {
  nlohmann::ordered_json data = {{"cpu", machine.cpu},         {"isa", machine.isa},     {"fma", machine.fma},
                                 {"threads", machine.threads}, {"cores", machine.cores}, {"version", RAPT_VERSION}};
  if (!machine.gpu.empty()) data["gpu"] = machine.gpu;
  return data;
}

void put_times(const bench::Samples& ms, nlohmann::ordered_json& data) {
  data["rounds"] = ms.values().size();
  data["ms_median"] = ms.median();
  data["ms_min"] = ms.min();
  data["ms_max"] = ms.max();
  data["ms_q1"] = ms.quantile(0.25);
  data["ms_q3"] = ms.quantile(0.75);
}

void show_table(Page& page, const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t n = 0; n < row.size(); ++n) widths[n] = std::max(widths[n], columns(row[n]));
  }
  page.line();
  for (const auto& row : rows) {
    std::string text = pad_right(row[0], widths[0]);
    for (std::size_t n = 1; n < row.size(); ++n) text += "  " + pad_left(row[n], widths[n]);
    page.line(&row == rows.data() ? page.terminal().dim(text) : text);
  }
}

}  // namespace rapt::cli
