#include "rapt/option_table.h"

namespace rapt {

namespace {

constexpr OptionName none(std::string_view why_not) {
  OptionName name;
  name.why_not = why_not;
  return name;
}

constexpr std::string_view kAttention = "AttentionOptions";
constexpr std::string_view kConfig = "MultiHeadAttentionConfig";
constexpr std::string_view kLayer = "LayerOptions";
constexpr std::string_view kCache = "KvCacheConfig";
constexpr std::string_view kRotary = "RotaryOptions";

// Reasons that many options have in common.
constexpr OptionName kOneCall = none("the command makes one call, and ends");
constexpr OptionName kFromFile = none("the file's shapes tell it");
constexpr OptionName kMemory = none("memory of the caller's");
constexpr OptionName kFunction = none("a function of the caller's");
constexpr OptionName kConvert = none("rapt convert writes models");
constexpr OptionName kYarn = none("the paper's values, which models keep");
constexpr OptionName kPart = none("for a part of a larger call");

constexpr OptionRow kTable[] = {
    // ---------------------------------------------------------------- attention
    {kAttention, "scale", "1/sqrt(D)", "the factor of q·k; any finite number", "scale", "scale", "--scale"},
    {kAttention, "softcap", "0: none", "scores become softcap · tanh(s / softcap)", "softcap", "softcap", "--softcap"},
    {kAttention, "masks", "none", "which keys are seen, or what is added to their scores; all apply", "masks", "mask",
     "--mask"},
    {kAttention, "causal", "false", "a query sees no key after its own position", "causal", "causal", "--causal"},
    {kAttention, "window", "open on both sides", "a query sees the keys near its own position",
     "window_left window_right", "window", "--window"},
    {kAttention, "alignment", "unnamed", "where query 0 stands among the keys", "alignment_kind alignment_values",
     "alignment", "--align --offset"},
    {kAttention, "key_lengths", "all keys", "how many keys each batch row has; the rest is never read", "key_lengths",
     "key_lengths", "--key-lengths"},
    {kAttention, "packed", "none", "several sequences end to end in one batch row",
     "packed_query_starts packed_key_starts", "packed", "--query-starts"},
    {kAttention, "pages", "none", "keys and values in pages, by a table", "pages_table pages_per_row pages_keys",
     "pages", kOneCall},
    {kAttention, "key_scales", "none", "the scale of each key in i8", "key_scales", "key_scales",
     none("array files hold no keys in i8")},
    {kAttention, "value_scales", "none", "the scale of each value in i8", "value_scales", "value_scales",
     none("array files hold no values in i8")},
    {kAttention, "alibi_slopes", "none", "ALiBi: a key at distance n scores n · slope less", "alibi_slopes",
     "alibi_slopes", "--alibi-slopes"},
    {kAttention, "sinks", "none", "(Hq): exp(sink) joins each head's softmax sum, and has no value", "sinks", "sinks",
     "--sinks"},
    {kAttention, "dropout", "rate 0: none", "weights dropped, as a pure function of seed and place",
     "dropout_rate dropout_seed", "dropout", "--dropout"},
    {kAttention, "engine", "automatic", "who computes: the fastest for the type, cpu, or reference", "engine", "engine",
     "--engine"},
    {kAttention, "threads", "0: thread_count()", "how many threads at most", "threads", "threads", "--threads"},
    {kAttention, "parallel_for", "the library's pool", "a thread pool of the caller's", "parallel_for",
     none("the library's pool runs without the interpreter lock"), kFunction},
    {kAttention, "workspace", "allocated for the call", "memory for the call, so that it takes none", "workspace",
     kMemory, kMemory},

    {"Mask", "kind", "keep", "what the numbers mean: keep, drop, add or fill", "kind", "kind", "--mask-true"},
    {"Mask", "view", "undefined", "(Lq, Lk), or what broadcasts to (B, Hq, Lq, Lk)", "view", "array", "--mask"},
    {"Mask", "value", "0", "what a fill puts in the place of the score", "value", "value", "--mask-fill"},

    {"Alignment", "kind", "unnamed", "top_left, bottom_right, or an offset", "alignment_kind", "alignment", "--align"},
    {"Alignment", "values", "none", "the position of query 0: one for all batch rows, or one for each",
     "alignment_values", "alignment", "--offset"},

    {"Window", "left", "open", "how many keys before its own position a query sees", "window_left", "window",
     "--window"},
    {"Window", "right", "open", "how many keys after its own position a query sees", "window_right", "window",
     "--window"},

    {"PackedSequences", "query_starts", "none", "where each sequence's queries begin, and where the last ends",
     "packed_query_starts", "packed", "--query-starts"},
    {"PackedSequences", "key_starts", "none", "the same of the keys", "packed_key_starts", "packed", "--key-starts"},

    {"Pages", "table", "none", "(B, per_row): which page holds which keys of a row", "pages_table", "table", kOneCall},
    {"Pages", "per_row", "0", "pages of a row in the table", "pages_per_row", none("the table has rows there"),
     kOneCall},
    {"Pages", "keys", "0: all that the pages hold", "Lk, which masks and weights have", "pages_keys", "keys", kOneCall},

    {"Dropout", "rate", "0", "the share of weights that are dropped", "dropout_rate", "rate", "--dropout"},
    {"Dropout", "seed", "0", "which weights those are", "dropout_seed", "seed", "--seed"},
    {"Dropout", "batch_start", "0", "the first batch row's place in a larger batch", "dropout_batch_start",
     "batch_start", kPart},
    {"Dropout", "head_start", "0", "the first head's place among all heads", "dropout_head_start", "head_start", kPart},
    {"Dropout", "query_start", "0", "the first query's place in a longer sequence", "dropout_query_start",
     "query_start", kPart},

    // ---------------------------------------------------------------- the layer
    {kConfig, "embed_size", "0: must be given", "E: numbers in a token of the query", "embed_size", "embed_dim",
     kFromFile},
    {kConfig, "heads", "0: must be given", "Hq, of the whole layer", "heads", "num_heads", "--heads"},
    {kConfig, "kv_heads", "0: Hq", "Hkv, of which Hq is a multiple", "kv_heads", "kv_heads", "--kv-heads"},
    {kConfig, "head_size", "0: E / Hq", "D", "head_size", "head_size", kFromFile},
    {kConfig, "key_size", "0: E", "numbers in a token of the key", "key_size", "kdim", kFromFile},
    {kConfig, "value_size", "0: E", "numbers in a token of the value", "value_size", "vdim", kFromFile},
    {kConfig, "output_size", "0: E", "numbers in a token of the output", "output_size", "output_size", kFromFile},
    {kConfig, "bias", "true", "the projections of q, k and v have one", "bias", "bias", kFromFile},
    {kConfig, "output_bias", "as bias", "the output projection has one", "output_bias", "output_bias", kFromFile},
    {kConfig, "separate_projections", "false", "a weight each for q, k and v, not one", "separate_projections",
     "separate_projections", kFromFile},
    {kConfig, "add_bias_kv", "false", "one more key and value, learned", "add_bias_kv", "add_bias_kv", kFromFile},
    {kConfig, "add_zero_attention", "false", "one more key and value, of zeros", "add_zero_attention", "add_zero_attn",
     "--add-zero-attention"},
    {kConfig, "dropout", "0", "the rate for the weights, in training", "dropout", "dropout", "--dropout"},
    {kConfig, "output_dropout", "0", "the rate for the output, in training", "output_dropout", "output_dropout",
     none("of training; --dropout shows what it does")},
    {kConfig, "batch_first", "false", "(B, L, E); else (L, B, E)", "batch_first", "batch_first", "--length-first"},
    {kConfig, "context_length", "0: none", "a stored causal mask for so many tokens", "context_length",
     "context_length", kFromFile},
    {kConfig, "rotary", "none", "q and k are turned by their position", "rotary", "rotary", "--rotary"},
    {kConfig, "slice", "the whole layer", "a part of the heads", "slice_index slice_count", "slice",
     none("for a layer spread over several processes")},
    {kConfig, "dtype", "f32", "of the parameters: f32, bf16, f16 or f64", "dtype", "dtype", "--dtype"},

    {"HeadSlice", "index", "0", "which part", "slice_index", "slice",
     none("for a layer spread over several processes")},
    {"HeadSlice", "count", "1", "of how many equal parts", "slice_count", "slice",
     none("for a layer spread over several processes")},

    {kRotary, "base", "10000", "the base of the frequencies", "base", "base", "--rotary-base"},
    {kRotary, "size", "0: the whole head", "how many numbers of a head are turned", "size", "size", "--rotary-size"},
    {kRotary, "pairs", "half_split", "which numbers form a pair: half_split or interleaved", "pairs", "pairs",
     "--rotary"},
    {kRotary, "scaling", "none", "how a model reaches past the length it was trained on", "scaling_kind scaling_factor",
     "scaling", "--rotary-scaling"},
    {kRotary, "max_positions", "0", "positions with a table of angles: the same bits, sooner", "max_positions",
     "max_positions", kOneCall},
    {kRotary, "threads", "0: thread_count()", "that make the table, at most", "threads",
     none("the library's own make the table"), kOneCall},
    {kRotary, "parallel_for", "the library's pool", "a thread pool of the caller's", "parallel_for",
     none("the library's pool makes the table"), kFunction},

    {"RotaryScaling", "kind", "none", "none, linear, ntk, dynamic, yarn or llama3", "scaling_kind", "kind",
     "--rotary-scaling"},
    {"RotaryScaling", "factor", "1", "by how much further", "scaling_factor", "factor", "--rotary-scaling"},
    {"RotaryScaling", "original_length", "0", "positions it was trained on: dynamic, yarn and llama3",
     "scaling_original_length", "original_length", "--rotary-scaling"},
    {"RotaryScaling", "length", "0", "tokens of the sequence at hand: dynamic", "scaling_length", "length",
     "--rotary-scaling"},
    {"RotaryScaling", "ramp", "as below", "what yarn has besides", "scaling_ramp_beta_fast scaling_ramp_beta_slow",
     "beta_fast beta_slow attention_factor truncate", kYarn},
    {"RotaryScaling", "low_freq_factor", "1", "pairs that turn less often are divided by the factor: llama3",
     "scaling_low_freq_factor", "low_freq_factor", "--rotary-scaling"},
    {"RotaryScaling", "high_freq_factor", "4", "pairs that turn as often keep their frequency: llama3",
     "scaling_high_freq_factor", "high_freq_factor", "--rotary-scaling"},

    {"RotaryScaling::Yarn", "beta_fast", "32", "pairs that turn more often keep their frequency",
     "scaling_ramp_beta_fast", "beta_fast", kYarn},
    {"RotaryScaling::Yarn", "beta_slow", "1", "pairs that turn less often are divided by the factor",
     "scaling_ramp_beta_slow", "beta_slow", kYarn},
    {"RotaryScaling::Yarn", "attention_factor", "0.1 · ln(factor) + 1", "multiplies cos and sin",
     "scaling_ramp_attention_factor", "attention_factor", kYarn},
    {"RotaryScaling::Yarn", "truncate", "true", "the ends of the ramp are whole numbers", "scaling_ramp_truncate",
     "truncate", kYarn},

    {kLayer, "attention", "all as above", "every option of attention", "attention",
     none("each of them is a keyword of its own"), none("each of them has a flag of its own")},
    {kLayer, "weights", "none", "which weights come back: none, their mean over heads, or per head", "weights",
     "need_weights average_attn_weights", "--weights --weights-of"},
    {kLayer, "training", "false", "dropout is on", "training",
     none("the layer's own state, as in PyTorch: layer.train()"), "--dropout"},
    {kLayer, "position", "0", "of the first token, for rotary embedding", "position", "position", "--position"},
    {kLayer, "cache", "none", "keys and values of earlier calls", "cache", "cache", kOneCall},
    {kLayer, "sequences", "sequence b for row b", "which sequence of the cache each batch row is", "sequences",
     "sequences", kOneCall},
    {kLayer, "workspace", "allocated for the call", "memory that calls reuse", "workspace", kMemory, kMemory},
    {kLayer, "keep", "none", "where forward leaves what backward needs", "keep", "keep", kOneCall},

    // ---------------------------------------------------------------- files
    {"LoadOptions", "prefix", "empty: the only layer there", "where the layer's names begin", "prefix", "prefix",
     "--prefix"},
    {"LoadOptions", "heads", "0: as the file notes", "Hq, which no shape tells", "heads", "heads", "--heads"},
    {"LoadOptions", "kv_heads", "0: as the shapes have", "Hkv", "kv_heads", "kv_heads", "--kv-heads"},
    {"LoadOptions", "batch_first", "false", "(B, L, E); else (L, B, E)", "batch_first", "batch_first",
     "--length-first"},
    {"LoadOptions", "add_zero_attention", "false", "one more key and value, of zeros", "add_zero_attention",
     "add_zero_attention", "--add-zero-attention"},
    {"LoadOptions", "dropout", "0", "the rate for the weights, in training", "dropout", "dropout", "--dropout"},
    {"LoadOptions", "rotary", "none", "q and k are turned by their position", "rotary", "rotary", "--rotary"},
    {"LoadOptions", "dtype", "the file's", "of the parameters", "dtype", "dtype", "--dtype"},

    {"SaveOptions", "family", "torch", "whose names the tensors get", "family", "family", kConvert},
    {"SaveOptions", "prefix", "empty", "what comes before the names", "prefix", "prefix", kConvert},
    {"SaveOptions", "packed", "as the family has it", "q, k and v in one tensor, or in one each", "packed", "packed",
     kConvert},
    {"SaveOptions", "dtype", "the layer's", "to round the parameters to", "dtype", "dtype", kConvert},

    // ---------------------------------------------------------------- the cache
    {kCache, "kv_heads", "1", "Hkv", "kv_heads", "kv_heads", kOneCall},
    {kCache, "head_size", "0: must be given", "D", "head_size", "head_size", kOneCall},
    {kCache, "value_size", "0: head_size", "Dv", "value_size", "value_size", kOneCall},
    {kCache, "dtype", "f32", "f32, bf16, f16, or i8 with a scale for each token and head", "dtype", "dtype", kOneCall},
    {kCache, "sequences", "1", "how many at once, at most", "sequences", "sequences", kOneCall},
    {kCache, "length", "0: as many as the pages hold", "tokens of a sequence, at most", "length", "length", kOneCall},
    {kCache, "page_size", "0: no pages", "tokens of a page, a power of two from 16", "page_size", "page_size",
     kOneCall},
    {kCache, "pages", "0", "of all sequences together", "pages", "pages", kOneCall},
};

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

}  // namespace rapt
