// The gradients of the layer are compared with finite differences of forward in f64, and must have the same bits
// however a call is split.
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/multi_head_attention.h"
#include "support/random_tensor.h"

namespace rapt::test {
namespace {

// A call of a layer whose result is one number: Σ out · a + Σ weights · b, with fixed a and b.
struct Setting {
  std::string name;
  MultiHeadAttentionConfig config;
  std::int64_t batch = 2, queries = 5, keys = 5;
  bool key_given = false, value_given = false;
  LayerOptions options{};
  bool batched = true;
};

void PrintTo(const Setting& setting, std::ostream* to) { *to << setting.name; }

Dims shape_of(const Setting& setting, std::int64_t length, std::int64_t width) {
  if (!setting.batched) return {length, width};
  return setting.config.batch_first ? Dims{setting.batch, length, width} : Dims{length, setting.batch, width};
}

struct Inputs {
  explicit Inputs(const Setting& setting, DType dtype = DType::f64)
      : query(random(shape_of(setting, setting.queries, setting.config.embed_size), dtype, 11)) {
    const auto size = [&](std::int64_t given) { return given == 0 ? setting.config.embed_size : given; };
    if (setting.key_given) key = random(shape_of(setting, setting.keys, size(setting.config.key_size)), dtype, 12);
    if (setting.value_given) {
      value = random(shape_of(setting, setting.keys, size(setting.config.value_size)), dtype, 13);
    }
  }
  ConstTensorView key_view() const { return key.count() > 0 ? key.view() : ConstTensorView(); }
  ConstTensorView value_view() const { return value.count() > 0 ? value.view() : ConstTensorView(); }

  Tensor query, key, value;
};

// The sum of products of two tensors of one shape.
double dot(const Tensor& a, const Tensor& b) {
  double sum = 0.0;
  for (std::int64_t n = 0; n < a.count(); ++n) {
    sum += a.values<double>()[static_cast<std::size_t>(n)] * b.values<double>()[static_cast<std::size_t>(n)];
  }
  return sum;
}

class Function {
 public:
  explicit Function(const Setting& setting) : setting_(setting), layer_(with_biases(setting.config)), inputs_(setting) {
    const LayerResult result = layer_.forward(inputs_.query, inputs_.key_view(), inputs_.value_view(), setting.options);
    dout_ = random(result.out.shape(), DType::f64, 21);
    if (setting.options.weights != ReturnWeights::none) {
      dweights_ = random(result.weights.shape(), DType::f64, 22);
    }
  }

  double value() const {
    const LayerResult result =
        layer_.forward(inputs_.query, inputs_.key_view(), inputs_.value_view(), setting_.options);
    return dot(result.out, dout_) + (dweights_.count() > 0 ? dot(result.weights, dweights_) : 0.0);
  }

  struct Gradients {
    Tensor query, key, value;
    std::vector<Tensor> parameters;
  };
  Gradients gradients() const {
    LayerActivations kept;
    LayerOptions options = setting_.options;
    options.keep = &kept;
    layer_.forward(inputs_.query, inputs_.key_view(), inputs_.value_view(), options);
    Gradients result{Tensor(inputs_.query.shape(), DType::f64), Tensor(inputs_.key.shape(), DType::f64),
                     Tensor(inputs_.value.shape(), DType::f64), layer_.zero_gradients()};
    const auto view = [](Tensor& tensor) { return tensor.count() > 0 ? tensor.view() : TensorView(); };
    layer_.backward({result.query, view(result.key), view(result.value), result.parameters},
                    {dout_, dweights_.count() > 0 ? dweights_.view() : ConstTensorView()}, kept, inputs_.query,
                    inputs_.key_view(), inputs_.value_view(), setting_.options);
    return result;
  }

  // (f(x + h) − f(x − h)) / 2h for number n of an input.
  double difference(Tensor Inputs::*input, std::int64_t n) {
    double& x = (inputs_.*input).values<double>()[static_cast<std::size_t>(n)];
    return around(x, [] {});
  }
  double difference(const NamedTensor& parameter, std::int64_t n) {
    Tensor changed(parameter.value.shape(), DType::f64);
    copy(parameter.value, changed);
    const std::string name(parameter.name);
    double& x = changed.values<double>()[static_cast<std::size_t>(n)];
    return around(x, [&] { layer_.set_parameter(name, changed); });
  }
  const MultiHeadAttention& layer() const { return layer_; }

