// Exhibits as data, for pages that draw them.
#include <cmath>
#include <string>
#include <variant>

#include <nlohmann/json.hpp>

#include "exhibits/exhibit.h"

namespace rapt::exhibits {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinities and no NaN.
Json number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value < 0 ? "-inf" : "inf";
}

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

const char* word(Mood mood) { return mood == Mood::right ? "right" : mood == Mood::wrong ? "wrong" : "plain"; }

const char* word(Paint paint) {
  switch (paint) {
    case Paint::weight: return "weight";
    case Paint::number: return "number";
    case Paint::group: return "group";
    case Paint::none: break;
  }
  return "none";
}

Json as_data(const Prose& prose) { return {{"kind", "prose"}, {"text", prose.text}, {"mood", word(prose.mood)}}; }

Json as_data(const Matrix& matrix) {
  return {{"kind", "matrix"},
          {"title", matrix.title},
          {"rows", matrix.rows},
          {"columns", matrix.columns},
          {"values", numbers(matrix.values)},
          {"paint", word(matrix.paint)},
          {"groups", matrix.groups},
          {"legend", matrix.legend},
          {"decimals", matrix.decimals},
          {"reading", matrix.reading},
          {"mood", word(matrix.mood)}};
}

Json as_data(const Table& table) {
  return {{"kind", "table"}, {"title", table.title}, {"header", table.header}, {"rows", table.rows}};
}

Json as_data(const Chart& chart) {
  Json series = Json::array();
  for (const Series& each : chart.series) series.push_back({{"name", each.name}, {"y", numbers(each.y)}});
  return {{"kind", "chart"},      {"title", chart.title}, {"x_name", chart.x_name}, {"x", numbers(chart.x)},
          {"log_x", chart.log_x}, {"log_y", chart.log_y}, {"series", series}};
}

Json as_data(const Code& code) { return {{"kind", "code"}, {"text", code.text}}; }

Json as_data(const Exhibit& exhibit) {
  Json switches = Json::array();
  for (const Switch& each : exhibit.switches) {
    Json choices = Json::array();
    for (const Choice& choice : each.choices) choices.push_back({{"value", choice.value}, {"label", choice.label}});
    switches.push_back({{"key", each.key}, {"label", each.label}, {"choices", choices}, {"chosen", each.chosen}});
  }
  Json blocks = Json::array();
  for (const Block& block : exhibit.blocks) {
    blocks.push_back(std::visit([](const auto& each) { return as_data(each); }, block));
  }
  return {{"number", exhibit.number},
          {"question", exhibit.question},
          {"answer", exhibit.answer},
          {"switches", switches},
          {"blocks", blocks}};
}

}  // namespace

std::string as_json(const Exhibit& exhibit) { return as_data(exhibit).dump(); }

std::string as_json(const std::vector<Exhibit>& exhibits) {
  Json list = Json::array();
  for (const Exhibit& exhibit : exhibits) list.push_back(as_data(exhibit));
  return list.dump();
}

}  // namespace rapt::exhibits
