#include "cli/show/words.h"

#include <array>

namespace rapt::cli {

const HabitWords& words_of(models::Habit habit) {
  static constexpr std::array<HabitWords, models::kHabits> kWords{{
      {"←", {"previous token", "上一个词元"}},
      {"→", {"next token", "下一个词元"}},
      {"=", {"the same token elsewhere", "别处的相同词元"}},
      {"o", {"the token itself", "词元自己"}},
      {"^", {"first token", "第一个词元"}},
      {".", {"delimiters", "分隔符"}},
      {"»", {"what followed last time (induction)", "上次出现时的后一个词元（归纳）"}},
      {"~", {"spread over many", "分散"}},
  }};
  return kWords[static_cast<std::size_t>(habit)];
}

std::string summary_words(const models::HeadSummary& summary, exhibits::Lang lang) {
  if (summary.habit == models::Habit::spread) {
    return in(lang, {"spread over {:.1f} tokens", "分散在 {:.1f} 个词元上"}, summary.keys);
  }
  return fmt::format("{} {:.0f}%", words_of(summary.habit).name.in(lang), 100.0 * summary.share);
}

}  // namespace rapt::cli