 private:
  // Biases are initialized to zeros, which would hide errors.
  static MultiHeadAttention with_biases(const MultiHeadAttentionConfig& config) {
    MultiHeadAttention layer(config, 3);
    std::uint32_t seed = 31;
    for (const NamedTensor& parameter : layer.parameters()) {
      layer.set_parameter(parameter.name, random(parameter.value.shape(), DType::f64, seed++));
    }
    return layer;
  }

  double around(double& x, const std::function<void()>& changed) {
    constexpr double kStep = 1e-5;
    const double at = x;
    const auto value_at = [&](double place) {
      x = place;
      changed();
      return value();
    };
    const double above = value_at(at + kStep), below = value_at(at - kStep);
    x = at;
    changed();
    return (above - below) / (2.0 * kStep);
  }

  const Setting& setting_;
  MultiHeadAttention layer_;
  Inputs inputs_;
  Tensor dout_, dweights_;
};

class LayerGradient : public testing::TestWithParam<Setting> {};

TEST_P(LayerGradient, IsTheDifferenceOfForward) {
  Function function(GetParam());
  const Function::Gradients gradients = function.gradients();
  const auto compare = [&](const std::string& name, const Tensor& gradient, const auto& difference) {
    const std::int64_t step = std::max<std::int64_t>(1, gradient.count() / 23);
    for (std::int64_t n = 0; n < gradient.count(); n += step) {
      const double expected = difference(n);
      EXPECT_NEAR(gradient.values<double>()[static_cast<std::size_t>(n)], expected, 1e-7 * (1.0 + std::abs(expected)))
          << name << "[" << n << "]";
    }
  };
  compare("query", gradients.query, [&](std::int64_t n) { return function.difference(&Inputs::query, n); });
  compare("key", gradients.key, [&](std::int64_t n) { return function.difference(&Inputs::key, n); });
  compare("value", gradients.value, [&](std::int64_t n) { return function.difference(&Inputs::value, n); });
  const std::vector<NamedTensor> parameters = function.layer().parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    compare(std::string(parameters[p].name), gradients.parameters[p],
            [&](std::int64_t n) { return function.difference(parameters[p], n); });
  }
}

MultiHeadAttentionConfig small() {
  MultiHeadAttentionConfig config;
  config.embed_size = 12, config.heads = 3, config.batch_first = true, config.dtype = DType::f64;
  return config;
}

std::vector<Setting> settings() {
  std::vector<Setting> list;
  const auto add = [&](const char* name, const std::function<void(Setting&)>& change) {
    Setting setting{name, small()};
    change(setting);
    list.push_back(std::move(setting));
  };
  add("Self", [](Setting&) {});
  add("SelfCausal", [](Setting& s) { s.options.attention.causal = true; });
  add("TokensFirst", [](Setting& s) { s.config.batch_first = false; });
  add("NoBatch", [](Setting& s) { s.batched = false; });
  add("Separate", [](Setting& s) { s.config.separate_projections = true; });
  add("NoBias", [](Setting& s) { s.config.bias = false; });
  add("OnlyOutputBias", [](Setting& s) { s.config.bias = false, s.config.output_bias = true; });
  add("KeyGiven", [](Setting& s) { s.key_given = true, s.keys = 7; });
  add("KeyAndValueGiven", [](Setting& s) { s.key_given = s.value_given = true, s.keys = 4; });
  add("OtherSizes", [](Setting& s) {
    s.key_given = s.value_given = true, s.keys = 6;
    s.config.key_size = 5, s.config.value_size = 9, s.config.output_size = 8, s.config.head_size = 6;
  });
  add("GroupedHeads", [](Setting& s) { s.config.heads = 6, s.config.kv_heads = 2, s.config.head_size = 4; });
  add("AddedKeys", [](Setting& s) { s.config.add_bias_kv = s.config.add_zero_attention = true; });
  add("AddedKeysGivenCausal",
      [](Setting& s) { s.config.add_bias_kv = true, s.key_given = true, s.options.attention.causal = true; });
  add("MeanWeights", [](Setting& s) { s.options.weights = ReturnWeights::mean; });
  add("WeightsPerHead", [](Setting& s) { s.options.weights = ReturnWeights::per_head; });
  add("WeightsOfAddedKeys", [](Setting& s) {
    s.config.add_bias_kv = true, s.options.weights = ReturnWeights::mean, s.config.batch_first = false;
  });
  add("Rotary", [](Setting& s) { s.config.rotary = RotaryOptions{}, s.options.position = 3; });
  add("RotaryInterleavedPartly",
      [](Setting& s) { s.config.rotary = RotaryOptions{.size = 2, .pairs = RotaryPairs::interleaved}; });
  add("RotaryYarn", [](Setting& s) {
    s.config.rotary = RotaryOptions{.scaling = RotaryScaling::yarn(4.0, 16)};
    s.config.batch_first = false;
  });
  add("Dropout", [](Setting& s) {
    s.config.dropout = 0.3, s.config.output_dropout = 0.2, s.options.training = true;
    s.options.attention.dropout.seed = 5;
  });
  add("DropoutOffOutsideTraining", [](Setting& s) { s.config.dropout = 0.3, s.config.output_dropout = 0.2; });
  add("Slice", [](Setting& s) {
    s.config.heads = 6, s.config.kv_heads = 2, s.config.head_size = 4, s.config.slice = {1, 2};
  });
  add("KeyLengthsSoftcapWindow", [](Setting& s) {
    s.options.attention.key_lengths = {5, 3}, s.options.attention.softcap = 3.0;
    s.options.attention.window.left = 2;
  });
  add("StoredMask", [](Setting& s) { s.config.context_length = 8; });
  return list;
}

INSTANTIATE_TEST_SUITE_P(Layer, LayerGradient, testing::ValuesIn(settings()),
                         [](const auto& test) { return test.param.name; });

// ---------------------------------------------------------------- bits

struct Gradients {
  Tensor dquery;
  std::vector<Tensor> parameters;
};

MultiHeadAttentionConfig wide() {
  MultiHeadAttentionConfig config;
  config.embed_size = 96, config.heads = 6, config.kv_heads = 2, config.dropout = 0.1, config.output_dropout = 0.1;
  config.add_bias_kv = true;
  return config;
}

// Gradients of a batch, in calls of `rows` batch rows each.
Gradients run(const MultiHeadAttention& layer, const Tensor& x, const Tensor& dout, std::int64_t rows, int threads) {
  const int batch_dim = layer.config().batch_first ? 0 : 1;
  Gradients result{Tensor(x.shape()), layer.zero_gradients()};
  LayerActivations kept;
  LayerWorkspace workspace;
  for (std::int64_t b = 0; b < x.view().size(batch_dim); b += rows) {
    LayerOptions options;
    options.attention.causal = true, options.attention.threads = threads;
    options.attention.dropout.seed = 9, options.attention.dropout.batch_start = b;
    options.training = true, options.workspace = &workspace;
    const auto part = [&](const auto& view) { return view.slice(batch_dim, b, b + rows); };
    Tensor out(part(x.view()).shape());
    options.keep = &kept;
    layer.forward({out, {}}, part(x.view()), {}, {}, options);
    layer.backward({.dquery = part(result.dquery.view()), .parameters = result.parameters}, {part(dout.view()), {}},
                   kept, part(x.view()), {}, {}, options);
  }
  return result;
}

void expect_same(const Gradients& a, const Gradients& b) {
  EXPECT_TRUE(same_bits(a.dquery, b.dquery)) << "dquery";
  for (std::size_t n = 0; n < a.parameters.size(); ++n) {
    EXPECT_TRUE(same_bits(a.parameters[n], b.parameters[n])) << "parameter " << n;
  }
}

class LayerGradientBits : public testing::TestWithParam<bool> {};

TEST_P(LayerGradientBits, DoNotDependOnThreadsOrMicroBatches) {
  MultiHeadAttentionConfig config = wide();
  config.batch_first = GetParam();
  const MultiHeadAttention layer(config, 1);
  const Dims shape = config.batch_first ? Dims{8, 70, 96} : Dims{70, 8, 96};
  const Tensor x = random(shape, DType::f32, 1), dout = random(shape, DType::f32, 2);
  const Gradients whole = run(layer, x, dout, 8, 1);
  for (const int threads : {2, 3, 7}) {
    SCOPED_TRACE(testing::Message() << threads << " threads");
    expect_same(whole, run(layer, x, dout, 8, threads));
  }
  for (const std::int64_t rows : {1, 2, 4}) {
    SCOPED_TRACE(testing::Message() << rows << " batch rows at a time");
    expect_same(whole, run(layer, x, dout, rows, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Order, LayerGradientBits, testing::Bool(),
                         [](const auto& test) { return test.param ? "BatchFirst" : "TokensFirst"; });

TEST(LayerGradientOf16Bits, HasTheErrorsOfItsParameters) {
  MultiHeadAttentionConfig config = wide();
  config.batch_first = true, config.dropout = config.output_dropout = 0.0, config.dtype = DType::bf16;
  const MultiHeadAttention narrow(config, 1);
  config.dtype = DType::f32;
  MultiHeadAttention same(config, 1);
  for (const NamedTensor& parameter : narrow.parameters()) same.set_parameter(parameter.name, parameter.value);
  const Tensor x = random({2, 33, 96}, DType::f32, 1), dout = random({2, 33, 96}, DType::f32, 2);
  const Gradients a = run(narrow, x, dout, 2, 2), b = run(same, x, dout, 2, 2);
  EXPECT_TRUE(same_bits(a.dquery, b.dquery)) << "a parameter in bf16 counts as its number in f32 does";
  for (std::size_t n = 0; n < a.parameters.size(); ++n) EXPECT_TRUE(same_bits(a.parameters[n], b.parameters[n])) << n;
}

// ---------------------------------------------------------------- what is refused

struct BadCall {
  const char* name;
  const char* message;
  std::function<void(const MultiHeadAttention&, const Tensor& x, LayerActivations& kept)> call;
};

void PrintTo(const BadCall& bad, std::ostream* to) { *to << bad.name; }

class BadLayerBackward : public testing::TestWithParam<BadCall> {};

TEST_P(BadLayerBackward, IsRefusedWithItsOwnMessage) {
  MultiHeadAttentionConfig config;
  config.embed_size = 8, config.heads = 2, config.batch_first = true;
  const MultiHeadAttention layer(config, 1);
  const Tensor x = random({2, 3, 8}, DType::f32, 1);
  LayerActivations kept;
  LayerOptions options;
  options.keep = &kept;
  layer.forward(x, options);
  try {
    GetParam().call(layer, x, kept);
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), std::string("MultiHeadAttention::backward: ") + GetParam().message);
  }
}

const BadCall kBadCalls[] = {
    {"NothingKept", "kept is empty; pass it to forward as options.keep first",
     [](const auto& layer, const Tensor& x, LayerActivations&) {
       layer.backward({}, {x, {}}, LayerActivations(), x, {}, {});
     }},
    {"KeptOfAnotherCall",
     "kept is from another call: its query was (2, 3, 8) and its key (2, 3, 8) as (B, L, E), here they are (2, 2, 8) "
     "and "
     "(2, 2, 8)",
     [](const auto& layer, const Tensor& x, LayerActivations& kept) {
       const ConstTensorView shorter = x.view().slice(1, 0, 2);
       layer.backward({}, {shorter, {}}, kept, shorter, {}, {});
     }},
    {"NoDout", "dout is missing; give a tensor",
     [](const auto& layer, const Tensor& x, LayerActivations& kept) { layer.backward({}, {}, kept, x, {}, {}); }},
    {"DoutShape", "dout has shape (3, 2, 8); it must be that of forward's output = (2, 3, 8)",
     [](const auto& layer, const Tensor& x, LayerActivations& kept) {
       layer.backward({}, {x.view().transpose(0, 1), {}}, kept, x, {}, {});
     }},
    {"WeightsNotReturned", "dweights is given, but options.weights is none; set it as in forward",
     [](const auto& layer, const Tensor& x, LayerActivations& kept) {
       layer.backward({}, {x, x}, kept, x, {}, {});
     }},
    {"KeyNotGiven", "dkey is given, but key is not; the gradient of the key is part of dquery",
     [](const auto& layer, const Tensor& x, LayerActivations& kept) {
       Tensor to(x.shape());
       layer.backward({.dkey = to}, {x, {}}, kept, x, {}, {});
     }},
    {"TooFewParameters", "parameters has 1 tensors, the layer has 4 parameters; zero_gradients() creates them",
     [](const auto& layer, const Tensor& x, LayerActivations& kept) {
       std::vector<Tensor> gradients(1);
       layer.backward({.parameters = gradients}, {x, {}}, kept, x, {}, {});
     }},
    {"ParameterShape",
     "the gradient of in_proj_bias has shape (8,) of f32; it must be (24,) of f32, as zero_gradients() creates it",
     [](const auto& layer, const Tensor& x, LayerActivations& kept) {
       std::vector<Tensor> gradients = layer.zero_gradients();
       gradients[1] = Tensor({8});
       layer.backward({.parameters = gradients}, {x, {}}, kept, x, {}, {});
     }},
};

INSTANTIATE_TEST_SUITE_P(Layer, BadLayerBackward, testing::ValuesIn(kBadCalls),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace rapt::test
