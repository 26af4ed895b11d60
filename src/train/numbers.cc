#include "train/numbers.h"

#include <sstream>

#include "core/number_words.h"
#include "rapt/error.h"

namespace rapt::train {

namespace {

template <class Number>
Number number_of(const std::string& words, const std::string& path) {
  Number number{};
  if (reads(words, number)) return number;
  throw Error(path + " is corrupt: its metadata has \"" + words + "\" instead of a number");
}

}  // namespace

double real_of(const std::string& words, const std::string& path) { return number_of<double>(words, path); }
std::int64_t whole_of(const std::string& words, const std::string& path) {
  return number_of<std::int64_t>(words, path);
}

std::string curve_words(const std::vector<Point>& curve) {
  std::string words;
  for (const Point& point : curve) {
    words += std::to_string(point.step);
    words.append(" ").append(words_of(point.training_loss)).append(" ").append(words_of(point.loss));
    for (const double measure : point.measures) words.append(" ").append(words_of(measure));
    words += '\n';
  }
  return words;
}

std::vector<Point> curve_of(const std::string& words, const std::string& path) {
  std::vector<Point> curve;
  std::istringstream lines(words);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string step, training_loss, loss;
    parts >> step >> training_loss >> loss;
    Point point{.step = whole_of(step, path),
                .training_loss = real_of(training_loss, path),
                .loss = real_of(loss, path),
                .measures = {}};
    for (std::string measure; parts >> measure;) point.measures.push_back(real_of(measure, path));
    curve.push_back(std::move(point));
  }
  return curve;
}

}  // namespace rapt::train
