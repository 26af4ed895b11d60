#include "cli/train/report.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/terminal/output.h"
#include "cli/terminal/text.h"
#include "cli/train/loss_chart.h"

namespace rapt::cli {
namespace {

constexpr int kChartHeight = 8, kChartWidth = 72;
constexpr Rgb kGood{70, 156, 92}, kBad{214, 94, 62};

std::int64_t parameters_of(const Transformer& model) {
  std::int64_t count = 0;
  for (const NamedTensor& parameter : model.parameters()) count += parameter.value.count();
  return count;
}

}  // namespace

void print_train_report(const TrainReport& report, const Terminal& terminal) {
  const train::Trainer& trainer = report.trainer;
  const TransformerConfig& config = trainer.model().config();
  print(fmt::format("{}  {} layer{} with {} head{}{}, width {}, {} parameters\n", terminal.bold(report.task.name()),
                    config.layers, config.layers == 1 ? "" : "s", config.heads, config.heads == 1 ? "" : "s",
                    config.layers == 1 ? "" : " each", config.width, parameters_of(trainer.model())));
  std::vector<std::pair<double, double>> points;
  for (const train::Point& point : trainer.curve()) points.emplace_back(static_cast<double>(point.step), point.loss);
  const std::vector<std::string> chart =
      line_chart(terminal, points, std::min(terminal.width(), kChartWidth), kChartHeight);
  if (!chart.empty()) print("validation loss\n");
  for (const std::string& line : chart) print(line + "\n");

  const train::Evaluation now = trainer.evaluate();
  print(fmt::format("{} {} steps in {:.1f} s, {:.0f} tokens/s, seed {}: loss {:.4f}\n",
                    report.interrupted ? "stopped after" : "after", trainer.steps(), report.seconds,
                    report.tokens_per_second, report.seed, now.loss));
  for (const train::Measure& measure : now.measures) {
    const std::string mark = !measure.goal       ? " "
                             : measure.reached() ? terminal.colored(kGood, "✓")
                                                 : terminal.colored(kBad, "✗");
    const std::string goal = measure.goal ? fmt::format("≥ {:g} %", 100.0 * *measure.goal) : "";
    print(fmt::format("{} {:>6.2f} %  {}  {}\n", mark, 100.0 * measure.value, pad_right(goal, 6), measure.words));
  }
}

void print_train_json(const TrainReport& report) {
  const train::Trainer& trainer = report.trainer;
  const TransformerConfig& config = trainer.model().config();
  const train::Evaluation now = trainer.evaluate();
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"task", report.task.name()},
                                 {"seed", report.seed},
                                 {"steps", trainer.steps()},
                                 {"reached", trainer.reached()},
                                 {"interrupted", report.interrupted},
                                 {"seconds", report.seconds},
                                 {"tokens_per_second", report.tokens_per_second},
                                 {"layers", config.layers},
                                 {"heads", config.heads},
                                 {"width", config.width},
                                 {"context", config.context},
                                 {"parameters", parameters_of(trainer.model())},
                                 {"file", nullptr},
                                 {"checkpoint", nullptr},
                                 {"loss", now.loss}};
  if (!report.model_file.empty()) json["file"] = report.model_file;
  if (!report.checkpoint_file.empty()) json["checkpoint"] = report.checkpoint_file;
  json["measures"] = nlohmann::ordered_json::array();
  for (const train::Measure& measure : now.measures) {
    nlohmann::ordered_json one = {{"name", measure.key}, {"means", measure.words}, {"value", measure.value}};
    if (measure.goal) one["goal"] = *measure.goal;
    json["measures"].push_back(std::move(one));
  }
  json["curve"] = nlohmann::ordered_json::array();
  for (const train::Point& point : trainer.curve()) {
    nlohmann::ordered_json one = {{"step", point.step}, {"training_loss", point.training_loss}, {"loss", point.loss}};
    for (std::size_t n = 0; n < point.measures.size() && n < now.measures.size(); ++n) {
      one[now.measures[n].key] = point.measures[n];
    }
    json["curve"].push_back(std::move(one));
  }
  print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace rapt::cli
