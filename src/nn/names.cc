#include "nn/names.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/text.h"

namespace rapt {

namespace {

constexpr std::array<std::pair<NameFamily, std::string_view>, 10> kFamilies{{{NameFamily::torch, "torch"},
                                                                             {NameFamily::w_q, "W_q"},
                                                                             {NameFamily::w_query, "W_query"},
                                                                             {NameFamily::q_linear, "q_linear"},
                                                                             {NameFamily::wq, "wq"},
                                                                             {NameFamily::q_proj, "q_proj"},
                                                                             {NameFamily::query, "query"},
                                                                             {NameFamily::to_q, "to_q"},
                                                                             {NameFamily::qkv, "qkv"},
                                                                             {NameFamily::c_attn, "c_attn"}}};
constexpr std::array<NameFamily, kFamilies.size()> kFamilyList = [] {
  std::array<NameFamily, kFamilies.size()> list{};
  for (std::size_t n = 0; n < list.size(); ++n) list[n] = kFamilies[n].first;
  return list;
}();

}  // namespace

std::span<const NameFamily> name_families() { return kFamilyList; }

std::string_view name_of(NameFamily family) {
  for (const auto& [value, name] : kFamilies) {
    if (value == family) return name;
  }
  return "?";
}

std::optional<NameFamily> name_family(std::string_view name) {
  for (const auto& [value, known] : kFamilies) {
    if (known == name) return value;
  }
  return {};
}

std::vector<std::int64_t> FoundLayer::possible_heads() const {
  std::vector<std::int64_t> list;
  for (std::int64_t heads = 1; heads <= query_width; ++heads) {
    if (query_width % heads != 0) continue;
    const std::int64_t head_size = query_width / heads;
    if (key_width % head_size == 0 && heads % (key_width / head_size) == 0) list.push_back(heads);
  }
  return list;
}

namespace nn {

namespace {

using F = NameFamily;

// Each row begins with the family and the names of qkv, q, k, v and out. If two spellings match, the first one is used.
constexpr std::array kSpellings{
    Spelling{F::torch, "in_proj", "", "", "", "out_proj", true, false, true},
    Spelling{F::torch, "", "q_proj", "k_proj", "v_proj", "out_proj", true, false, true},
    Spelling{F::w_q, "", "W_q", "W_k", "W_v", "W_o", false, false, true},
    Spelling{F::w_q, "", "w_q", "w_k", "w_v", "w_o"},
    Spelling{F::w_q, "", "W_Q", "W_K", "W_V", "W_O"},
    Spelling{F::w_query, "", "W_query", "W_key", "W_value", "out_proj", false, false, true},
    Spelling{F::q_linear, "", "q_linear", "k_linear", "v_linear", "o_linear", false, false, true},
    Spelling{F::q_linear, "", "q_linear", "k_linear", "v_linear", "out_linear"},
    Spelling{F::q_linear, "", "q_linear", "k_linear", "v_linear", "out"},
    Spelling{F::q_linear, "", "q_lin", "k_lin", "v_lin", "out_lin"},
    Spelling{F::wq, "", "wq", "wk", "wv", "wo", false, false, true},
    Spelling{F::q_proj, "", "q_proj", "k_proj", "v_proj", "o_proj", false, false, true},
    Spelling{F::q_proj, "", "q_proj", "k_proj", "v_proj", "out_proj"},
    Spelling{F::q_proj, "", "q_proj", "k_proj", "v_proj", "dense"},
    Spelling{F::query, "", "self.query", "self.key", "self.value", "output.dense", false, false, true},
    Spelling{F::query, "", "attention.query", "attention.key", "attention.value", "output.dense"},
    Spelling{F::query, "", "query", "key", "value", "output.dense"},
    Spelling{F::query, "", "query", "key", "value", "output"},
    Spelling{F::query, "", "query", "key", "value", "out"},
    Spelling{F::query, "", "query", "key", "value", "out_proj"},
    Spelling{F::query, "", "query", "key", "value", "proj"},
    Spelling{F::to_q, "", "to_q", "to_k", "to_v", "to_out.0", false, false, true},
    Spelling{F::to_q, "", "to_q", "to_k", "to_v", "to_out"},
    Spelling{F::qkv, "qkv", "", "", "", "proj", false, false, true},
    Spelling{F::qkv, "qkv", "", "", "", "out_proj"},
    Spelling{F::qkv, "qkv", "", "", "", "out"},
    Spelling{F::qkv, "qkv_proj", "", "", "", "o_proj"},
    Spelling{F::qkv, "qkv_proj", "", "", "", "out_proj"},
    Spelling{F::qkv, "Wqkv", "", "", "", "out_proj"},
    Spelling{F::qkv, "Wqkv", "", "", "", "Wo"},
    Spelling{F::c_attn, "c_attn", "", "", "", "c_proj", false, true, true},
};

constexpr std::array<std::string_view, kRoles> kWords{
    "weight of q, k and v", "bias of q, k and v", "weight of q", "bias of q",
    "weight of k",          "bias of k",          "weight of v", "bias of v",
    "weight of the output", "bias of the output", "added key",   "added value",
    "causal mask"};

// A shape in a file may have more dimensions than Dims can hold.
std::string words_of(const std::vector<std::int64_t>& shape) {
  std::string words;
  for (const std::int64_t size : shape) words += text(words.empty() ? "(" : ", ", size);
  return words.empty() ? "()" : words + ")";
}

using Names = std::unordered_map<std::string_view, std::size_t>;

// Assembles one candidate: its tensors, then its sizes.
class Finder {
 public:
  Finder(const std::vector<Listed>& list, const Names& names, const Spelling& spelling, std::string prefix)
      : list_(list), names_(names) {
    found_.spelling = &spelling;
    found_.layer.prefix = std::move(prefix);
    found_.layer.family = spelling.family;
    found_.layer.separate = !spelling.packed();
    found_.layer.transposed = spelling.transposed;
  }

