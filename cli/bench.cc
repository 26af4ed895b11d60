#include "bench.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench_report.h"
#include "bench_rounds.h"
#include "page.h"
#include "rapt/error.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostDim = 512;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value < least || value > most) {
    throw CLI::ValidationError(option, fmt::format("'{}' is not a whole number from {} to {}", text, least, most));
  }
  return value;
}

// One of a list of words, by name; the message lists them.
template <class Value, std::size_t kCount>
Value chosen(const std::string& option, const std::string& text,
             const std::array<std::pair<std::string_view, Value>, kCount>& choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw CLI::ValidationError(option, fmt::format("'{}' is none of {}", text, names));
}

constexpr std::array<std::pair<std::string_view, DType>, 4> kTypes{
    {{"f32", DType::f32}, {"f64", DType::f64}, {"bf16", DType::bf16}, {"f16", DType::f16}}};
constexpr std::array<std::pair<std::string_view, BenchMask>, 5> kMasks{{{"none", BenchMask::none},
                                                                        {"bool", BenchMask::bool_full},
                                                                        {"float", BenchMask::float_full},
                                                                        {"bool-plane", BenchMask::bool_plane},
                                                                        {"float-plane", BenchMask::float_plane}}};
constexpr std::array<std::pair<std::string_view, BenchWeights>, 3> kWeights{
    {{"none", BenchWeights::none}, {"mean", BenchWeights::mean}, {"all", BenchWeights::all}}};
constexpr std::array<std::pair<std::string_view, Engine>, 3> kEngines{
    {{"auto", Engine::automatic}, {"cpu", Engine::cpu}, {"reference", Engine::reference}}};
constexpr std::array<std::pair<std::string_view, ColorChoice>, 3> kColors{
    {{"auto", ColorChoice::automatic}, {"always", ColorChoice::always}, {"never", ColorChoice::never}}};

// "256,0", "256,open" or "none".
Window window_of(const std::string& text) {
  if (text == "none") return {};
  const std::vector<std::string> sides = split(text);
  if (sides.size() != 2) {
    throw CLI::ValidationError("--window", fmt::format("'{}' is not LEFT,RIGHT, such as 256,0 or 256,open", text));
  }
  const auto side = [](const std::string& keys) -> std::optional<std::int64_t> {
    if (keys == "open") return std::nullopt;
    return whole_number("--window", keys, 0, kMostElements);
  };
  return {side(sides[0]), side(sides[1])};
}

class Adder {
 public:
  explicit Adder(CLI::App& command) : command_(command) {}

  // --name 1,2,4 into a list of numbers.
  void numbers(const std::string& name, std::vector<std::int64_t>& list, std::int64_t most, const std::string& help) {
    one(name, "LIST", help, [&list, name, most](const std::string& text) {
      list.clear();
      for (const std::string& part : split(text)) list.push_back(whole_number(name, part, 1, most));
    });
  }
  // --name a,b into a list of choices.
  template <class Value, std::size_t kCount>
  void choices(const std::string& name, std::vector<Value>& list,
               const std::array<std::pair<std::string_view, Value>, kCount>& all, const std::string& help) {
    one(name, names_of(all), help, [&list, name, &all](const std::string& text) {
      list.clear();
      for (const std::string& part : split(text)) list.push_back(chosen(name, part, all));
    });
  }
  template <class Value, std::size_t kCount>
  void choice(const std::string& name, Value& value, const std::array<std::pair<std::string_view, Value>, kCount>& all,
              const std::string& help) {
    one(name, names_of(all), help, [&value, name, &all](const std::string& text) { value = chosen(name, text, all); });
  }
  CLI::Option* one(const std::string& name, const std::string& type, const std::string& help,
                   const std::function<void(const std::string&)>& set) {
    return command_.add_option_function<std::string>(name, set, help)->type_name(type);
  }

 private:
  template <class Value, std::size_t kCount>
  static std::string names_of(const std::array<std::pair<std::string_view, Value>, kCount>& all) {
    std::string names;
    for (const auto& each : all) names += fmt::format("{}{}", names.empty() ? "" : "|", each.first);
    return names;
  }

  CLI::App& command_;
};

