// What comes out of the model: how it changes without some heads, what it predicts, and how it continues a text.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/show/pages.h"
#include "cli/show/words.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

using exhibits::Lang;

constexpr int kBar = 30;

// A bar of eighths of a column.
std::string bar(double fraction, int width) {
  const auto eighths = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * 8 * width));
  std::string text;
  for (int n = 0; n < eighths / 8; ++n) text += "█";
  constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  return pad_right(text + kParts[eighths % 8], width);
}

// Text of a model, without what would move the cursor.
std::string in_lines(const std::string& text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    safe += c < 0x20 || (c >= 0x7F && c < 0xA0) ? " " : to_utf8(c);
  }
  return safe;
}

std::string place_of(const Reading& reading, const Prediction& at) {
  const Lang lang = reading.options.lang;
  if (reading.model.predicts() == models::Predicts::next) {
    return in(lang, {"after “{}”", "“{}” 之后"}, reading.names[at.position]);
  }
  return in(lang, {"at token {}, {}", "第 {} 个词元 {} 处"}, at.position, reading.names[at.position]);
}

void show_likely(Page& page, const Reading& reading, const Prediction& at) {
  int widest = 0;
  for (const auto& [token, probability] : at.likely) widest = std::max(widest, columns(reading.name_of(token)));
  for (const auto& [token, probability] : at.likely) {
    page.line(fmt::format("{}  {:5.1f}%  {}", pad_right(reading.name_of(token), widest), 100.0 * probability,
                          page.terminal().colored(group_color(1), bar(probability, kBar))));
  }
}

}  // namespace

void show_change(Page& page, const Reading& reading) {
  const Lang lang = reading.options.lang;
  std::string heads;
  for (const auto& [layer, head] : reading.options.off) {
    heads += fmt::format("{}{}.{}", heads.empty() ? "" : ", ", layer, head);
  }
  page.heading(in(lang, {"without {}", "关闭 {}"}, heads), in(lang, {"|change| / |output|", "|变化| / |输出|"}));
  page.prose(in(lang, {"How much the last layer's output of each token changes when the heads are switched off:",
                       "关闭这些头后，最后一层对每个词元的输出改变了多少："}));
  const std::int64_t last = reading.model.config().layers;
  int widest = 0;
  for (const std::string& name : reading.names) widest = std::max(widest, columns(clip(name, 12)));
  for (std::size_t n = 0; n < reading.tokens.size(); ++n) {
    const auto token = static_cast<std::int64_t>(n);
    const double change = relative_change(reading.run.hidden.view().select(0, last).select(0, token),
                                          reading.whole->hidden.view().select(0, last).select(0, token));
    page.line(fmt::format("{:>3} {}  {:5.1f}%  {}", n, pad_right(clip(reading.names[n], 12), widest), 100.0 * change,
                          page.terminal().colored(group_color(0), bar(change, kBar))));
  }
  for (std::size_t n = 0; n < reading.predictions.size(); ++n) {
    const auto likely = [&](const Prediction& at) {
      std::string words;
      for (std::size_t k = 0; k < std::min<std::size_t>(3, at.likely.size()); ++k) {
        words += fmt::format("{}{} {:.1f}%", k == 0 ? "" : ", ", reading.name_of(at.likely[k].token),
                             100.0 * at.likely[k].probability);
      }
      return words;
    };
    page.line();
    page.line(in(lang, {"prediction {}", "预测，{}"}, place_of(reading, reading.predictions[n])));
    page.line(in(lang, {"  with all heads: {}", "  所有头：{}"}, likely(reading.whole_predictions[n])));
    page.line(in(lang, {"  without them:   {}", "  关闭后：{}"}, likely(reading.predictions[n])));
  }
}

void show_next(Page& page, const Reading& reading) {
  const Lang lang = reading.options.lang;
  const bool next = reading.model.predicts() == models::Predicts::next;
  page.heading(next ? in(lang, {"the next token", "下一个词元"}) : in(lang, {"the masked tokens", "被遮住的词元"}),
               in(lang, {"temperature {:g}", "温度 {:g}"}, reading.options.temperature.value_or(1.0)));
  if (reading.predictions.empty()) {
    page.prose(in(lang, {"The text has no mask. Put [MASK] (in RoBERTa <mask>) in the place of a word.",
                         "文中没有掩码。请用 [MASK]（RoBERTa 用 <mask>）代替一个词。"}));
  }
  for (const Prediction& each : reading.predictions) {
    page.line(page.terminal().bold(place_of(reading, each)));
    show_likely(page, reading, each);
  }
}

void show_generated(Page& page, const Reading& reading) {
  const Lang lang = reading.options.lang;
  page.heading(in(lang, {"the text goes on", "续写"}),
               in(lang, {"temperature {:g}", "温度 {:g}"}, reading.options.temperature.value_or(0.0)));
  std::vector<std::int32_t> ids;
  for (const models::Token& token : reading.tokens) ids.push_back(token.id);
  const std::size_t before = ids.size();
  for (const models::Likely& each : reading.generated) ids.push_back(each.token);
  // The tokens of the answer alone may begin in the middle of a character.
  const std::string start = reading.tokenizer.decode(std::span(ids).first(before));
  const std::string all = reading.tokenizer.decode(ids);
  page.quiet(in_lines(start));
  page.prose(in_lines(all.starts_with(start) ? all.substr(start.size()) : all));
  if (std::ssize(reading.generated) < *reading.options.generate) {
    const bool ended = !reading.generated.empty() && reading.generated.back().token == reading.model.config().end_token;
    page.quiet(ended ? in(lang, {"The model ended the text.", "模型结束了这段文字。"})
                     : in(lang, {"No position is left.", "没有剩余的位置。"}));
  }
}

}  // namespace rapt::cli