  Candidate take() && {
    for (std::size_t n = 0; n < kRoles; ++n) {
      if (static_cast<Role>(n) != Role::mask) look_for(static_cast<Role>(n));
    }
    find_mask();
    require_weights();
    if (found_.problem.empty()) measure();
    if (found_.problem.empty()) check_biases();
    return std::move(found_);
  }

 private:
  template <class... Pieces>
  void refuse(const Pieces&... pieces) {
    if (found_.problem.empty()) found_.problem = text(pieces...);
  }

  void look_for(Role role) {
    const std::string name = found_.spelling->name(role);
    const auto at = name.empty() ? names_.end() : names_.find(found_.layer.prefix + name);
    if (at != names_.end()) found_.at[static_cast<std::size_t>(role)] = at->second;
  }

  const std::vector<std::int64_t>& shape(Role role) const { return list_[*found_.place(role)].shape; }

  // A causal mask stored among the parameters: square in its last two dimensions, with leading dimensions of 1. GPT-2
  // calls it `bias`.
  void find_mask() {
    for (const char* name : {"mask", "causal_mask", "tril", "bias"}) {
      const auto at = names_.find(found_.layer.prefix + name);
      if (at == names_.end() || !list_[at->second].readable) continue;
      const std::vector<std::int64_t>& shape = list_[at->second].shape;
      const std::size_t rank = shape.size();
      if (rank < 2 || rank > 4 || shape[rank - 1] != shape[rank - 2] || shape[rank - 1] < 1) continue;
      if (!std::all_of(shape.begin(), shape.end() - 2, [](std::int64_t size) { return size == 1; })) continue;
      found_.at[static_cast<std::size_t>(Role::mask)] = at->second;
      found_.layer.context_length = shape[rank - 1];
      return;
    }
  }