void add_cases(CLI::App& command, BenchSweep& sweep) {
  // Options are read in the order they are added in, so what is given besides changes this start.
  command.add_flag_callback(
      "--decode",
      [&sweep] {
        sweep.heads = {32}, sweep.kv_heads = {8}, sweep.queries = {1}, sweep.keys = {32768};
        sweep.dtype = {DType::f32, DType::bf16, DType::f16};
      },
      "Start from decoding: 1 query on 32768 keys, 32 heads on 8 kv heads, in f32, bf16 and f16");
  Adder add(command);
  add.numbers("--batch", sweep.batch, kMostElements, "Batch rows (1)");
  add.numbers("--heads", sweep.heads, kMostElements, "Query heads (8)");
  add.numbers("--kv-heads", sweep.kv_heads, kMostElements, "Key and value heads (as many as --heads)");
  add.numbers("--queries", sweep.queries, kMostElements, "Queries (2048)");
  add.numbers("--keys", sweep.keys, kMostElements,
              "Keys (as many as --queries); where they differ, the last query sees the last key");
  add.numbers("--dim", sweep.dim, kMostDim, "Head size (128)");
  add.choices("--dtype", sweep.dtype, kTypes, "Element type (f32)");
  command
      .add_option_function<std::string>(
          "--causal",
          [&sweep](const std::string& which) {
            static constexpr std::array<std::pair<std::string_view, int>, 3> kWhich{
                {{"yes", 1}, {"no", 0}, {"both", 2}}};
            const int how = chosen("--causal", which, kWhich);
            sweep.causal = how == 2 ? std::vector<bool>{false, true} : std::vector<bool>{how == 1};
          },
          "A query sees the keys up to its own place; `both` times both")
      ->expected(0, 1)
      ->default_str("yes")
      ->type_name("[yes|no|both]");
  command
      .add_option_function<std::vector<std::string>>(
          "--window",
          [&sweep](const std::vector<std::string>& windows) {
            sweep.window.clear();
            for (const std::string& each : windows) sweep.window.push_back(window_of(each));
          },
          "Keys seen before and after a query's place (none); give it again to sweep")
      ->allow_extra_args(false)
      ->type_name("LEFT,RIGHT");
  add.choices("--mask", sweep.mask, kMasks,
              "A mask of full size, (B, Hq, Lq, Lk), or -plane: one of (Lq, Lk) for all heads (none)");
  add.choices("--weights", sweep.weights, kWeights, "Also write the weights: their mean over heads, or all (none)");
  add.numbers("--threads", sweep.threads, kMostThreads, "Threads (1)");
}

// "" ends the line. On anything but a terminal there is no line: a log should not hold a hundred of them.
void show_progress(const std::string& now) {
  static const bool on_terminal = isatty(STDERR_FILENO) != 0;
  if (on_terminal) fmt::print(stderr, "\r\x1b[K{}", now);
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(fmt::format("bench: cannot write {}", path));
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

CLI::App* add_bench(CLI::App& app, BenchOptions& options) {
  CLI::App* bench = app.add_subcommand("bench", "Time it, each answer checked first");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand(
      "attention", "Attention forward. Lists, such as --queries 512,1024, time every combination");
  add_cases(*command, options.sweep);
  Adder add(*command);
  add.choice("--engine", options.engine, kEngines, "Who computes (auto)");
  command->add_flag(
      "--baseline", options.baseline,
      "Also time a matrix product, the FMA peak and plain reads of memory in every round, and the ratios");
  add.one("--reps", "N", "Rounds: every case is timed once in each (9)",
          [&](const std::string& text) { options.rounds = whole_number("--reps", text, 1, 100000); });
  command
      ->add_option("--min-time", options.shortest_sample,
                   "Seconds a sample lasts at least: a faster call is repeated within it (0.02)")
      ->check(CLI::Range(0.0, 3600.0).description(""))
      ->type_name("S");
  CLI::Option* json = command->add_flag("--json", options.json, "Print data");
  command->add_flag("--csv", options.csv, "Print comma-separated values")->excludes(json);
  add.one("--plot", "FILE.svg", "Also draw it", [&](const std::string& file) { options.plot = file; });
  add.choice("--color", options.color, kColors, "When to colour");
  return bench;
}

ExitCode run_bench(const BenchOptions& options) {
  const BenchPlan plan{.cases = cases_of(options.sweep),
                       .engine = options.engine,
                       .baseline = options.baseline,
                       .rounds = options.rounds,
                       .shortest_sample = options.shortest_sample,
                       .progress = show_progress};
  BenchReport report;
  try {
    report = run_rounds(plan);
  } catch (const Error& error) {  // the library's words for a combination that it refuses
    show_progress("");
    throw UsageError(fmt::format("bench: {}", error.what()));
  }
  show_progress("");

  bool good = true;
  for (const BenchResult& result : report.results) {
    if (result.check.good()) continue;
    good = false;
    fmt::print(stderr, "rapt: bench: {}: wrong by {:.1e}, at most {:.1e} is right; nothing was timed\n",
               result.parameters.name(), result.check.error, result.check.limit);
  }
  if (!good) return ExitCode::numbers_differ;
  if (!report.baselines.empty() && report.baselines[0].sgemm_library.empty()) {
    fmt::print(stderr, "rapt: bench: no OpenBLAS, oneDNN or MKL was found, so there is no sgemm to compare with\n");
  }

  const BenchMachine machine = BenchMachine::here();
  if (options.json) {
    print(bench_as_json(machine, report).dump(2) + "\n");
  } else if (options.csv) {
    print(bench_as_csv(report));
  } else {
    const Terminal terminal = detect_terminal(options.color);
    Page page(terminal);
    show_bench(page, machine, report);
    page.flush();
  }
  if (options.plot) write_file(*options.plot, bench_as_svg(machine, report));
  return ExitCode::good;
}

}  // namespace rapt::cli
