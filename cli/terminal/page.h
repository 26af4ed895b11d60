// Lines of text on stdout: headings that fill the width, prose that wraps, pictures with a margin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/pictures.h"
#include "cli/terminal/terminal.h"

namespace rapt::cli {

class Page {
 public:
  explicit Page(const Terminal& terminal) : terminal_(terminal) {}

  const Terminal& terminal() const { return terminal_; }
  int width() const { return terminal_.width(); }
  int room() const { return width() - kMargin; }  // for a picture

  void heading(std::string_view name, std::string_view detail);  // ── name ───────── detail ──
  void prose(std::string_view text);
  void quiet(std::string_view text);  // prose, dimmed
  void line(std::string_view text = "");
  void lines(const std::vector<std::string>& texts);

  void flush();  // writes everything to stdout; if an error occurs first, nothing is printed

 private:
  static constexpr int kMargin = 2;

  const Terminal& terminal_;
  std::string text_;
};

}  // namespace rapt::cli
