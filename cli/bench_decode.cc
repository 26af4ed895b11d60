#include "bench_decode.h"

#include <array>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench_numbers.h"
#include "bench_rounds.h"
#include "bench_stream.h"
#include "bench_table.h"
#include "command.h"
#include "output.h"
#include "page.h"
#include "rapt/error.h"
#include "rapt/multi_head_attention.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 31;
constexpr std::array<std::pair<std::string_view, DType>, 4> kTypes{
    {{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}, {"i8", DType::i8}}};

struct DecodeResult {
  DType type = DType::f32;
  bool paged = false;
  int threads = 1;
  double error = 0.0;         // of the output, against the contiguous cache in f32
  double weight_bytes = 0.0;  // of the layer's matrices
  double cache_bytes = 0.0;   // of the keys and values that are read, with their scales
  Samples ms{}, gbps{};       // of both
  Samples stream_gbps{};      // of reading as many bytes

  std::string name() const {
    return fmt::format("{} {}{}", rapt::name_of(type), paged ? "pages" : "contiguous",
                       threads == 1 ? "" : fmt::format(" t{}", threads));
  }
};

// The allowed effect of a cache type on the output. Pages have none.
double limit_of(const DecodeResult& result) {
  switch (result.type) {
    case DType::bf16: return 1e-2;
    case DType::f16: return 1e-3;
    case DType::i8: return 1e-2;
    default: return 0.0;
  }
}

MultiHeadAttentionConfig layer_config(const DecodeOptions& options) {
  MultiHeadAttentionConfig config;
  config.embed_size = options.embed, config.heads = options.heads, config.kv_heads = options.kv_heads;
  config.batch_first = true;
  return config;
}

// A filled cache of one kind, and the timed step: append a token, attend, and roll back.
class Decoder {
 public:
  Decoder(const DecodeOptions& options, const MultiHeadAttention& layer, DecodeResult& result)
      : options_(options),
        layer_(layer),
        cache_(cache_config(options, layer, result)),
        ids_(static_cast<std::size_t>(options.batch)),
        x_(numbers(options.batch * options.embed, 3, DType::f32)),
        out_({options.batch, 1, options.embed}) {
    const std::int64_t heads = layer.config().kv_heads, size = layer.config().head_size;
    const Dims shape = {1, heads, options.cached, size};
    const Tensor k = numbers(heads * options.cached * size, 1, DType::f32), v = numbers(k.count(), 2, DType::f32);
    for (std::int64_t& id : ids_) {
      id = cache_.add();
      cache_.append(std::span(&id, 1), k.view().reshape(shape), v.view().reshape(shape));
    }
    const std::int64_t token_bytes =
        result.type == DType::i8 ? size + 4 : size * static_cast<std::int64_t>(size_of(result.type));
    result.cache_bytes = static_cast<double>(2 * options.batch * heads * (options.cached + 1) * token_bytes);
    const std::int64_t matrices = (2 * options.heads + 2 * heads) * size * options.embed;
    result.weight_bytes = static_cast<double>(matrices * 4);
    call_.attention.causal = true, call_.attention.threads = result.threads;
    call_.cache = &cache_, call_.sequences = ids_, call_.workspace = &workspace_;
  }

  void step() {
    layer_.forward({out_, {}}, x_.view().reshape({options_.batch, 1, options_.embed}), {}, {}, call_);
    for (const std::int64_t id : ids_) cache_.truncate(id, options_.cached);
  }
  const Tensor& out() const { return out_; }

 private:
  static KvCacheConfig cache_config(const DecodeOptions& options, const MultiHeadAttention& layer,
                                    const DecodeResult& result) {
    KvCacheConfig config;
    config.kv_heads = layer.config().kv_heads, config.head_size = layer.config().head_size;
    config.dtype = result.type, config.sequences = options.batch;
    if (result.paged) {
      config.page_size = options.page_size;
      config.pages = options.batch * (options.cached / options.page_size + 1);
    } else {
      config.length = options.cached + 1;
    }
    return config;
  }

