#include "wording.h"

#include <cctype>
#include <span>

namespace rapt::python {

namespace {

struct Wording {
  std::string_view cpp;
  std::string_view python;
};

// The first match is used. Each matches whole words: "heads is" does not match in "kv_heads is".
constexpr Wording kNames[] = {
    {"MultiHeadAttention::", "MultiheadAttention."},
    {"MultiHeadAttention", "MultiheadAttention"},
    {"KvCache::", "KvCache."},
    {"Mask::", "Mask."},
    {"Alignment::top_left()", "'top_left'"},
    {"Alignment::bottom_right()", "'bottom_right'"},
    {"Stage::weights", "'weights'"},
    {"Stage::dropped_weights", "'dropped_weights'"},
    {"NpyOptions::integers_as", "integers_as"},
};

constexpr Wording kWords[] = {
    {"f32", "float32"},
    {"f64", "float64"},
    {"bf16", "bfloat16"},
    {"f16", "float16"},
    {"i8", "int8"},
    {"masks[", "mask["},
    {"].of.", "]."},
    {"].to", "].out"},
    {"].from", "].array"},
    {"unsqueeze(1)", "mask[:, None]"},
    {"unsqueeze(0)", "mask[None]"},
    {"leave it unset for no limit", "None means no limit"},
    {"mask_of_heads: mask has", "MultiheadAttention.forward: attn_mask has"},
    {"where pages.per_row is 1", "where a row of pages.table has one page"},
};

// Arguments of the layer have PyTorch's names, and the options of its attention are keywords as well.
constexpr Wording kLayerWords[] = {
    {"MultiHeadAttention: heads", "MultiheadAttention: num_heads"},
    {"multiple of heads", "multiple of num_heads"},
    {"divide heads", "divide num_heads"},
    {"heads is", "num_heads is"},
    {"embed_size", "embed_dim"},
    {"key_size", "kdim"},
    {"value_size", "vdim"},
    {"add_zero_attention", "add_zero_attn"},
    {"the layer's rate is set in config.dropout", "pass dropout= to the constructor"},
    {"attention.masks[", "mask["},
    {"use mask_of_batch for (B, Lq, Lk) or mask_of_heads for PyTorch's (B·Hq, Lq, Lk)",
     "make (B, Lq, Lk) four-dimensional by mask[:, None], or give PyTorch's (B·Hq, Lq, Lk) as attn_mask"},
    {"attention.", ""},
};

bool in_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

const Wording* found_at(std::string_view text, std::size_t place, std::span<const Wording> table) {
  if (place > 0 && in_a_word(text[place - 1]) && in_a_word(text[place])) return nullptr;
  for (const Wording& wording : table) {
    if (!text.substr(place).starts_with(wording.cpp)) continue;
    const std::size_t end = place + wording.cpp.size();
    if (end == text.size() || !in_a_word(wording.cpp.back()) || !in_a_word(text[end])) return &wording;
  }
  return nullptr;
}

std::string reworded(std::string_view text, std::initializer_list<std::span<const Wording>> tables) {
  std::string result;
  bool quoted = false;
  for (std::size_t place = 0; place < text.size();) {
    const Wording* wording = nullptr;
    if (text[place] == '"') quoted = !quoted;
    for (const std::span<const Wording> table : tables) {
      if (!quoted && wording == nullptr) wording = found_at(text, place, table);
    }
    if (wording != nullptr) {
      result += wording->python;
      place += wording->cpp.size();
    } else {
      result += text[place++];
    }
  }
  return result;
}

}  // namespace

std::string in_python(std::string_view text) {
  // MultiheadAttention.load has the library's names for its arguments.
  const bool constructor_or_call =
      text.starts_with("MultiHeadAttention") && !text.starts_with("MultiHeadAttention::load");
  if (constructor_or_call) return reworded(text, {kLayerWords, kWords, kNames});
  return reworded(text, {kWords, kNames});
}

std::string file_error_in_python(std::string_view text) { return reworded(text, {kNames}); }

}  // namespace rapt::python
