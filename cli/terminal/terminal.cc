#include "cli/terminal/terminal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace rapt::cli {
namespace {

constexpr int kDefaultWidth = 80;
constexpr int kNarrowest = 60;
constexpr int kWidest = 120;  // longer lines are hard to read

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

int detect_width(int descriptor) {
  int width = terminal_width(descriptor);
  if (width == 0) width = static_cast<int>(std::strtol(std::string(environment("COLUMNS")).c_str(), nullptr, 10));
  return width <= 0 ? kDefaultWidth : std::clamp(width, kNarrowest, kWidest);
}

// The 256-colour palette holds a 6×6×6 cube and 24 greys; takes whichever is nearer.
int nearest_of_256(Rgb color) {
  constexpr std::array<int, 6> kLevels{0, 95, 135, 175, 215, 255};
  const auto nearest_level = [&](int value) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < kLevels.size(); ++i) {
      if (std::abs(kLevels[i] - value) < std::abs(kLevels[best] - value)) best = i;
    }
    return best;
  };
  const auto distance = [&](int r, int g, int b) {
    const int dr = r - color.r;
    const int dg = g - color.g;
    const int db = b - color.b;
    return dr * dr + dg * dg + db * db;
  };
  const std::array<std::size_t, 3> level{nearest_level(color.r), nearest_level(color.g), nearest_level(color.b)};
  const int mean = (color.r + color.g + color.b) / 3;
  const int gray = std::clamp((mean - 3) / 10, 0, 23);
  const int gray_value = 8 + 10 * gray;
  if (distance(gray_value, gray_value, gray_value) <
      distance(kLevels[level[0]], kLevels[level[1]], kLevels[level[2]])) {
    return 232 + gray;
  }
  return static_cast<int>(16 + 36 * level[0] + 6 * level[1] + level[2]);
}

// The colour at `fraction` of the way along evenly spaced stops.
template <std::size_t kCount>
Rgb blend(const std::array<Rgb, kCount>& stops, double fraction) {
  const double place = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(kCount - 1);
  const std::size_t low = std::min(static_cast<std::size_t>(place), kCount - 2);
  const double t = place - static_cast<double>(low);
  const auto mix = [t](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround((1 - t) * a + t * b));
  };
  const Rgb& a = stops[low];
  const Rgb& b = stops[low + 1];
  return {mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b)};
}

// The 256-colour palette has no fine ramps, so this takes the nearest colour of a row that was picked by hand.
template <std::size_t kCount>
int pick(const std::array<int, kCount>& palette, double fraction) {
  return palette[static_cast<std::size_t>(
      std::lround(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(kCount - 1)))];
}

}  // namespace

int terminal_width(int descriptor) {
  winsize size{};
  return isatty(descriptor) != 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Terminal detect_terminal(ColorChoice choice, int descriptor) {
  const bool wanted =
      choice == ColorChoice::always || (choice == ColorChoice::automatic && isatty(descriptor) != 0 &&
                                        environment("NO_COLOR").empty() && environment("TERM") != "dumb");
  const std::string_view colors = environment("COLORTERM");
  const ColorMode mode = !wanted                                      ? ColorMode::none
                         : colors == "truecolor" || colors == "24bit" ? ColorMode::truecolor
                                                                      : ColorMode::palette256;
  return {mode, detect_width(descriptor)};
}

std::string Terminal::wrapped(std::string_view code, std::string_view text) const {
  if (mode_ == ColorMode::none || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string Terminal::code(Rgb color, bool background) const {
  if (mode_ == ColorMode::palette256) return fmt::format("{};5;{}", background ? 48 : 38, nearest_of_256(color));
  return fmt::format("{};2;{};{};{}", background ? 48 : 38, color.r, color.g, color.b);
}

std::string Terminal::colored(Rgb color, std::string_view text) const { return wrapped(code(color, false), text); }

std::string Terminal::cell(Rgb background, std::string_view text) const {
  const double brightness = 0.299 * background.r + 0.587 * background.g + 0.114 * background.b;
  const Rgb ink = brightness > 140 ? Rgb{16, 16, 16} : Rgb{238, 238, 238};
  return wrapped(code(ink, false) + ";" + code(background, true), text);
}

std::string Terminal::heat(double fraction, std::string_view text) const {
  static constexpr std::array<Rgb, 7> kStops{
      {{22, 22, 40}, {62, 24, 92}, {124, 32, 110}, {186, 54, 85}, {236, 104, 50}, {251, 168, 44}, {252, 238, 150}}};
  static constexpr std::array<int, 10> kPalette{234, 53, 89, 125, 161, 202, 208, 214, 220, 228};
  if (mode_ == ColorMode::palette256) return palette_cell(pick(kPalette, fraction), fraction > 0.5, text);
  return cell(blend(kStops, fraction), text);
}

std::string Terminal::signed_heat(double fraction, std::string_view text) const {
  static constexpr std::array<Rgb, 5> kStops{
      {{54, 124, 226}, {42, 72, 122}, {44, 44, 50}, {134, 58, 48}, {232, 92, 62}}};
  static constexpr std::array<int, 9> kPalette{33, 26, 25, 17, 236, 52, 88, 124, 160};
  const double lifted = std::copysign(std::pow(std::abs(fraction), 0.75), fraction);  // makes small numbers visible
  const double place = (lifted + 1) / 2;
  if (mode_ == ColorMode::palette256) return palette_cell(pick(kPalette, place), false, text);
  return cell(blend(kStops, place), text);
}

std::string Terminal::palette_cell(int background, bool dark_ink, std::string_view text) const {
  return wrapped(fmt::format("38;5;{};48;5;{}", dark_ink ? 16 : 255, background), text);
}

Rgb group_color(std::int64_t index) {
  static constexpr std::array<Rgb, 8> kColors{{{214, 94, 62},
                                               {62, 138, 206},
                                               {70, 156, 92},
                                               {176, 108, 200},
                                               {190, 140, 34},
                                               {36, 158, 158},
                                               {212, 92, 142},
                                               {122, 134, 150}}};
  return kColors[static_cast<std::size_t>(index) % kColors.size()];
}

}  // namespace rapt::cli
