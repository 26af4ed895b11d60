// Terminal capabilities and colour escape codes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rapt::cli {

enum class ColorChoice : std::uint8_t { automatic, always, never };
enum class ColorMode : std::uint8_t { none, palette256, truecolor };

struct Rgb {
  std::uint8_t r = 0;
  std::uint8_t g = 0;
  std::uint8_t b = 0;
};

// The width and the colours of the output. With ColorMode::none, every function returns its text unchanged.
class Terminal {
 public:
  Terminal(ColorMode mode, int width) : mode_(mode), width_(width) {}

  int width() const { return width_; }
  bool has_color() const { return mode_ != ColorMode::none; }

  std::string bold(std::string_view text) const { return wrapped("1", text); }
  std::string dim(std::string_view text) const { return wrapped("2", text); }
  std::string colored(Rgb color, std::string_view text) const;
  std::string cell(Rgb background, std::string_view text) const;   // in black or white, whichever has more contrast
  std::string heat(double fraction, std::string_view text) const;  // 0 … 1, dark to bright: weights
  std::string signed_heat(double fraction, std::string_view text) const;  // −1 … 1, blue, grey, red: any number

 private:
  std::string wrapped(std::string_view code, std::string_view text) const;
  std::string code(Rgb color, bool background) const;
  std::string palette_cell(int background, bool dark_ink, std::string_view text) const;

  ColorMode mode_;
  int width_;
};

int terminal_width(int descriptor);  // in columns; 0 if it is not a terminal

// Queries the descriptor (stdout) and the environment: NO_COLOR, TERM, COLORTERM, COLUMNS. --color always overrides
// NO_COLOR.
Terminal detect_terminal(ColorChoice choice, int descriptor = 1);

// One colour per head, or per token: neighbours differ, and all read well on dark and light backgrounds.
Rgb group_color(std::int64_t index);

}  // namespace rapt::cli
