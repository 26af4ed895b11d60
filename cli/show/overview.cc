// The title, and every head of every layer in one picture.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/show/pages.h"
#include "cli/show/words.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

using models::Habit;

constexpr int kLeft = 8;  // "layer 11"

// As a cell of `width` columns: the colour of a habit, or only its glyph.
std::string cell_of(const Terminal& terminal, Habit habit, int width) {
  const std::string text = pad_right(pad_left(words_of(habit).glyph, (width + 1) / 2), width);
  if (habit == Habit::spread) return terminal.dim(text);
  return terminal.has_color() ? terminal.cell(group_color(static_cast<std::int64_t>(habit)), text) : text;
}

struct Best {
  std::int64_t count = 0;
  models::HeadPlace place;
  double share = 0;
};

// How many heads have each habit, and the one that shows it best.
std::array<Best, models::kHabits> best_of(const Reading& reading) {
  std::array<Best, models::kHabits> all{};
  for (std::int64_t layer = 0; layer < reading.model.config().layers; ++layer) {
    for (std::int64_t head = 0; head < reading.model.config().heads; ++head) {
      const models::HeadSummary& summary = reading.summary(layer, head);
      Best& best = all[static_cast<std::size_t>(summary.habit)];
      ++best.count;
      const double share = summary.habit == Habit::spread ? summary.keys : summary.share;
      if (share > best.share) best.place = {layer, head}, best.share = share;
    }
  }
  return all;
}

void show_legend(Page& page, const Reading& reading) {
  const exhibits::Lang lang = reading.options.lang;
  const std::array<Best, models::kHabits> all = best_of(reading);
  int widest = 0;
  for (int n = 0; n < models::kHabits; ++n) {
    if (all[static_cast<std::size_t>(n)].count == 0) continue;
    widest = std::max(widest, columns(words_of(static_cast<Habit>(n)).name.in(lang)));
  }
  for (int n = 0; n < models::kHabits; ++n) {
    const auto habit = static_cast<Habit>(n);
    const Best& best = all[static_cast<std::size_t>(n)];
    if (best.count == 0) continue;
    const std::string example = habit == Habit::spread
                                    ? in(lang, {"widest: {}.{}, over {:.1f} tokens", "最分散：{}.{}，{:.1f} 个词元"},
                                         best.place.layer, best.place.head, best.share)
                                    : in(lang, {"most: {}.{}, {:.0f}% of its weight", "最明显：{}.{}，权重的 {:.0f}%"},
                                         best.place.layer, best.place.head, 100.0 * best.share);
    constexpr int kBefore = 3 + 2 + 2 + 4 + 3;  // glyph, count and gaps
    page.line(fmt::format("{}  {}  {:>4}   {}", cell_of(page.terminal(), habit, 3),
                          pad_right(words_of(habit).name.in(lang), widest), best.count,
                          page.terminal().dim(clip(example, std::max(1, page.room() - widest - kBefore)))));
  }
}

// The end of a path, which says more than its beginning.
std::string end_of(const std::string& path, int width) {
  std::size_t at = 0;
  while (columns(std::string_view(path).substr(at)) >= width) (void)next_code_point(path, at);
  return at == 0 ? path : "…" + path.substr(at);
}

std::string quoted(const std::string& word) {
  return word.find_first_of(" '\"$`\\*?&;|<>()") == std::string::npos ? word : fmt::format("\"{}\"", word);
}

void show_ideas(Page& page, const Reading& reading) {
  const exhibits::Lang lang = reading.options.lang;
  page.heading(in(lang, {"next", "接着试"}), "");
  const auto idea = [&](const std::string& options, const exhibits::Both& meaning) {
    const std::string command = fmt::format("rapt show … {}  ", pad_right(options, 22));
    page.line(command + page.terminal().dim(clip(meaning.in(lang), page.room() - columns(command))));
  };
  const std::int64_t last = reading.model.config().layers - 1;
  idea(fmt::format("--layer {} --head 0", last), {"the map of one head", "一个头的注意力图"});
  std::size_t word = 0;  // one in the middle of the text
  for (std::size_t n = 0; n < reading.tokens.size(); ++n) {
    if (!reading.tokens[n].special && n <= reading.tokens.size() / 2) word = n;
  }
  idea(fmt::format("--token {}", quoted(reading.names[word])),
       {"what a word attends to, in every head", "一个词在每个头里关注什么"});
  idea(fmt::format("--off {}.0", last), {"what changes without a head", "关闭一个头会改变什么"});
  if (reading.model.predicts() == models::Predicts::next) {
    idea("--next", {"the most likely next tokens", "最可能的下一个词元"});
    idea("--generate 20", {"continue the text", "续写这段文字"});
  } else if (reading.model.predicts() == models::Predicts::masked) {
    idea("--next", {"the most likely tokens at each mask in the text", "文中每个掩码处最可能的词元"});
  }
}

}  // namespace

void show_reading_title(Page& page, const Reading& reading) {
  const models::ModelConfig& config = reading.model.config();
  const exhibits::Lang lang = reading.options.lang;
  page.line(page.terminal().bold("rapt show · " + end_of(label_of(reading.files.where()), page.room() - 12)));
  page.line();
  std::string tokens;
  for (const std::string& name : reading.names) tokens += fmt::format("{}{}", tokens.empty() ? "" : " ", name);
  page.prose(tokens);
  page.quiet(in(
      lang, {"{}: {} layers with {} heads of size {}; {} tokens", "{}：{} 层，每层 {} 个头，每头 {} 个数；{} 个词元"},
      name_of(config.family), config.layers, config.heads, config.head_size(), reading.tokens.size()));
}

void show_overview(Page& page, const Reading& reading) {
  const models::ModelConfig& config = reading.model.config();
  const exhibits::Lang lang = reading.options.lang;
  page.heading(in(lang, {"what each head does", "每个头在做什么"}),
               in(lang, {"{} heads", "{} 个头"}, config.layers * config.heads));
  int cell = 3;
  while (cell > 1 && kLeft + 2 + cell * config.heads > page.room()) --cell;
  std::string numbers;
  for (std::int64_t head = 0; head < config.heads; ++head) {
    const std::string number = fmt::format("{}", cell == 3 ? head : head % 10);
    numbers += cell == 3 ? pad_left(number, 2) + " " : pad_left(number, cell);
  }
  page.line(page.terminal().dim(pad_right(in(lang, {"head", "头"}), kLeft + 1) + numbers));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    std::string line = pad_right(in(lang, {"layer {}", "层 {}"}, layer), kLeft + 1);
    for (std::int64_t head = 0; head < config.heads; ++head) {
      line += cell_of(page.terminal(), reading.summary(layer, head).habit, cell);
    }
    page.line(line);
  }
  page.line();
  show_legend(page, reading);
  page.line();
  page.quiet(in(lang, {"A glyph says what takes at least half of the head's weight, on average over the words.",
                       "符号表示在各词上平均至少占该头一半权重的目标。"}));
  show_ideas(page, reading);
}

}  // namespace rapt::cli
