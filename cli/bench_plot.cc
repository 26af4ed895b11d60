// The drawing of `rapt bench --plot`: one bar per case, with marks for the matrix product and the FMA peak.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bench_report.h"
#include "text.h"

namespace rapt::cli {
namespace {

constexpr int kMargin = 24;
constexpr int kTop = 84;  // title, machine and legend
constexpr int kRow = 30;
constexpr int kBar = 18;
constexpr int kPlot = 520;   // the length of the axis
constexpr int kValues = 60;  // for the number behind a bar
constexpr double kLetter = 7.3;

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      default: safe += c;
    }
  }
  return safe;
}

// 1, 2 or 5 times a power of ten: about six ticks up to `largest`.
double tick_step(double largest) {
  const double rough = std::max(largest, 1e-9) / 6.0;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10.0 * power;
}

}  // namespace

std::string bench_as_svg(const BenchMachine& machine, const BenchReport& report) {
  double largest = 0.0;
  int letters = 0;
  for (const BenchResult& result : report.results) {
    largest = std::max(largest, result.gflops.max());
    letters = std::max(letters, columns(result.parameters.name()));
    const BenchBaseline* baseline = report.baseline_of(result);
    if (baseline != nullptr) largest = std::max(largest, baseline->fma_gflops.median());
  }
  const double step = tick_step(largest);
  const double axis_end = step * std::ceil(largest / step);
  const int left = kMargin + static_cast<int>(std::ceil(letters * kLetter)) + 12;
  const int width = std::max(left + kPlot + kValues + kMargin, 640);
  const int bottom = kTop + kRow * static_cast<int>(report.results.size());
  const auto x_of = [&](double gflops) { return left + kPlot * gflops / axis_end; };

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>rapt attention, GFLOP/s of useful work</title>\n"
      "<style>text{{font:13px ui-sans-serif,system-ui,'DejaVu Sans',sans-serif;fill:#22303c}}"
      ".name{{font:12px ui-monospace,'DejaVu Sans Mono',monospace;text-anchor:end}}"
      ".quiet{{fill:#667684;font-size:12px}}.tick{{text-anchor:middle}}.title{{font-size:17px;font-weight:600}}"
      ".bar{{fill:#3e8ace}}.spread{{stroke:#1d4f7c;stroke-width:1.5}}.grid{{stroke:#dfe5ea}}"
      ".sgemm{{stroke:#d65e3e;stroke-width:2.5}}.fma{{stroke:#9aa6b0;stroke-width:2.5}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, bottom + 56);
  svg += fmt::format("<text class=\"title\" x=\"{}\" y=\"32\">Attention {}, GFLOP/s of useful work</text>\n", kMargin,
                     report.results[0].parameters.backward ? "backward" : "forward");
  svg += fmt::format("<text class=\"quiet\" x=\"{}\" y=\"52\">{} · {} · rapt " RAPT_VERSION "</text>\n", kMargin,
                     escaped(machine.cpu), escaped(machine.isa));

  const auto legend = [&](int x, std::string_view mark, std::string_view text) {
    svg += fmt::format(
        "<line class=\"{0}\" x1=\"{1}\" y1=\"60\" x2=\"{1}\" y2=\"74\"/>"
        "<text class=\"quiet\" x=\"{2}\" y=\"71\">{3}</text>\n",
        mark, x, x + 8, escaped(text));
  };
  legend(left, "spread", "median, quartiles");
  if (!report.baselines.empty()) {
    if (!report.baselines[0].sgemm_library.empty()) {
      legend(left + 150, "sgemm", fmt::format("sgemm 2048³ ({})", report.baselines[0].sgemm_library));
    }
    legend(left + 350, "fma", "FMA peak");
  }

  for (int tick = 0; tick * step <= axis_end * 1.0001; ++tick) {
    const double x = x_of(tick * step);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>"
        "<text class=\"quiet tick\" x=\"{0:.1f}\" y=\"{3}\">{4}</text>\n",
        x, kTop, bottom + 4, bottom + 22, fmt::format("{:g}", tick * step));
  }

  int y = kTop + (kRow - kBar) / 2;
  for (const BenchResult& result : report.results) {
    const double median = result.gflops.median();
    const int middle = y + kBar / 2;
    svg += fmt::format(
        "<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>"
        "<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\"/>",
        left - 10, middle + 4, escaped(result.parameters.name()), left, y, x_of(median) - left, kBar);
    svg += fmt::format("<line class=\"spread\" x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\"/>",
                       x_of(result.gflops.quantile(0.25)), middle, x_of(result.gflops.quantile(0.75)), middle);
    double label = x_of(result.gflops.quantile(0.75));
    const auto mark = [&](std::string_view kind, const Samples& rate) {
      if (rate.empty()) return;
      const double x = x_of(rate.median());
      svg += fmt::format("<line class=\"{0}\" x1=\"{1:.1f}\" y1=\"{2}\" x2=\"{1:.1f}\" y2=\"{3}\"/>", kind, x, y - 3,
                         y + kBar + 3);
      // If a mark would cross the number, the number is placed after the mark.
      if (x > label - 4 && x < label + 42) label = x;
    };
    if (const BenchBaseline* baseline = report.baseline_of(result)) {
      mark("sgemm", baseline->sgemm_gflops);
      mark("fma", baseline->fma_gflops);
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", label + 7, middle + 4,
                       median < 100 ? fmt::format("{:.1f}", median) : fmt::format("{:.0f}", median));
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace rapt::cli