  const DecodeOptions& options_;
  const MultiHeadAttention& layer_;
  KvCache cache_;
  std::vector<std::int64_t> ids_;
  Tensor x_, out_;
  LayerWorkspace workspace_;
  LayerOptions call_;
};

std::vector<DecodeResult> run_rounds(const DecodeOptions& options) {
  const MultiHeadAttention layer(layer_config(options), 1);
  std::vector<DecodeResult> results;
  std::vector<std::unique_ptr<Decoder>> decoders;
  std::vector<FastestRead> reads;
  std::vector<std::int64_t> repeats;
  DecodeResult plain;
  Decoder reference(options, layer, plain);
  reference.step();
  for (const std::int64_t threads : options.threads) {
    for (const DType type : options.types) {
      for (const bool paged : {false, true}) {
        results.push_back({.type = type, .paged = paged, .threads = static_cast<int>(threads)});
        DecodeResult& result = results.back();
        show_progress("filling " + result.name());
        decoders.push_back(std::make_unique<Decoder>(options, layer, result));
        Decoder& decoder = *decoders.back();
        repeats.push_back(repeats_for(options.shortest_sample, [&] { decoder.step(); }));
        result.error = relative_error(decoder.out(), reference.out());
        // Both kinds of cache hold as many bytes.
        if (!paged)
          reads.emplace_back(static_cast<std::size_t>(result.weight_bytes + result.cache_bytes), result.threads);
      }
    }
  }
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    for (std::size_t turn = 0; turn < results.size(); ++turn) {
      // Every other round runs in reverse order: a case after a large read finds less of its data in cache.
      const std::size_t n = round % 2 == 0 ? turn : results.size() - 1 - turn;
      DecodeResult& result = results[n];
      show_progress(fmt::format("round {} of {}: {}", round + 1, options.rounds, result.name()));
      const double each = seconds_of_each(repeats[n], [&] { decoders[n]->step(); });
      result.ms.add(each * 1e3);
      result.gbps.add((result.weight_bytes + result.cache_bytes) / each / 1e9);
      result.stream_gbps.add(reads[n / 2].gbps(repeats[n]));
    }
  }
  show_progress("");
  return results;
}

const DecodeResult* find(const std::vector<DecodeResult>& results, DType type, bool paged, int threads) {
  for (const DecodeResult& each : results) {
    if (each.type == type && each.paged == paged && each.threads == threads) return &each;
  }
  return nullptr;
}

// Time over that of another cache, where it was timed too.
std::optional<double> time_over(const DecodeResult& result, const DecodeResult* other) {
  return other == nullptr ? std::nullopt : median_ratio(result.ms, other->ms);
}

nlohmann::ordered_json as_json(const DecodeOptions& options, const std::vector<DecodeResult>& results) {
  nlohmann::ordered_json data;
  data["schema"] = 1;
  data["machine"] = as_json(BenchMachine::here());
  data["sizes"] = {{"batch", options.batch}, {"cached", options.cached},     {"embed", options.embed},
                   {"heads", options.heads}, {"kv_heads", options.kv_heads}, {"page_size", options.page_size}};
  data["cases"] = nlohmann::ordered_json::array();
  for (const DecodeResult& result : results) {
    const DecodeResult* f32 = find(results, DType::f32, result.paged, result.threads);
    nlohmann::ordered_json each;
    each["name"] = result.name();
    each["type"] = rapt::name_of(result.type);
    each["paged"] = result.paged;
    each["threads"] = result.threads;
    each["error"] = result.error;
    put_times(result.ms, each);
    each["weight_bytes"] = result.weight_bytes;
    each["cache_bytes"] = result.cache_bytes;
    each["cache_bytes_over_f32"] =
        or_null(f32 == nullptr ? std::nullopt : std::optional(result.cache_bytes / f32->cache_bytes));
    each["gbps"] = result.gbps.median();
    each["stream_gbps"] = result.stream_gbps.median();
    each["time_over_stream"] = or_null(median_ratio(result.stream_gbps, result.gbps));
    each["time_over_f32"] = or_null(time_over(result, f32));
    each["time_over_contiguous"] = or_null(time_over(result, find(results, result.type, false, result.threads)));
    data["cases"].push_back(std::move(each));
  }
  return data;
}

