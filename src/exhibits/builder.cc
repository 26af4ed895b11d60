#include "exhibits/builder.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "exhibits/tokens.h"
#include "rapt/error.h"

namespace rapt::exhibits {
namespace {

template <class Number>
std::string printed(const char* format, int decimals, Number number) {
  char text[64];
  std::snprintf(text, sizeof text, format, decimals, number);
  return text;
}

std::string not_finite(double number) { return std::isnan(number) ? "NaN" : number < 0 ? "-inf" : "inf"; }

}  // namespace

std::string fixed(double number, int decimals) {
  if (!std::isfinite(number)) return not_finite(number);
  std::string text = printed("%.*f", decimals, number);
  // A number that rounds to zero has no sign.
  if (text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string whole(std::int64_t number) { return std::to_string(number); }

std::string brief(double number, int digits) {
  return std::isfinite(number) ? printed("%.*g", digits, number) : not_finite(number);
}

std::string fill(std::string text, const Texts& values) {
  for (std::size_t n = 0; n < values.size(); ++n) {
    const std::string mark = std::string("{").append(std::to_string(n)).append("}");
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + values[n].size())) {
      text.replace(at, mark.size(), values[n]);
    }
  }
  return text;
}

Texts counted(std::int64_t count, std::string_view prefix) {
  Texts names;
  for (std::int64_t n = 0; n < count; ++n) names.push_back(std::string(prefix) + whole(n));
  return names;
}

const std::string& Builder::chosen(std::string_view key) const {
  for (const Switch& each : exhibit_.switches) {
    if (each.key == key) return each.chosen;
  }
  throw Error("question " + whole(exhibit_.number) + ": unknown setting \"" + std::string(key) + "\"");
}

std::int64_t Builder::number(std::string_view key) const { return std::stoll(chosen(key)); }

Texts Builder::tokens(const Both& sentence) const { return tokenize(sentence.in(lang_)).tokens; }

void Builder::prose(const Both& words, const Texts& values, Mood mood) { add(Prose{say(words, values), mood}); }

Matrix Builder::numbers(std::string title, const ConstTensorView& values, Texts rows, Texts columns) const {
  Matrix matrix;
  matrix.title = std::move(title);
  matrix.rows = std::move(rows);
  matrix.columns = std::move(columns);
  const Tensor copy = Tensor::copy_of(values, DType::f64);
  matrix.values.assign(copy.values<double>().begin(), copy.values<double>().end());
  matrix.reading = say({"number {column} of “{row}” is {value}", "“{row}”的第 {column} 个数是 {value}"});
  return matrix;
}

Matrix Builder::scores(std::string title, const ConstTensorView& values, Texts rows, Texts columns) const {
  Matrix matrix = numbers(std::move(title), values, std::move(rows), std::move(columns));
  matrix.reading = say({"query “{row}”, key “{column}”: score {value}", "查询“{row}”，键“{column}”：分数 {value}"});
  return matrix;
}

Matrix Builder::weights(std::string title, const ConstTensorView& values, Texts rows, Texts columns) const {
  Matrix matrix = numbers(std::move(title), values, std::move(rows), std::move(columns));
  matrix.paint = Paint::weight;
  matrix.reading = say({"“{row}” attends to “{column}” with weight {value}", "“{row}”对“{column}”的权重是 {value}"});
  return matrix;
}

Matrix Builder::places(std::string title, const ConstTensorView& values, Texts rows, Texts columns,
                       std::vector<int> groups, Texts legend) const {
  Matrix matrix = numbers(std::move(title), values, std::move(rows), std::move(columns));
  matrix.paint = Paint::group;
  matrix.groups = std::move(groups);
  matrix.legend = std::move(legend);
  matrix.decimals = 0;
  matrix.reading = say(
      {"number {column} of “{row}” is at memory offset {value}", "“{row}”的第 {column} 个数在内存中的偏移是 {value}"});
  return matrix;
}

}  // namespace rapt::exhibits
