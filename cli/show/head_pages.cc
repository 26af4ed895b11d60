// One layer, one head, or one token.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "cli/show/pages.h"
#include "cli/show/words.h"
#include "cli/terminal/pictures.h"
#include "cli/terminal/text.h"
#include "exhibits/exhibit.h"

namespace rapt::cli {
namespace {

using exhibits::Lang;

ConstTensorView map_of(const Reading& reading, std::int64_t layer, std::int64_t head) {
  return reading.run.weights.view().select(0, layer).select(0, head);
}

// A token that stands for part of the text, and not for the space between its parts.
bool is_word(const Reading& reading, std::int64_t token) {
  const models::Token& of = reading.tokens[static_cast<std::size_t>(token)];
  return !models::is_delimiter(of.text, of.special, token == 0) && !of.special;
}

// A token's name, with its number if the text has the name more than once.
std::string name_at(const Reading& reading, std::int64_t token) {
  const std::string& name = reading.names[static_cast<std::size_t>(token)];
  const bool repeats = std::count(reading.names.begin(), reading.names.end(), name) > 1;
  return repeats ? fmt::format("{} ({})", name, token) : name;
}

struct Pair {
  models::HeadPlace place;
  std::int64_t from = 0, to = 0;
  double weight = 0;
};

// The largest weights from a word to another, the largest first.
void keep_strongest(std::vector<Pair>& pairs, std::size_t count) {
  const auto end = pairs.begin() + static_cast<std::ptrdiff_t>(std::min(count, pairs.size()));
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.weight > b.weight; });
  pairs.erase(end, pairs.end());
}

void add_pairs(const Reading& reading, models::HeadPlace place, std::int64_t from, std::vector<Pair>& pairs) {
  const ConstTensorView row = map_of(reading, place.layer, place.head).select(0, from);
  for (std::int64_t to = 0; to < row.size(0); ++to) {
    if (to != from && is_word(reading, to)) pairs.push_back({place, from, to, double{row.at<float>(to)}});
  }
}

std::string title_of(const Reading& reading, std::int64_t layer, std::int64_t head) {
  const Lang lang = reading.options.lang;
  const std::string name = in(lang, {"layer {} head {}", "第 {} 层，头 {}"}, layer, head);
  if (reading.is_off(layer, head)) return name + in(lang, {" · switched off", " · 已关闭"});
  return fmt::format("{} · {}", name, summary_words(reading.summary(layer, head), lang));
}

// A map whose cells are one or two columns wide, for a text of more tokens than numbers fit.
std::vector<std::string> shaded(const Page& page, const Reading& reading, const ConstTensorView& weights,
                                const Labels& labels, int cell) {
  std::vector<std::string> lines;
  std::string numbers(static_cast<std::size_t>(labels.row_width()) + 1, ' ');
  for (std::int64_t j = 0; j < labels.shown(); ++j) {
    numbers += pad_left(fmt::format("{}", cell == 2 ? j % 100 : j % 10), cell);
  }
  lines.push_back(page.terminal().dim(numbers));
  for (std::int64_t i = 0; i < labels.shown(); ++i) {
    std::string line = labels.row(i) + " ";
    const std::int64_t seen = reading.model.config().causal() ? i + 1 : labels.shown();
    for (std::int64_t j = 0; j < seen; ++j) line += shade(page.terminal(), double{weights.at<float>(i, j)}, cell);
    lines.push_back(std::move(line));
  }
  return lines;
}

void draw_map(Page& page, const Reading& reading, const ConstTensorView& weights, const std::string& title) {
  const auto count = std::ssize(reading.tokens);
  const Labels labels(reading.names, count);
  const auto fits = [&](int cell) { return labels.row_width() + 1 + cell * count <= page.room(); };
  if (fits(kNarrowestCell)) {
    const int cell = fits(kNarrowestCell + 1) ? kNarrowestCell + 1 : kNarrowestCell;
    Tensor scores({count, count}, DType::f64);  // only their infinities are drawn
    for (std::int64_t i = 0; reading.model.config().causal() && i < count; ++i) {
      for (std::int64_t j = i + 1; j < count; ++j) {
        scores.view().at<double>(i, j) = -std::numeric_limits<double>::infinity();
      }
    }
    page.lines(weight_map(page.terminal(), labels, title, Tensor::copy_of(weights, DType::f64), scores, cell).lines);
    return;
  }
  page.line(page.terminal().bold(title));
  const std::int64_t most = std::min<std::int64_t>(count, page.room() - labels.row_width() - 1);
  page.lines(shaded(page, reading, weights, Labels(reading.names, most), fits(2) ? 2 : 1));
  if (most == count) return;
  page.quiet(in(reading.options.lang,
                {"The first {} of {} tokens are drawn; --json has all of them.",
                 "只画出前 {} 个词元，共 {} 个；--json 输出全部。"},
                most, count));
}

// Words by the name that was given, or by the first token that stands for a part of it; or a token by its number.
std::int64_t token_named(const Reading& reading, const std::string& word) {
  for (const bool is_special : {false, true}) {
    for (std::size_t n = 0; n < reading.names.size(); ++n) {
      if (reading.tokens[n].special == is_special && reading.names[n] == word) return static_cast<std::int64_t>(n);
    }
  }
  const std::size_t at = word.empty() ? std::string::npos : reading.text.find(word);
  for (std::size_t n = 0; at != std::string::npos && n < reading.tokens.size(); ++n) {
    const models::Token& token = reading.tokens[n];
    if (token.begin < at + word.size() && token.end > at) return static_cast<std::int64_t>(n);
  }
  if (!word.empty() && word.size() < 6 && word.find_first_not_of("0123456789") == std::string::npos) {
    return whole_number("--token", word, 0, std::ssize(reading.tokens) - 1);
  }
  std::string names;
  for (const std::string& name : reading.names) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  throw UsageError(fmt::format("--token: '{}' is not in the text; its tokens are {}", word, names));
}

