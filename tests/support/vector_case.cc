#include "support/vector_case.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "support/placement.h"
#include "support/relative_error.h"

namespace rapt::test {
namespace {

using nlohmann::json;

constexpr const char* kFolder = RAPT_TEST_DATA "/vectors/";  // a literal, because test names are needed before main

// Files stay in memory once read: a group's cases share one.
std::shared_ptr<const Safetensors> group_file(const std::string& group) {
  static std::map<std::string, std::shared_ptr<const Safetensors>> files;
  auto& file = files[group];
  if (!file)
    file = std::make_shared<const Safetensors>(read_safetensors(std::string(kFolder) + group + ".safetensors"));
  return file;
}

std::string numbered(const char* what, std::size_t n) { return what + std::to_string(n); }

Stage stage_named(const std::string& name) {
  static const std::map<std::string, Stage> kStages = {{"raw", Stage::raw},
                                                       {"capped", Stage::capped},
                                                       {"masked", Stage::masked},
                                                       {"weights", Stage::weights},
                                                       {"dropped_weights", Stage::dropped_weights}};
  return kStages.at(name);
}

std::vector<std::int64_t> integers(const json& from, const char* name) {
  return from.value(name, std::vector<std::int64_t>{});
}

Selection selection_from(const json& of) {
  return {
      .mean_over_heads = of.value("mean", false), .heads = integers(of, "heads"), .queries = integers(of, "queries")};
}

double number_from(const json& value) {
  return value.is_string() ? -std::numeric_limits<double>::infinity() : value.get<double>();  // JSON has no -inf
}

Alignment alignment_from(const json& options) {
  if (!options.contains("alignment")) return {};
  const json& alignment = options.at("alignment");
  if (alignment == "top_left") return Alignment::top_left();
  if (alignment == "bottom_right") return Alignment::bottom_right();
  auto offsets = alignment.get<std::vector<std::int64_t>>();
  return offsets.size() == 1 ? Alignment::offset(offsets[0]) : Alignment::offsets(std::move(offsets));
}

Mask mask_from(const json& mask, const ConstTensorView& view) {
  const auto kind = mask.at("kind").get<std::string>();
  if (kind == "keep") return Mask::keep(view);
  if (kind == "drop") return Mask::drop(view);
  if (kind == "add") return Mask::add(view);
  return Mask::fill(view, number_from(mask.at("value")));
}

// Tensors of two types cannot be slices of one tensor.
std::string layout_of(const VectorCase& vector, const RunAs& as) {
  const std::string layout = vector.spec().value("layout", "bhld");
  return layout == "packed_qkv" && as.query != as.key_value ? "blhd" : layout;
}

// A case's inputs in the types of the run. Views in `options` point into `masks` and `sinks`.
struct Call {
  std::vector<Tensor> masks;
  Tensor sinks;
  PlacedQkv qkv;
  AttentionOptions options;
};

Call call_from(const VectorCase& vector, const RunAs& as) {
  const json& spec = vector.options();
  Call call;
  const std::array<const Tensor*, 3> inputs = {&vector.input("q"), &vector.input("k"), &vector.input("v")};
  call.qkv = place_qkv({inputs[0]->shape(), inputs[1]->shape(), inputs[2]->shape()},
                       {as.query, as.key_value, as.key_value}, layout_of(vector, as));
  for (std::size_t n = 0; n < inputs.size(); ++n) copy(*inputs[n], call.qkv.views[n]);

  AttentionOptions& options = call.options;
  options.engine = as.engine;
  if (spec.contains("scale")) options.scale = spec.at("scale").get<double>();
  options.softcap = spec.value("softcap", 0.0);
  options.causal = spec.value("causal", false);
  if (spec.contains("window")) {
    const json& window = spec.at("window");
    if (!window[0].is_null()) options.window.left = window[0].get<std::int64_t>();
    if (!window[1].is_null()) options.window.right = window[1].get<std::int64_t>();
  }
  options.alignment = alignment_from(spec);
  options.key_lengths = integers(spec, "key_lengths");
  options.packed = {integers(spec, "query_starts"), integers(spec, "key_starts")};
  options.alibi_slopes = spec.value("alibi_slopes", std::vector<double>{});
  if (spec.contains("dropout")) {
    const json& dropout = spec.at("dropout");
    options.dropout = {.rate = dropout.at("rate").get<double>(),
                       .seed = dropout.at("seed").get<std::uint64_t>(),
                       .batch_start = dropout.value("batch_start", std::int64_t{0}),
                       .head_start = dropout.value("head_start", std::int64_t{0}),
                       .query_start = dropout.value("query_start", std::int64_t{0})};
  }
  if (spec.contains("masks")) {
    for (const json& mask : spec.at("masks")) {
      const Tensor& input = vector.input(numbered("mask", call.masks.size()));
      call.masks.push_back(input.dtype() == DType::boolean ? input.clone() : input.to(as.query));
      options.masks.push_back(mask_from(mask, std::as_const(call.masks.back()).view()));
    }
  }
  if (vector.has("sinks")) {
    call.sinks = vector.input("sinks").to(as.query);
    options.sinks = std::as_const(call.sinks).view();
  }
  return call;
}

DType lse_dtype(const RunAs& as) { return as.query == DType::f64 ? DType::f64 : DType::f32; }

// The shape of a result is that of its expected answer.
const Dims& answer_shape(const VectorCase& vector, const std::string& name) {
  return vector.answer(name, vector.only_f32() ? DType::f32 : DType::f64).shape();
}

void run_forward(const VectorCase& vector, const RunAs& as, const Call& call, Results& results) {
  const Placed out = place(answer_shape(vector, "out"), as.query, layout_of(vector, as));
  Tensor lse(answer_shape(vector, "lse"), lse_dtype(as));
  AttentionOutputs outputs{.out = out.view, .lse = lse, .captures = {}};
  const json& captures = vector.spec().at("captures");
  for (std::size_t n = 0; n < captures.size(); ++n) {
    const std::string name = numbered("capture", n);
    const auto [at, fresh] = results.emplace(name, Tensor(answer_shape(vector, name), as.query));
    outputs.captures.push_back(
        {stage_named(captures[n].at("stage").get<std::string>()), at->second.view(), selection_from(captures[n])});
  }
  attention(outputs, call.qkv.views[0], call.qkv.views[1], call.qkv.views[2], call.options);
  results.emplace("out", Tensor::copy_of(out.view));
  results.emplace("lse", std::move(lse));
}

void run_backward(const VectorCase& vector, const RunAs& as, const Call& call, Results& results) {
  const auto& views = call.qkv.views;
  const PlacedQkv grads = place_qkv({views[0].shape(), views[1].shape(), views[2].shape()},
                                    {as.query, as.key_value, as.key_value}, layout_of(vector, as));
  AttentionGradients gradients{
      .dquery = grads.views[0], .dkey = grads.views[1], .dvalue = grads.views[2], .dsinks = {}, .dmasks = {}};
  for (std::size_t n = 0; n < call.options.masks.size(); ++n) {
    if (call.options.masks[n].kind != Mask::Kind::add) continue;
    const ConstTensorView& mask = call.options.masks[n].view;
    const auto [at, fresh] = results.emplace(numbered("dmask", n), Tensor(mask.shape(), mask.dtype()));
    gradients.dmasks.push_back({n, at->second.view()});
  }
  if (vector.has("sinks")) {
    gradients.dsinks = results.emplace("dsinks", Tensor(call.sinks.shape(), as.query)).first->second.view();
  }

  Tensor dout;
  Tensor dlse;
  std::vector<Tensor> dweights;
  AttentionUpstream upstream;
  if (vector.has("dout")) upstream.dout = std::as_const(dout = vector.input("dout").to(as.query)).view();
  if (vector.has("dlse")) upstream.dlse = std::as_const(dlse = vector.input("dlse").to(lse_dtype(as))).view();
  for (const json& of : vector.spec().at("upstream").at("dweights")) {
    dweights.push_back(vector.input(numbered("dweights", dweights.size())).to(as.query));
    upstream.dweights.push_back(
        {stage_named(of.at("stage").get<std::string>()), std::as_const(dweights.back()).view(), selection_from(of)});
  }
  if (as.reuse_forward) {
    upstream.out = std::as_const(results.at("out")).view();
    upstream.lse = std::as_const(results.at("lse")).view();
  }
  attention_backward(gradients, upstream, views[0], views[1], views[2], call.options);
  results.emplace("dq", Tensor::copy_of(grads.views[0]));
  results.emplace("dk", Tensor::copy_of(grads.views[1]));
  results.emplace("dv", Tensor::copy_of(grads.views[2]));
}

}  // namespace

const std::vector<VectorName>& vector_names() {
  static const std::vector<VectorName> names = [] {
    std::vector<VectorName> read;
    std::ifstream list(std::string(kFolder) + "cases.txt");
    for (VectorName one; list >> one.group >> one.name;) read.push_back(one);
    return read;
  }();
  return names;
}

std::vector<VectorName> sixteen_bit_vector_names() {
  std::vector<VectorName> names;
  std::copy_if(vector_names().begin(), vector_names().end(), std::back_inserter(names),
               [](const VectorName& one) { return one.group == "types"; });
  return names;
}

VectorCase::VectorCase(const VectorName& name) : name_(name.name), file_(group_file(name.group)) {
  static std::map<std::string, json> groups;
  json& cases = groups[name.group];
  if (cases.is_null()) cases = json::parse(file_->metadata.at("cases")).at("cases");
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const json& one) { return one.at("name") == name_; });
  if (found == cases.end()) throw std::runtime_error("no case " + name_ + " in " + name.group);
  spec_ = *found;
}