  void require_weights() {
    for (const Role role : {Role::qkv_weight, Role::q_weight, Role::k_weight, Role::v_weight, Role::out_weight}) {
      const std::string name = found_.spelling->name(role);
      if (name.empty()) continue;
      if (!found_.place(role)) return refuse("there is no \"", found_.layer.prefix, name, "\"");
      if (!list_[*found_.place(role)].readable) {  // no reader has checked its shape
        return refuse("\"", found_.layer.prefix, name, "\" has an unsupported type or rank");
      }
      if (shape(role).size() != 2) {
        return refuse("\"", found_.layer.prefix, name, "\" has rank ", shape(role).size(), "; a weight has rank 2");
      }
    }
  }

  // The sizes of a weight as (outputs, inputs).
  std::pair<std::int64_t, std::int64_t> sides(Role role) const {
    const auto& size = shape(role);
    return found_.layer.transposed ? std::pair(size[1], size[0]) : std::pair(size[0], size[1]);
  }

  void measure() {
    FoundLayer& layer = found_.layer;
    if (layer.transposed) layer.transposed = is_transposed();
    const auto [output, width] = sides(Role::out_weight);
    layer.output_size = output;
    if (found_.spelling->packed()) {
      const auto [all, embed] = sides(Role::qkv_weight);
      layer.embed_size = layer.key_size = layer.value_size = embed;
      layer.query_width = width;
      layer.key_width = (all - width) / 2;
      if (all - width < 2 || (all - width) % 2 != 0) {
        refuse("the packed weight has ", all, " outputs for q, k and v, of which q has ", width,
               " (the output weight's inputs); the rest must be two equal parts");
      }
    } else {
      const auto [q, embed] = sides(Role::q_weight);
      const auto [k, key] = sides(Role::k_weight);
      const auto [v, value] = sides(Role::v_weight);
      layer.embed_size = embed, layer.key_size = key, layer.value_size = value;
      layer.query_width = q, layer.key_width = k;
      if (q != width) refuse("q has ", q, " outputs, the output weight has ", width, " inputs; they must be equal");
      if (k != v) refuse("k has ", k, " outputs, v has ", v, "; they must be equal");
    }
    for (const std::int64_t size :
         {layer.embed_size, layer.key_size, layer.value_size, layer.output_size, layer.query_width, layer.key_width}) {
      if (size < 1) refuse("a weight is empty");
    }
  }

  // GPT-2 stores weights as (inputs, outputs); other projects use its names for an nn.Linear, which is (outputs,
  // inputs). The length of the bias tells the two apart. Without a bias, a weight with three times as many rows as
  // columns is taken as an nn.Linear.
  bool is_transposed() const {
    const auto& weight = shape(Role::qkv_weight);
    if (found_.place(Role::qkv_bias) && weight[0] != weight[1]) return shape(Role::qkv_bias) == std::vector{weight[1]};
    return weight[0] != 3 * weight[1];
  }

  void check_biases() {
    FoundLayer& layer = found_.layer;
    const auto expect = [&](Role role, const std::vector<std::int64_t>& wanted) {
      if (found_.place(role) && shape(role) != wanted) {
        refuse("\"", list_[*found_.place(role)].name, "\" has shape ", words_of(shape(role)),
               "; with these weights it must be ", words_of(wanted));
      }
      return found_.place(role).has_value();
    };
    const bool all = expect(Role::qkv_bias, {layer.query_width + 2 * layer.key_width});
    const bool q = expect(Role::q_bias, {layer.query_width});
    const bool k = expect(Role::k_bias, {layer.key_width});
    const bool v = expect(Role::v_bias, {layer.key_width});
    layer.bias = all || q || k || v;
    layer.output_bias = expect(Role::out_bias, {layer.output_size});
    const bool added_k = expect(Role::bias_k, {1, 1, layer.key_width});
    const bool added_v = expect(Role::bias_v, {1, 1, layer.key_width});
    layer.add_bias_kv = added_k && added_v;
    if (added_k != added_v) refuse("only one of bias_k and bias_v is present; both or neither are needed");
    if (!layer.bias || all) return;
    for (const auto& [there, role] : {std::pair(q, Role::q_bias), {k, Role::k_bias}, {v, Role::v_bias}}) {
      if (!there) layer.missing.push_back(layer.prefix + found_.spelling->name(role));
    }
  }