void show(Page& page, const DecodeOptions& options, const std::vector<DecodeResult>& results) {
  const BenchMachine machine = BenchMachine::here();
  page.heading("rapt bench decode", fmt::format("{} · {}", machine.cpu, machine.isa));
  page.line();
  page.prose(fmt::format("one token after {} cached, batch {}, width {}, {} heads on {} kv heads, page size {}",
                         options.cached, options.batch, options.embed, options.heads, options.kv_heads,
                         options.page_size));
  std::vector<std::vector<std::string>> rows{
      {"cache", "ms", "spread", "MB", "GB/s", "read", "/read", "/contiguous", "error"}};
  for (const DecodeResult& result : results) {
    const DecodeResult* contiguous = find(results, result.type, false, result.threads);
    rows.push_back({result.name(), number(result.ms.median()), spread(result.ms),
                    number((result.weight_bytes + result.cache_bytes) / 1e6), number(result.gbps.median()),
                    number(result.stream_gbps.median()), ratio(median_ratio(result.stream_gbps, result.gbps)),
                    ratio(time_over(result, contiguous)), fmt::format("{:.1e}", result.error)});
  }
  show_table(page, rows);
  page.line();
  page.quiet(
      "Medians over rounds; ratios are taken within a round. MB: weights, keys and values, each read once. /read: time "
      "relative to a streaming read of the same bytes. error: of the output, against an f32 cache.");
}

}  // namespace

void add_bench_decode(Command& bench, DecodeOptions& options) {
  Command command = bench.below(
      "decode", "The layer decoding one token with a long KV cache, compared with a streaming read of its bytes");
  command.when_given([&options] { options.asked = true; });
  const auto size = [&](const std::string& name, std::int64_t& value, const std::string& help) {
    command.whole(name, value, kMostSize - 1, help);
  };
  size("--batch", options.batch, "Sequences (1)");
  size("--cached", options.cached, "Cached tokens per sequence (8192)");
  size("--embed", options.embed, "Embedding size (1024)");
  size("--heads", options.heads, "Query heads (16)");
  size("--kv-heads", options.kv_heads, "Key/value heads (as --heads)");
  size("--page-size", options.page_size, "Page size, in tokens (64)");
  command.choices("--type", options.types, kTypes, "Element types of the cache (f32,bf16,f16,i8)");
  command.numbers("--threads", options.threads, kMostThreads, "Threads (1)");
  command.whole("--reps", options.rounds, 100000, "Rounds; each times every cache once (9)");
  command.seconds("--min-time", options.shortest_sample,
                  "Minimum seconds per sample; a faster step is repeated (0.02)");
  command.flag("--json", options.json, "Print JSON");
  command.choice("--color", options.color, kColors, "When to use colour");
}

ExitCode run_bench_decode(const DecodeOptions& given) {
  DecodeOptions options = given;
  if (options.kv_heads == 0) options.kv_heads = options.heads;
  std::vector<DecodeResult> results;
  try {
    results = run_rounds(options);
  } catch (const Error& error) {  // the library's words for what it refuses
    show_progress("");
    throw UsageError(fmt::format("bench: {}", error.what()));
  }
  bool good = true;
  for (const DecodeResult& result : results) {
    if (result.error <= limit_of(result)) continue;
    good = false;
    fmt::print(stderr, "rapt: bench: {}: error {:.1e} exceeds the limit {:.1e}\n", result.name(), result.error,
               limit_of(result));
  }
  if (!good) return ExitCode::numbers_differ;
  if (options.json) {
    print(as_json(options, results).dump(2) + "\n");
    return ExitCode::good;
  }
  const Terminal terminal = detect_terminal(options.color);
  Page page(terminal);
  show(page, options, results);
  page.flush();
  return ExitCode::good;
}

}  // namespace rapt::cli