const Tensor& VectorCase::answer(const std::string& tensor, DType computed_in) const {
  return input(std::string(name_of(computed_in)) + "/" + tensor);
}

std::set<std::string> features_of(const VectorCase& vector) {
  const json& o = vector.options();
  const json& sizes = vector.spec().at("sizes");
  std::set<std::string> found;
  const auto note = [&](bool present, const char* feature) {
    if (present) found.insert(feature);
  };
  for (const char* same : {"scale", "softcap", "sinks", "key_lengths"}) note(o.contains(same), same);
  note(o.contains("alibi_slopes"), "alibi");
  note(o.contains("query_starts"), "packed");
  note(o.contains("dropout") && o.at("dropout").at("rate") > 0.0, "dropout");
  if (o.contains("masks")) {
    for (const json& mask : o.at("masks")) {
      const auto kind = mask.at("kind").get<std::string>();
      found.insert(kind == "fill" && mask.at("value") == "-inf" ? "fill_inf" : kind);
    }
  }
  if (o.value("causal", false)) {
    const json alignment = o.value("alignment", json("top_left"));
    found.insert("causal_" + (alignment.is_array() ? "offset" : alignment.get<std::string>()));
  }
  if (o.contains("window")) {
    const bool left = !o.at("window")[0].is_null();
    found.insert(left && !o.at("window")[1].is_null() ? "window_both" : left ? "window_left" : "window_right");
  }
  note(sizes.at("Hkv") != sizes.at("Hq"), sizes.at("Hkv") == 1 ? "mqa" : "gqa");
  note(sizes.at("Dv") != sizes.at("D"), "dv");
  note(vector.spec().contains("layout"), "layout");
  for (const json& capture : vector.spec().at("captures")) {
    note(capture.value("mean", false), "mean");
    note(!integers(capture, "heads").empty() || !integers(capture, "queries").empty(), "selection");
  }
  note(vector.has("dlse"), "dlse");
  note(!vector.spec().at("upstream").at("dweights").empty(), "dweights");
  return found;
}

Results run_case(const VectorCase& vector, const RunAs& as) {
  const Call call = call_from(vector, as);
  Results results;
  run_forward(vector, as, call, results);
  run_backward(vector, as, call, results);
  return results;
}

Expected torch_tolerance(const VectorCase& vector, const std::string& result, DType written) {
  const Tensor& f32 = vector.answer(result, DType::f32);
  if (vector.only_f32()) return {&f32, written == DType::f32 ? 2e-6 : 0x1p-8};
  const Tensor& f64 = vector.answer(result, DType::f64);
  switch (written) {
    case DType::f64: return {&f64, 1e-12};
    case DType::bf16: return {&f64, 0x1p-8};
    case DType::f16: return {&f64, 0x1p-11};
    default: return {&f32, f32_bound(f32, f64)};
  }
}

void expect_matches_torch(const VectorCase& vector, const RunAs& as, const Tolerance& tolerance) {
  const Results results = run_case(vector, as);
  for (const auto& [name, result] : results) {
    const Expected expected = tolerance(vector, name, result.dtype());
    EXPECT_TRUE(is_near(result, *expected.answer, expected.relative_error))
        << vector.name() << ": " << name << " as " << name_of(result.dtype());
  }
}

}  // namespace rapt::test
