// The words of `rapt show`, in English and Chinese.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cli/terminal/terminal.h"
#include "exhibits/exhibit.h"
#include "models/heads.h"

namespace rapt::cli {

struct HabitWords {
  std::string_view glyph;  // one column wide
  exhibits::Both name;
};
const HabitWords& words_of(models::Habit habit);
inline constexpr std::string_view kOffGlyph = "×";

// "previous token 93%", or "spread over 4.2 tokens".
std::string summary_words(const models::HeadSummary& summary, exhibits::Lang lang);

// A format string in each language, filled in.
template <class... Values>
std::string in(exhibits::Lang lang, const exhibits::Both& both, const Values&... values) {
  return fmt::format(fmt::runtime(lang == exhibits::Lang::zh ? both.zh : both.en), values...);
}

}  // namespace rapt::cli
