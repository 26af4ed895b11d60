#include "cli/explain/exhibit_page.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cli/explain/exhibit_blocks.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

using exhibits::Both;
using exhibits::Chart;
using exhibits::Code;
using exhibits::Exhibit;
using exhibits::Lang;
using exhibits::Matrix;
using exhibits::Mood;
using exhibits::Prose;
using exhibits::Switch;
using exhibits::Table;

constexpr Rgb kGreen{46, 160, 67}, kRed{218, 54, 51};

class ExhibitPage {
 public:
  ExhibitPage(Page& page, Lang lang) : page_(page), terminal_(page.terminal()), lang_(lang) {}

  void title(const Exhibit& exhibit) {
    marked(fmt::format("{}. ", exhibit.number), exhibit.question,
           [&](const std::string& line) { return terminal_.bold(line); });
    page_.line();
    page_.prose(exhibit.answer);
    for (const Switch& each : exhibit.switches) {
      const auto chosen = std::find_if(each.choices.begin(), each.choices.end(),
                                       [&](const exhibits::Choice& choice) { return choice.value == each.chosen; });
      page_.quiet(fmt::format("▸ {}{}{}", each.label, colon(), chosen->label));
    }
  }

  void operator()(const Prose& prose) {
    flush();
    page_.line();
    marked(mood_mark(prose.mood), prose.text, [&](const std::string& line) {
      if (prose.mood == Mood::plain) return line;
      return terminal_.colored(prose.mood == Mood::right ? kGreen : kRed, line);
    });
  }

  // Consecutive matrices are placed next to each other, as far as there is room.
  void operator()(const Matrix& matrix) { matrices_.push_back(&matrix); }

  void operator()(const Table& table) {
    flush();
    heading(table.title);
    page_.lines(table_lines(terminal_, table, page_.room()));
  }

  void operator()(const Chart& chart) {
    flush();
    heading(chart.title);
    page_.lines(chart_lines(terminal_, chart, page_.room()));
  }

  void operator()(const Code& code) {
    flush();
    page_.line();
    for (const std::string& line : wrap(code.text, page_.room() - 2)) page_.line(terminal_.dim("│ ") + line);
  }

  void flush() {
    std::vector<MatrixBlock> blocks;
    for (const Matrix* matrix : matrices_) {
      for (MatrixBlock& block : matrix_blocks(terminal_, *matrix, page_.room())) blocks.push_back(std::move(block));
    }
    matrices_.clear();
    for (std::size_t begin = 0; begin < blocks.size();) begin = show_beside(blocks, begin);
  }

  // The other settings, as command-line options.
  void next(const Exhibit& exhibit) {
    flush();
    page_.heading(Both{"next", "接着试"}.in(lang_), "");
    std::vector<std::pair<std::string, std::string>> ideas;
    const std::string lang = Both{"", " --lang zh"}.in(lang_);
    for (const Switch& each : exhibit.switches) {
      for (const exhibits::Choice& choice : each.choices) {
        if (choice.value == each.chosen) continue;
        ideas.emplace_back(fmt::format("--question {} --set {}={}{}", exhibit.number, each.key, choice.value, lang),
                           fmt::format("{}{}{}", each.label, colon(), choice.label));
      }
    }
    ideas.emplace_back("--questions" + lang, Both{"all the questions", "所有问题"}.in(lang_));
    std::size_t widest = 0;
    for (const auto& [option, meaning] : ideas) widest = std::max(widest, option.size());
    for (const auto& [option, meaning] : ideas) {
      if (static_cast<int>(widest) + 40 > page_.room()) {  // too little room after the name
        page_.prose(fmt::format("rapt explain {}", option));
        page_.line(terminal_.dim(clip("  " + meaning, page_.room())));
        continue;
      }
      const std::string command = fmt::format("rapt explain {:{}}  ", option, widest);
      page_.line(command + terminal_.dim(clip(meaning, page_.room() - columns(command))));
    }
  }

 private:
  std::string colon() const { return Both{": ", "："}.in(lang_); }

  void heading(const std::string& title) {
    page_.line();
    for (const std::string& line : wrap(title, page_.room())) page_.line(terminal_.bold(line));
  }

  // Prints as many blocks from `begin` on as fit, aligned at their first rows; returns the first that does not fit.
  std::size_t show_beside(const std::vector<MatrixBlock>& blocks, std::size_t begin) {
    constexpr int kGap = 3;
    std::size_t end = begin, titles = 0;
    for (int used = 0; end < blocks.size(); ++end) {
      used += blocks[end].width + (end > begin ? kGap : 0);
      if (end > begin && used > page_.room()) break;
      titles = std::max(titles, blocks[end].title_lines);
    }
    std::vector<Block> row(blocks.begin() + static_cast<std::ptrdiff_t>(begin),
                           blocks.begin() + static_cast<std::ptrdiff_t>(end));
    for (std::size_t n = 0; n < row.size(); ++n) {
      const std::string blank(static_cast<std::size_t>(row[n].width), ' ');
      row[n].lines.insert(row[n].lines.begin(), titles - blocks[begin + n].title_lines, blank);
    }
    page_.line();
    page_.lines(arrange(row, page_.room(), kGap));
    return end;
  }

  // Prints text after a mark; further lines are indented to the first word.
  template <class Paint>
  void marked(const std::string& mark, const std::string& text, const Paint& paint) {
    const int indent = columns(mark);
    bool first = true;
    for (const std::string& line : wrap(text, page_.room() - indent)) {
      page_.line(first ? paint(mark + line) : std::string(static_cast<std::size_t>(indent), ' ') + paint(line));
      first = false;
    }
  }

  Page& page_;
  const Terminal& terminal_;
  Lang lang_;
  std::vector<const Matrix*> matrices_;
};

}  // namespace

void show_exhibit(Page& page, const Exhibit& exhibit, Lang lang) {
  ExhibitPage drawn(page, lang);
  drawn.title(exhibit);
  for (const exhibits::Block& block : exhibit.blocks) std::visit(drawn, block);
  drawn.next(exhibit);
}

void show_questions(Page& page, const std::vector<Exhibit>& questions, Lang lang) {
  page.line(page.terminal().bold(Both{"Common questions about attention", "关于注意力的常见问题"}.in(lang)));
  page.line();
  for (const Exhibit& each : questions) {
    const std::string number = fmt::format("{:>2}  ", each.number);
    bool first = true;
    for (const std::string& line : wrap(each.question, page.room() - 4)) {
      page.line((first ? number : std::string(4, ' ')) + line);
      first = false;
    }
  }
  page.line();
  page.quiet(Both{"rapt explain --question 1 shows the answer to the first.",
                  "rapt explain --question 1 --lang zh 显示第一题的解答。"}
                 .in(lang));
}

}  // namespace rapt::cli