std::int64_t largest_of(const ConstTensorView& row) {
  std::int64_t best = 0;
  for (std::int64_t n = 1; n < row.size(0); ++n) {
    if (row.at<float>(n) > row.at<float>(best)) best = n;
  }
  return best;
}

// The token with the largest weight in every head, as a table of heads by layers.
void draw_targets(Page& page, const Reading& reading, std::int64_t from) {
  constexpr int kLeft = 9, kWidest = 10, kNarrowest = 5;
  const models::ModelConfig& config = reading.model.config();
  const Lang lang = reading.options.lang;
  const auto heads = static_cast<int>(config.heads);
  const int cell = std::clamp((page.room() - kLeft) / heads, kNarrowest, kWidest);
  const int across = std::max(1, (page.room() - kLeft) / cell);
  for (int begin = 0; begin < heads; begin += across) {
    const int end = std::min(heads, begin + across);
    std::string numbers = pad_right(in(lang, {"head", "头"}), kLeft);
    for (int head = begin; head < end; ++head) numbers += pad_right(fmt::format("{}", head), cell);
    if (begin > 0) page.line();
    page.line(page.terminal().dim(numbers));
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      std::string line = pad_right(in(lang, {"layer {}", "层 {}"}, layer), kLeft);
      for (int head = begin; head < end; ++head) {
        const ConstTensorView row = map_of(reading, layer, head).select(0, from);
        const std::int64_t to = largest_of(row);
        const std::string name =
            reading.is_off(layer, head) ? std::string(kOffGlyph) : reading.names[static_cast<std::size_t>(to)];
        line += page.terminal().heat(double{row.at<float>(to)}, pad_right(clip(name, cell - 1), cell - 1)) + " ";
      }
      page.line(line);
    }
  }
}

void draw_pairs(Page& page, const Reading& reading, std::vector<Pair> pairs, bool with_place) {
  keep_strongest(pairs, 8);
  for (const Pair& pair : pairs) {
    const std::string place = with_place ? fmt::format("{}.{}  ", pair.place.layer, pair.place.head) : "";
    page.line(
        fmt::format("{:.2f}  {}{} → {}", pair.weight, place, name_at(reading, pair.from), name_at(reading, pair.to)));
  }
}

}  // namespace

void show_layer(Page& page, const Reading& reading) {
  const std::int64_t layer = *reading.options.layer;
  const Lang lang = reading.options.lang;
  page.heading(in(lang, {"layer {}", "第 {} 层"}, layer),
               in(lang, {"{} heads", "{} 个头"}, reading.model.config().heads));
  for (std::int64_t head = 0; head < reading.model.config().heads; ++head) {
    std::vector<Pair> pairs;
    for (std::int64_t from = 0; from < std::ssize(reading.tokens); ++from) {
      if (is_word(reading, from)) add_pairs(reading, {layer, head}, from, pairs);
    }
    keep_strongest(pairs, 1);
    const models::HeadSummary& summary = reading.summary(layer, head);
    const bool off = reading.is_off(layer, head);
    std::string line =
        fmt::format("{:>3}  {} {}", head, off ? kOffGlyph : words_of(summary.habit).glyph,
                    pad_right(off ? in(lang, {"switched off", "已关闭"}) : summary_words(summary, lang), 38));
    if (!pairs.empty() && !off) {
      line += page.terminal().dim(fmt::format(" {:.2f} {} → {}", pairs[0].weight, name_at(reading, pairs[0].from),
                                              name_at(reading, pairs[0].to)));
    }
    page.line(clip(line, page.terminal().has_color() ? std::numeric_limits<int>::max() : page.room()));
  }
}

void show_head(Page& page, const Reading& reading) {
  const models::HeadPlace place{*reading.options.layer, *reading.options.head};
  const Lang lang = reading.options.lang;
  page.heading(in(lang, {"one head", "一个头"}),
               in(lang, {"a row is what one token attends to", "每行是一个词元关注的内容"}));
  draw_map(page, reading, map_of(reading, place.layer, place.head), title_of(reading, place.layer, place.head));
  page.heading(in(lang, {"the largest weights between words", "词与词之间最大的权重"}), "");
  std::vector<Pair> pairs;
  for (std::int64_t from = 0; from < std::ssize(reading.tokens); ++from) {
    if (is_word(reading, from)) add_pairs(reading, place, from, pairs);
  }
  draw_pairs(page, reading, std::move(pairs), false);
}

void show_token(Page& page, const Reading& reading) {
  const std::int64_t from = token_named(reading, *reading.options.token);
  const Lang lang = reading.options.lang;
  page.heading(
      in(lang, {"what “{}” attends to most", "“{}” 最关注什么"}, reading.names[static_cast<std::size_t>(from)]),
      in(lang, {"token {}", "第 {} 个词元"}, from));
  draw_targets(page, reading, from);
  page.heading(in(lang, {"its largest weights on other words", "它在其他词上最大的权重"}),
               in(lang, {"layer.head", "层.头"}));
  std::vector<Pair> pairs;
  for (std::int64_t layer = 0; layer < reading.model.config().layers; ++layer) {
    for (std::int64_t head = 0; head < reading.model.config().heads; ++head) {
      add_pairs(reading, {layer, head}, from, pairs);
    }
  }
  draw_pairs(page, reading, std::move(pairs), true);
}

}  // namespace rapt::cli
