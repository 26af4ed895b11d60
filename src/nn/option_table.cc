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

// Reasons that many options share.
constexpr OptionName kOneCall = none("the command runs a single call");
constexpr OptionName kFromFile = none("read from the shapes in the file");
constexpr OptionName kMemory = none("the library allocates it");
constexpr OptionName kFunction = none("a function cannot be given on the command line");
constexpr OptionName kConvert = none("rapt convert writes model files");
constexpr OptionName kYarn = none("fixed to the values of the paper, which models use");
constexpr OptionName kOnCpu = none("tensors are on the CPU");
constexpr OptionName kDefaultStream = none("calls run on the default stream");
constexpr OptionName kPart = none("only for part of a larger call");

constexpr OptionRow kTable[] = {
    // ---------------------------------------------------------------- attention
    {kAttention, "scale", "1/sqrt(D)", "softmax scale: q·k is multiplied by it; any finite number", "scale", "scale",
     "--scale"},
    {kAttention, "softcap", "0: none", "scores become softcap · tanh(s / softcap)", "softcap", "softcap", "--softcap"},
    {kAttention, "masks", "none",
     "which keys a query sees, what is added to its scores, or which scores are replaced by a value; all masks apply",
     "masks", "mask", "--mask"},
    {kAttention, "causal", "false", "a query sees no key after its own position", "causal", "causal", "--causal"},
    {kAttention, "window", "no limit", "sliding window: a query sees only keys near its own position",
     "window_left window_right window_first", "window", "--window --window-first"},
    {kAttention, "alignment", "unnamed", "position of query 0 among the keys", "alignment_kind alignment_values",
     "alignment", "--align --offset"},
    {kAttention, "key_lengths", "all keys", "number of valid keys in each batch row; later keys are never read",
     "key_lengths", "key_lengths", "--key-lengths"},
    {kAttention, "packed", "none", "several sequences, concatenated in one batch row",
     "packed_query_starts packed_key_starts", "packed", "--query-starts"},
    {kAttention, "pages", "none", "paged keys and values, located by a page table",
     "pages_table pages_per_row pages_keys", "pages", kOneCall},
    {kAttention, "key_scales", "none", "the dequantization scale of each int8 key", "key_scales", "key_scales",
     none("array files cannot store int8 keys")},
    {kAttention, "value_scales", "none", "the dequantization scale of each int8 value", "value_scales", "value_scales",
     none("array files cannot store int8 values")},
    {kAttention, "alibi_slopes", "none", "ALiBi: subtracts n · slope from the score of a key at distance n",
     "alibi_slopes", "alibi_slopes", "--alibi-slopes"},
    {kAttention, "sinks", "none",
     "(Hq): attention sinks; exp(sink) is added to each head's softmax sum, without a value", "sinks", "sinks",
     "--sinks"},
    {kAttention, "dropout", "rate 0: none", "dropout of weights, a pure function of seed and position",
     "dropout_rate dropout_seed", "dropout", "--dropout"},
    {kAttention, "engine", "automatic",
     "the engine: automatic (the fastest for the device and type), cpu, reference or cuda", "engine", "engine",
     "--engine"},
    {kAttention, "threads", "0: thread_count()", "maximum number of threads", "threads", "threads", "--threads"},
    {kAttention, "parallel_for", "the library's pool", "the caller's thread pool", "parallel_for",
     none("worker threads run without the GIL and cannot call Python"), kFunction},
    {kAttention, "workspace", "allocated for the call", "memory for the call, which then allocates nothing",
     "workspace", kMemory, kMemory},
    {kAttention, "stream", "the default stream", "for tensors on a GPU: the stream that the call runs on",
     kDefaultStream, kOnCpu, kOnCpu},

    {"Mask", "kind", "keep", "the meaning of the mask: keep, drop, add or fill", "kind", "kind", "--mask-true"},
    {"Mask", "view", "undefined", "(Lq, Lk), or broadcastable to (B, Hq, Lq, Lk)", "view", "array", "--mask"},
    {"Mask", "value", "0", "the score that a fill mask sets", "value", "value", "--mask-fill"},

    {"Alignment", "kind", "unnamed", "top_left, bottom_right, or an offset", "alignment_kind", "alignment", "--align"},
    {"Alignment", "values", "none", "the position of query 0: one for all batch rows, or one for each",
     "alignment_values", "alignment", "--offset"},

    {"Window", "left", "no limit", "number of keys that a query sees before its own position", "window_left", "window",
     "--window"},
    {"Window", "right", "no limit", "number of keys that a query sees after its own position", "window_right", "window",
     "--window"},
    {"Window", "first", "0", "number of first keys that stay visible outside the window (attention sinks)",
     "window_first", "window", "--window-first"},

    {"PackedSequences", "query_starts", "none",
     "index of each sequence's first query, then the total number of queries", "packed_query_starts", "packed",
     "--query-starts"},
    {"PackedSequences", "key_starts", "none", "the same for the keys", "packed_key_starts", "packed", "--key-starts"},

    {"Pages", "table", "none",
     "(B, per_row): the page table; entry n of a row is the page of the keys from n · page size on", "pages_table",
     "table", kOneCall},
    {"Pages", "per_row", "0", "pages per batch row in the table", "pages_per_row",
     none("the table is two-dimensional there"), kOneCall},
    {"Pages", "keys", "0: the capacity of the pages", "Lk, the number of keys in masks and weights", "pages_keys",
     "keys", kOneCall},

    {"Dropout", "rate", "0", "the fraction of weights that are dropped", "dropout_rate", "rate", "--dropout"},
    {"Dropout", "seed", "0", "the seed", "dropout_seed", "seed", "--seed"},
    {"Dropout", "batch_start", "0", "index of the first batch row in a larger batch", "dropout_batch_start",
     "batch_start", kPart},
    {"Dropout", "head_start", "0", "index of the first head among all heads", "dropout_head_start", "head_start",
     kPart},
    {"Dropout", "query_start", "0", "index of the first query in a longer sequence", "dropout_query_start",
     "query_start", kPart},

    // ---------------------------------------------------------------- the layer
    {kConfig, "embed_size", "0: required", "E: embedding size of the query", "embed_size", "embed_dim", kFromFile},
    {kConfig, "heads", "0: required", "Hq: query heads of the whole layer", "heads", "num_heads", "--heads"},
    {kConfig, "kv_heads", "0: Hq", "Hkv: key/value heads; must divide Hq", "kv_heads", "kv_heads", "--kv-heads"},
    {kConfig, "head_size", "0: E / Hq", "D: size of a head", "head_size", "head_size", kFromFile},
    {kConfig, "key_size", "0: E", "embedding size of the key", "key_size", "kdim", kFromFile},
    {kConfig, "value_size", "0: E", "embedding size of the value", "value_size", "vdim", kFromFile},
    {kConfig, "output_size", "0: E", "embedding size of the output", "output_size", "output_size", kFromFile},
    {kConfig, "bias", "true", "bias in the projections of q, k and v", "bias", "bias", kFromFile},
    {kConfig, "output_bias", "as bias", "bias in the output projection", "output_bias", "output_bias", kFromFile},
    {kConfig, "separate_projections", "false", "separate weights for q, k and v instead of one packed weight",
     "separate_projections", "separate_projections", kFromFile},
    {kConfig, "add_bias_kv", "false", "append a learned key and value", "add_bias_kv", "add_bias_kv", kFromFile},
    {kConfig, "add_zero_attention", "false", "append a key and value of zeros", "add_zero_attention", "add_zero_attn",
     "--add-zero-attention"},
    {kConfig, "dropout", "0", "dropout rate of the weights, in training", "dropout", "dropout", "--dropout"},
    {kConfig, "output_dropout", "0", "dropout rate of the output, in training", "output_dropout", "output_dropout",
     none("training only; --dropout drops weights")},
    {kConfig, "batch_first", "false", "inputs are (B, L, E); if false, (L, B, E)", "batch_first", "batch_first",
     "--length-first"},
    {kConfig, "context_length", "0: none", "length of the stored causal mask", "context_length", "context_length",
     kFromFile},
    {kConfig, "rotary", "none", "rotary position embedding (RoPE) of q and k", "rotary", "rotary", "--rotary"},
    {kConfig, "slice", "the whole layer", "a subset of the heads", "slice_index slice_count", "slice",
     none("for layers split over several processes")},
    {kConfig, "dtype", "f32", "type of the parameters: f32, bf16, f16 or f64", "dtype", "dtype", "--dtype"},

    {"HeadSlice", "index", "0", "index of this slice", "slice_index", "slice",
     none("for layers split over several processes")},
    {"HeadSlice", "count", "1", "number of equal slices", "slice_count", "slice",
     none("for layers split over several processes")},

    {kRotary, "base", "10000", "the base of the frequencies", "base", "base", "--rotary-base"},
    {kRotary, "size", "0: the whole head", "number of rotated dimensions per head", "size", "size", "--rotary-size"},
    {kRotary, "pairs", "half_split", "how dimensions are paired: half_split or interleaved", "pairs", "pairs",
     "--rotary"},
    {kRotary, "scaling", "none", "context extension beyond the trained length", "scaling_kind scaling_factor",
     "scaling", "--rotary-scaling"},
    {kRotary, "max_positions", "0", "number of positions with precomputed angles: same results, faster",
     "max_positions", "max_positions", kOneCall},
    {kRotary, "threads", "0: thread_count()", "maximum number of threads that compute the table", "threads",
     none("the library's threads compute the table"), kOneCall},
    {kRotary, "parallel_for", "the library's pool", "the caller's thread pool", "parallel_for",
     none("the library's pool computes the table"), kFunction},

    {"RotaryScaling", "kind", "none", "none, linear, ntk, dynamic, yarn or llama3", "scaling_kind", "kind",
     "--rotary-scaling"},
    {"RotaryScaling", "factor", "1", "extension factor", "scaling_factor", "factor", "--rotary-scaling"},
    {"RotaryScaling", "original_length", "0", "trained length (dynamic, yarn and llama3)", "scaling_original_length",
     "original_length", "--rotary-scaling"},
    {"RotaryScaling", "length", "0", "length of the current sequence (dynamic)", "scaling_length", "length",
     "--rotary-scaling"},
    {"RotaryScaling", "ramp", "as in RotaryScaling::Yarn", "further parameters of yarn",
     "scaling_ramp_beta_fast scaling_ramp_beta_slow", "beta_fast beta_slow attention_factor truncate", kYarn},
    {"RotaryScaling", "low_freq_factor", "1",
     "frequencies with fewer rotations than this over the trained length are divided by the factor (llama3)",
     "scaling_low_freq_factor", "low_freq_factor", "--rotary-scaling"},
    {"RotaryScaling", "high_freq_factor", "4", "frequencies with at least this many rotations are unchanged (llama3)",
     "scaling_high_freq_factor", "high_freq_factor", "--rotary-scaling"},

    {"RotaryScaling::Yarn", "beta_fast", "32",
     "frequencies with more rotations than this over the trained length are unchanged", "scaling_ramp_beta_fast",
     "beta_fast", kYarn},
    {"RotaryScaling::Yarn", "beta_slow", "1", "frequencies with fewer rotations than this are divided by the factor",
     "scaling_ramp_beta_slow", "beta_slow", kYarn},
    {"RotaryScaling::Yarn", "attention_factor", "0.1 · ln(factor) + 1", "multiplies cos and sin",
     "scaling_ramp_attention_factor", "attention_factor", kYarn},
    {"RotaryScaling::Yarn", "truncate", "true", "round the ends of the ramp to integers", "scaling_ramp_truncate",
     "truncate", kYarn},

    {kLayer, "attention", "all defaults", "every option of attention", "attention",
     none("each option is a separate keyword"), none("each option has its own flag")},
    {kLayer, "weights", "none", "which weights to return: none, their mean over heads, or those of each head",
     "weights", "need_weights average_attn_weights", "--weights --weights-of"},
    {kLayer, "training", "false", "apply dropout", "training",
     none("the layer's own state, as in PyTorch: layer.train()"), "--dropout"},
    {kLayer, "position", "0", "position of the first token, for rotary embedding", "position", "position",
     "--position"},
    {kLayer, "cache", "none", "KV cache: keys and values of earlier calls", "cache", "cache", kOneCall},
    {kLayer, "sequences", "sequence b for row b", "the cache sequence of each batch row", "sequences", "sequences",
     kOneCall},
    {kLayer, "workspace", "allocated for the call", "memory that calls can reuse", "workspace", kMemory, kMemory},
    {kLayer, "keep", "none", "activations that forward keeps for backward", "keep", "keep", kOneCall},

    // ---------------------------------------------------------------- files
    {"LoadOptions", "prefix", "empty: the only layer in the file", "prefix of the layer's tensor names", "prefix",
     "prefix", "--prefix"},
    {"LoadOptions", "heads", "0: from the metadata of the file", "Hq: query heads, which the shapes do not determine",
     "heads", "heads", "--heads"},
    {"LoadOptions", "kv_heads", "0: from the shapes", "Hkv: key/value heads", "kv_heads", "kv_heads", "--kv-heads"},
    {"LoadOptions", "batch_first", "false", "inputs are (B, L, E); if false, (L, B, E)", "batch_first", "batch_first",
     "--length-first"},
    {"LoadOptions", "add_zero_attention", "false", "append a key and value of zeros", "add_zero_attention",
     "add_zero_attention", "--add-zero-attention"},
    {"LoadOptions", "dropout", "0", "dropout rate of the weights, in training", "dropout", "dropout", "--dropout"},
    {"LoadOptions", "rotary", "none", "rotary position embedding (RoPE) of q and k", "rotary", "rotary", "--rotary"},
    {"LoadOptions", "dtype", "as in the file", "type of the parameters", "dtype", "dtype", "--dtype"},

    {"SaveOptions", "family", "torch", "naming scheme of the tensors", "family", "family", kConvert},
    {"SaveOptions", "prefix", "empty", "prefix of the tensor names", "prefix", "prefix", kConvert},
    {"SaveOptions", "packed", "as usual for the family", "store q, k and v in one tensor, or separately", "packed",
     "packed", kConvert},
    {"SaveOptions", "dtype", "as in the layer", "type to convert the parameters to", "dtype", "dtype", kConvert},

    // ---------------------------------------------------------------- the cache
    {kCache, "kv_heads", "1", "Hkv: key/value heads", "kv_heads", "kv_heads", kOneCall},
    {kCache, "head_size", "0: required", "D: size of a head", "head_size", "head_size", kOneCall},
    {kCache, "value_size", "0: head_size", "Dv: size of a value head", "value_size", "value_size", kOneCall},
    {kCache, "dtype", "f32", "element type: f32, bf16, f16, or i8 with a scale per token and head", "dtype", "dtype",
     kOneCall},
    {kCache, "sequences", "1", "maximum number of sequences", "sequences", "sequences", kOneCall},
    {kCache, "length", "0: the capacity of the pages", "maximum tokens per sequence", "length", "length", kOneCall},
    {kCache, "page_size", "0: no pages", "tokens per page: a power of two, at least 16", "page_size", "page_size",
     kOneCall},
    {kCache, "pages", "0", "number of pages, shared by all sequences", "pages", "pages", kOneCall},
};

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

}  // namespace rapt
