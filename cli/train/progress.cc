#include "cli/train/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

constexpr auto kBetweenFrames = std::chrono::milliseconds(100);
constexpr auto kBetweenLines = std::chrono::seconds(5);
constexpr int kWidestBar = 30;
constexpr Rgb kDone{70, 156, 92};

bool is_dumb() {
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string_view(term) == "dumb";
}

std::string clock_words(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// Always four characters wide: 980, 1.2k, 44k, 116k.
std::string count_words(double count) {
  const auto words = [](double value, const char* unit) {
    return fmt::format("{:>4}", fmt::format("{:.{}f}{}", value, value < 9.95 && *unit != 0 ? 1 : 0, unit));
  };
  return count >= 1e6 ? words(count / 1e6, "M") : count >= 1e3 ? words(count / 1e3, "k") : words(count, "");
}

}  // namespace

TrainProgress::TrainProgress(const train::Task& task, ColorChoice color, std::int64_t first_step)
    : task_(task),
      terminal_(detect_terminal(color, STDERR_FILENO)),
      changes_(isatty(STDERR_FILENO) != 0 && !is_dumb()),
      first_step_(first_step) {}

TrainProgress::~TrainProgress() {
  if (line_open_) std::fputs("\r\x1b[K", stderr);
}

double TrainProgress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

double TrainProgress::tokens_per_second(const train::Trainer& trainer) const {
  const auto steps = static_cast<double>(trainer.steps() - first_step_);
  const double spent = seconds();
  return spent > 0.0 ? steps * static_cast<double>(task_.recipe().batch * task_.recipe().model.context) / spent : 0.0;
}

//  450/2000  loss 0.041  right  99.6 %   44k tok/s  ≤0:12 left
std::string TrainProgress::numbers(const train::Trainer& trainer) const {
  const std::int64_t most = task_.recipe().steps;
  std::string text = fmt::format("{:>{}}/{}  loss {:.3f}", trainer.steps(), fmt::formatted_size("{}", most), most,
                                 trainer.last_loss());
  text += trainer.curve().empty() ? "  right   -.- %"
                                  : fmt::format("  right {:>5.1f} %", 100.0 * trainer.curve().back().measures[0]);
  text += fmt::format("  {} tok/s", count_words(tokens_per_second(trainer)));
  const auto done = static_cast<double>(trainer.steps() - first_step_);
  const double left = seconds() / std::max(1.0, done) * static_cast<double>(most - trainer.steps());
  return text + fmt::format("  {}{} left", task_.name() == "text" ? "" : "≤", clock_words(left));  // upper bound
}

std::string TrainProgress::bar(const train::Trainer& trainer, int width) const {
  const double fraction = static_cast<double>(trainer.steps()) / static_cast<double>(task_.recipe().steps);
  const int done = std::clamp(static_cast<int>(fraction * width), 0, width);
  std::string full, rest;
  for (int n = 0; n < width; ++n) (n < done ? full : rest) += n < done ? "━" : "─";
  return terminal_.colored(kDone, full) + terminal_.dim(rest);
}

void TrainProgress::show(const train::Trainer& trainer, bool evaluated) {
  const Clock::time_point now = Clock::now();
  const bool first = shown_ == Clock::time_point{};
  if (changes_) {
    if (!first && now - shown_ < kBetweenFrames) return;
    const int width = terminal_.width() - 3;  // room for ^C, which Ctrl-C prints
    const std::string right = clip(numbers(trainer), width);
    const int room = std::min(kWidestBar, width - columns(right) - 2);
    // One write for the whole line, over the old one, to avoid flicker.
    std::string all("\r");
    if (room >= 4) all += bar(trainer, room) + "  ";
    all += right + "\x1b[K";
    std::fwrite(all.data(), 1, all.size(), stderr);
    std::fflush(stderr);
    line_open_ = true;
  } else {
    if (!evaluated || (!first && now - shown_ < kBetweenLines)) return;
    fmt::print(stderr, "{}  step {}\n", task_.name(), numbers(trainer));
  }
  shown_ = now;
}

}  // namespace rapt::cli
