// An exhibit answers one question about attention with numbers that the engine computes live. It is a page of blocks,
// in one language. The terminal (`rapt explain --question N`) and the explorer draw the same exhibit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rapt::exhibits {

enum class Lang : std::uint8_t { en, zh };

// A sentence in each language.
struct Both {
  std::string_view en;
  std::string_view zh;
  std::string in(Lang lang) const { return std::string(lang == Lang::en ? en : zh); }
};

// Whether a block is neutral, the right way, or the wrong way.
enum class Mood : std::uint8_t { plain, right, wrong };

struct Prose {
  std::string text;  // `code` between back-ticks
  Mood mood = Mood::plain;
};

// What a number's colour means.
enum class Paint : std::uint8_t {
  weight,  // 0 … 1
  number,  // below and above 0
  group,   // `groups` has a group for each cell, such as its head or token
  none,
};

struct Matrix {
  std::string title;
  std::vector<std::string> rows;     // a label for each row
  std::vector<std::string> columns;  // and for each column
  std::vector<double> values;        // row-major; −inf is a masked score, NaN is "not a number", and both are shown
  Paint paint = Paint::number;
  std::vector<int> groups;          // with Paint::group, as many as values
  std::vector<std::string> legend;  // with Paint::group: what group 0, 1, … are
  int decimals = 2;
  std::string reading;  // text for a cell, with {row}, {column} and {value} as placeholders
  Mood mood = Mood::plain;
};

struct Table {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

struct Series {
  std::string name;
  std::vector<double> y;
};

struct Chart {
  std::string title;
  std::string x_name;
  std::vector<double> x;
  bool log_x = false, log_y = false;
  std::vector<Series> series;
};

struct Code {
  std::string text;
};

using Block = std::variant<Prose, Matrix, Table, Chart, Code>;

// A setting that the reader may change. The first choice is the default.
struct Choice {
  std::string value;  // the value for --set: no spaces, the same in every language
  std::string label;
};
struct Switch {
  std::string key;
  std::string label;
  std::vector<Choice> choices;
  std::string chosen;
};

struct Exhibit {
  int number = 0;
  std::string question;
  std::string answer;  // one or two sentences: the conclusion
  std::vector<Switch> switches;
  std::vector<Block> blocks;
};

using Settings = std::map<std::string, std::string>;  // Switch::key to Choice::value

inline constexpr int kQuestions = 18;

// The questions from 1 to kQuestions, without blocks.
std::vector<Exhibit> questions(Lang lang);
// A complete exhibit. Throws Error, with the valid choices, for an unknown number, key or value.
Exhibit exhibit(int number, Lang lang, const Settings& settings = {});

// {"number", "question", "answer", "switches": [...], "blocks": [{"kind": "prose", ...}, ...]}; −inf, inf and NaN are
// the strings "-inf", "inf" and "nan".
std::string as_json(const Exhibit& exhibit);
std::string as_json(const std::vector<Exhibit>& exhibits);

}  // namespace rapt::exhibits
