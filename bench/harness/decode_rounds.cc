#include "bench/harness/decode_rounds.h"

#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "bench/harness/numbers.h"
#include "bench/harness/stream.h"
#include "rapt/multi_head_attention.h"

namespace rapt::bench {
namespace {

MultiHeadAttentionConfig layer_config(const DecodePlan& plan) {
  MultiHeadAttentionConfig config;
  config.embed_size = plan.embed, config.heads = plan.heads, config.kv_heads = plan.kv_heads;
  config.batch_first = true;
  return config;
}

// A filled cache of one kind, and the timed step: append a token, attend, and roll back.
class Decoder {
 public:
  Decoder(const DecodePlan& plan, const MultiHeadAttention& layer, DecodeResult& result)
      : plan_(plan),
        layer_(layer),
        cache_(cache_config(plan, layer, result)),
        ids_(static_cast<std::size_t>(plan.batch)),
        x_(numbers(plan.batch * plan.embed, 3, DType::f32)),
        out_({plan.batch, 1, plan.embed}) {
    const std::int64_t heads = layer.config().kv_heads, size = layer.config().head_size;
    const Dims shape = {1, heads, plan.cached, size};
    const Tensor k = numbers(heads * plan.cached * size, 1, DType::f32), v = numbers(k.count(), 2, DType::f32);
    for (std::int64_t& id : ids_) {
      id = cache_.add();
      cache_.append(std::span(&id, 1), k.view().reshape(shape), v.view().reshape(shape));
    }
    const std::int64_t token_bytes =
        result.type == DType::i8 ? size + 4 : size * static_cast<std::int64_t>(size_of(result.type));
    result.cache_bytes = static_cast<double>(2 * plan.batch * heads * (plan.cached + 1) * token_bytes);
    const std::int64_t matrices = (2 * plan.heads + 2 * heads) * size * plan.embed;
    result.weight_bytes = static_cast<double>(matrices * 4);
    call_.attention.causal = true, call_.attention.threads = result.threads;
    call_.cache = &cache_, call_.sequences = ids_, call_.workspace = &workspace_;
  }

  void step() {
    layer_.forward({out_, {}}, x_.view().reshape({plan_.batch, 1, plan_.embed}), {}, {}, call_);
    for (const std::int64_t id : ids_) cache_.truncate(id, plan_.cached);
  }
  const Tensor& out() const { return out_; }

 private:
  static KvCacheConfig cache_config(const DecodePlan& plan, const MultiHeadAttention& layer,
                                    const DecodeResult& result) {
    KvCacheConfig config;
    config.kv_heads = layer.config().kv_heads, config.head_size = layer.config().head_size;
    config.dtype = result.type, config.sequences = plan.batch;
    if (result.paged) {
      config.page_size = plan.page_size;
      config.pages = plan.batch * (plan.cached / plan.page_size + 1);
    } else {
      config.length = plan.cached + 1;
    }
    return config;
  }

  const DecodePlan& plan_;
  const MultiHeadAttention& layer_;
  KvCache cache_;
  std::vector<std::int64_t> ids_;
  Tensor x_, out_;
  LayerWorkspace workspace_;
  LayerOptions call_;
};

}  // namespace

std::string DecodeResult::name() const {
  return fmt::format("{} {}{}", rapt::name_of(type), paged ? "pages" : "contiguous",
                     threads == 1 ? "" : fmt::format(" t{}", threads));
}

double DecodeResult::limit() const {
  switch (type) {
    case DType::bf16: return 1e-2;
    case DType::f16: return 1e-3;
    case DType::i8: return 1e-2;
    default: return 0.0;
  }
}

std::vector<DecodeResult> run_decode_rounds(const DecodePlan& plan) {
  const MultiHeadAttention layer(layer_config(plan), 1);
  std::vector<DecodeResult> results;
  std::vector<std::unique_ptr<Decoder>> decoders;
  std::vector<FastestRead> reads;
  std::vector<std::int64_t> repeats;
  DecodeResult plain;
  Decoder reference(plan, layer, plain);
  reference.step();
  for (const std::int64_t threads : plan.threads) {
    for (const DType type : plan.types) {
      for (const bool paged : {false, true}) {
        results.push_back({.type = type, .paged = paged, .threads = static_cast<int>(threads)});
        DecodeResult& result = results.back();
        plan.progress("filling " + result.name());
        decoders.push_back(std::make_unique<Decoder>(plan, layer, result));
        Decoder& decoder = *decoders.back();
        repeats.push_back(repeats_for(plan.shortest_sample, [&] { decoder.step(); }));
        result.error = relative_error(decoder.out(), reference.out());
        // One streaming read serves both kinds of cache, which have the same number of bytes.
        if (!paged)
          reads.emplace_back(static_cast<std::size_t>(result.weight_bytes + result.cache_bytes), result.threads);
      }
    }
  }
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    for (std::size_t turn = 0; turn < results.size(); ++turn) {
      // Every other round runs in reverse order, because a case that follows a large read finds less of its data in
      // cache.
      const std::size_t n = round % 2 == 0 ? turn : results.size() - 1 - turn;
      DecodeResult& result = results[n];
      plan.progress(fmt::format("round {} of {}: {}", round + 1, plan.rounds, result.name()));
      const double each = seconds_of_each(repeats[n], [&] { decoders[n]->step(); });
      result.ms.add(each * 1e3);
      result.gbps.add((result.weight_bytes + result.cache_bytes) / each / 1e9);
      result.stream_gbps.add(reads[n / 2].gbps(repeats[n]));
    }
  }
  return results;
}

}  // namespace rapt::bench