  const std::vector<Listed>& list_;
  const Names& names_;
  Candidate found_;
};

void describe(const std::vector<Listed>& list, Candidate& candidate) {
  std::vector<bool> used(list.size());
  for (std::size_t n = 0; n < kRoles; ++n) {
    if (!candidate.at[n]) continue;
    used[*candidate.at[n]] = true;
    candidate.layer.tensors.push_back({list[*candidate.at[n]].name, std::string(kWords[n])});
  }
  for (std::size_t n = 0; n < list.size(); ++n) {
    if (!used[n] && list[n].name.starts_with(candidate.layer.prefix)) {
      candidate.layer.left_over.push_back(list[n].name);
    }
  }
}

}  // namespace

std::string_view words_of(Role role) { return kWords[static_cast<std::size_t>(role)]; }

std::string Spelling::name(Role role) const {
  const auto of = [&](std::string_view base, const char* kind) {
    if (base.empty()) return std::string();
    return text(base, torch_endings && base != out ? "_" : ".", kind);
  };
  switch (role) {
    case Role::qkv_weight: return of(qkv, "weight");
    case Role::qkv_bias: return of(torch_endings ? "in_proj" : qkv, "bias");
    case Role::q_weight: return of(q, "weight");
    case Role::k_weight: return of(k, "weight");
    case Role::v_weight: return of(v, "weight");
    case Role::q_bias: return torch_endings ? "" : of(q, "bias");
    case Role::k_bias: return torch_endings ? "" : of(k, "bias");
    case Role::v_bias: return torch_endings ? "" : of(v, "bias");
    case Role::out_weight: return of(out, "weight");
    case Role::out_bias: return of(out, "bias");
    case Role::bias_k: return "bias_k";
    case Role::bias_v: return "bias_v";
    case Role::mask: return family == NameFamily::c_attn ? "bias" : "mask";
  }
  return "";
}

std::span<const Spelling> spellings() { return kSpellings; }

std::vector<Candidate> find_candidates(const std::vector<Listed>& list) {
  Names names;
  for (std::size_t n = 0; n < list.size(); ++n) names.emplace(list[n].name, n);
  const auto count = [](const Candidate& candidate) {
    return std::count_if(candidate.at.begin(), candidate.at.end(), [](const auto& at) { return at.has_value(); });
  };
  std::vector<Candidate> candidates;
  for (const Listed& tensor : list) {
    // Every spelling is recognized by its first tensor: the packed weight, or the weight of q.
    std::optional<Candidate> best;
    for (const Spelling& spelling : kSpellings) {
      const std::string first = spelling.name(spelling.packed() ? Role::qkv_weight : Role::q_weight);
      if (!tensor.name.ends_with(first)) continue;
      const std::string prefix = tensor.name.substr(0, tensor.name.size() - first.size());
      if (!prefix.empty() && prefix.back() != '.' && prefix.back() != '/') continue;
      Candidate candidate = Finder(list, names, spelling, prefix).take();
      // If all candidates fail, the one with the most tensors has the most useful error message.
      if (!best || (!best->problem.empty() && (candidate.problem.empty() || count(candidate) > count(*best)))) {
        best = std::move(candidate);
      }
      if (best->problem.empty()) break;
    }
    if (!best) continue;
    if (best->problem.empty()) describe(list, *best);
    candidates.push_back(std::move(*best));
  }
  return candidates;
}

}  // namespace nn
}  // namespace rapt
