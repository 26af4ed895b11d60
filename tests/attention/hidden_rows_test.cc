// A row that sees no key has output 0, weights 0, lse −inf and gradients 0, with every way to mask keys.
#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "rapt/cpu.h"

namespace rapt {
namespace {

constexpr double kHide = -std::numeric_limits<double>::infinity();

// The engines to test: the reference engine in f64, and the CPU engine in f32 on each instruction set of this machine.
std::vector<std::string> ways_to_compute() {
  std::vector<std::string> ways = {"f64"};
  for (const InstructionSetInfo& set : instruction_sets()) {
    if (set.runs_here) ways.push_back(set.name);
  }
  return ways;
}

// (1, 2, 3, 4) inputs whose query 1 must see no key. WayToHide::blind lists it and the others that see none.
struct Setting {
  Tensor query{{1, 2, 3, 4}, DType::f64}, key{{1, 2, 3, 4}, DType::f64}, value{{1, 2, 3, 4}, DType::f64};
  Tensor hide_row{{3, 3}, DType::boolean}, see_row{{3, 3}, DType::boolean}, add_row{{3, 3}, DType::f64};
  Tensor everything{{1, 1}, DType::boolean};
  AttentionOptions options;

  Setting() {
    double next = 0.0;
    for (Tensor* tensor : {&query, &key, &value}) {
      for (double& x : tensor->values<double>()) x = std::sin(next += 1.0);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        hide_row.values<bool>()[i * 3 + j] = i == 1;
        see_row.values<bool>()[i * 3 + j] = i != 1;
        add_row.values<double>()[i * 3 + j] = i == 1 ? kHide : 0.5;
      }
    }
    everything.values<bool>()[0] = true;
  }
};

struct WayToHide {
  const char* name;
  std::function<void(Setting&)> hide;
  std::vector<std::int64_t> blind;  // queries that see no key
};

void PrintTo(const WayToHide& way, std::ostream* stream) { *stream << way.name; }

const std::vector<WayToHide> kWays = {
    {"MaskKeep", [](Setting& s) { s.options.masks = {Mask::keep(s.see_row)}; }, {1}},
    {"MaskDrop", [](Setting& s) { s.options.masks = {Mask::drop(s.hide_row)}; }, {1}},
    {"MaskAdd", [](Setting& s) { s.options.masks = {Mask::add(s.add_row)}; }, {1}},
    {"MaskFill", [](Setting& s) { s.options.masks = {Mask::fill(s.hide_row, kHide)}; }, {1}},
    {"MaskDropEverything", [](Setting& s) { s.options.masks = {Mask::drop(s.everything)}; }, {0, 1, 2}},
    {"CausalBeforeTheKeys",
     [](Setting& s) { s.options.causal = true, s.options.alignment = Alignment::offset(-2); },
     {0, 1}},
    {"CausalBottomRight",
     [](Setting& s) {
       s.options.causal = true, s.options.key_lengths = {1}, s.options.alignment = Alignment::bottom_right();
     },
     {0, 1}},
    {"WindowPastTheKeys",
     [](Setting& s) { s.options.window.left = 0, s.options.alignment = Alignment::offset(2); },
     {1, 2}},
    {"WindowBeforeTheKeys",
     [](Setting& s) { s.options.window.right = 0, s.options.alignment = Alignment::offset(-3); },
     {0, 1, 2}},
    {"KeyLengthZero", [](Setting& s) { s.options.key_lengths = {0}; }, {0, 1, 2}},
    {"PackedWithoutKeys",
     [](Setting& s) {
       s.options.packed = {{0, 1, 2, 3}, {0, 2, 2, 3}};
     },
     {1}},
    {"CausalAndMaskTogether",
     [](Setting& s) {
       s.options.causal = true, s.options.masks = {Mask::keep(s.see_row), Mask::add(s.add_row)};
     },
     {1}},
};

class EveryWayToHide : public testing::TestWithParam<std::tuple<WayToHide, std::string>> {
 protected:
  const WayToHide& way() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()) == "f64" ? DType::f64 : DType::f32; }
  void SetUp() override {
    if (dtype() == DType::f32) use_instruction_set(std::get<1>(GetParam()));
  }
  void TearDown() override { use_instruction_set(""); }
};
INSTANTIATE_TEST_SUITE_P(Ways, EveryWayToHide,
                         testing::Combine(testing::ValuesIn(kWays), testing::ValuesIn(ways_to_compute())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param).name + ("_" + std::get<1>(instance.param));
                         });

bool is_blind(const WayToHide& way, std::int64_t i) {
  return std::find(way.blind.begin(), way.blind.end(), i) != way.blind.end();
}

TEST_P(EveryWayToHide, GivesZeroOutputAndWeightsAndMinusInfinityLse) {
  Setting s;
  way().hide(s);
  Tensor out_memory({1, 2, 3, 4}, dtype()), lse_memory({1, 2, 3}, dtype()), weights_memory({1, 2, 3, 3}, dtype());
  attention({.out = out_memory, .lse = lse_memory, .captures = {{.to = weights_memory}}}, s.query.to(dtype()),
            s.key.to(dtype()), s.value.to(dtype()), s.options);
  const Tensor out = out_memory.to(DType::f64), lse = lse_memory.to(DType::f64),
               weights = weights_memory.to(DType::f64);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < 3; ++i) {
      double sum = 0.0;
      for (std::int64_t j = 0; j < 3; ++j) sum += weights.view().at<double>(0, h, i, j);
      if (is_blind(way(), i)) {
        EXPECT_EQ(lse.view().at<double>(0, h, i), kHide);
        EXPECT_EQ(sum, 0.0);
        for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(out.view().at<double>(0, h, i, d), 0.0);
      } else {
        EXPECT_TRUE(std::isfinite(lse.view().at<double>(0, h, i)));
        EXPECT_NEAR(sum, 1.0, dtype() == DType::f64 ? 1e-14 : 1e-6);
        EXPECT_NE(out.view().at<double>(0, h, i, 0), 0.0);
      }
    }
  }
}

TEST_P(EveryWayToHide, GivesZeroGradients) {
  Setting s;
  way().hide(s);
  Tensor dout({1, 2, 3, 4}, DType::f64), dlse({1, 2, 3}, DType::f64), dweights({1, 2, 3, 3}, DType::f64);
  for (Tensor* tensor : {&dout, &dlse, &dweights}) {
    for (double& x : tensor->values<double>()) x = 1.0;
  }
  Tensor dquery_memory({1, 2, 3, 4}, dtype()), dkey_memory({1, 2, 3, 4}, dtype()), dvalue_memory({1, 2, 3, 4}, dtype());
  const Tensor dout_in_type = dout.to(dtype()), dlse_in_type = dlse.to(dtype());
  attention_backward({.dquery = dquery_memory, .dkey = dkey_memory, .dvalue = dvalue_memory},
                     {.dout = dout_in_type, .dlse = dlse_in_type, .dweights = {{.from = dweights}}},
                     s.query.to(dtype()), s.key.to(dtype()), s.value.to(dtype()), s.options);
  const Tensor dquery = dquery_memory.to(DType::f64), dkey = dkey_memory.to(DType::f64),
               dvalue = dvalue_memory.to(DType::f64);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < 3; ++i) {
      double size = 0.0;
      for (std::int64_t d = 0; d < 4; ++d) {
        const double gradient = dquery.view().at<double>(0, h, i, d);
        EXPECT_TRUE(std::isfinite(gradient));
        size += std::abs(gradient);
      }
      if (is_blind(way(), i)) {
        EXPECT_EQ(size, 0.0);
      }
    }
  }
  for (const Tensor* tensor : {&dkey, &dvalue}) {
    for (const double gradient : tensor->values<double>()) {
      EXPECT_TRUE(std::isfinite(gradient));
      if (way().blind.size() == 3) {
        EXPECT_EQ(gradient, 0.0);
      }
    }
  }
}

TEST_P(EveryWayToHide, GivesTheSinkToABlindRow) {
  Setting s;
  way().hide(s);
  const Tensor sinks = Tensor::from<double>({2}, {0.25, -1.5});
  const Tensor sinks_in_type = sinks.to(dtype());
  s.options.sinks = sinks_in_type.view();
  Tensor out_memory({1, 2, 3, 4}, dtype()), lse_memory({1, 2, 3}, dtype());
  attention({.out = out_memory, .lse = lse_memory}, s.query.to(dtype()), s.key.to(dtype()), s.value.to(dtype()),
            s.options);
  const Tensor out = out_memory.to(DType::f64), lse = lse_memory.to(DType::f64);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (const std::int64_t i : way().blind) {
      EXPECT_EQ(lse.view().at<double>(0, h, i), sinks.view().at<double>(h));
      EXPECT_EQ(out.view().at<double>(0, h, i, 0), 0.0);
    }
  }
}

// Only −inf hides a key: a row filled with −1e9, or with the lowest finite number, attends evenly.
TEST(FiniteFill, AttendsEvenly) {
  for (const double value : {-1e9, -3.4028234663852886e38}) {
    Setting s;
    s.options.masks = {Mask::fill(s.hide_row, value)};
    Tensor out({1, 2, 3, 4}, DType::f64), weights({1, 2, 3, 3}, DType::f64);
    attention({.out = out, .captures = {{.to = weights}}}, s.query, s.key, s.value, s.options);
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_DOUBLE_EQ(weights.view().at<double>(0, 0, 1, j), 1.0 / 3.0);
  }
}

// In f32 the score is rounded away when −1e9 is added; in f64 it is not.
TEST(AddedBillion, SwallowsTheScoreInF32Only) {
  const Tensor query = Tensor::from<double>({1, 1, 1, 1}, {1.0});
  const Tensor key = Tensor::from<double>({1, 1, 2, 1}, {0.0, 1.0});
  const Tensor bias = Tensor::from<double>({1, 2}, {-1e9, -1e9});
  const auto weights_in = [&](DType dtype) {
    Tensor out({1, 1, 1, 1}, dtype), weights({1, 1, 1, 2}, dtype);
    const Tensor mask = bias.to(dtype);
    attention({.out = out, .captures = {{.to = weights}}}, query.to(dtype), key.to(dtype), key.to(dtype),
              {.masks = {Mask::add(mask)}});
    return weights.to(DType::f64);
  };
  EXPECT_EQ(weights_in(DType::f32).values<double>()[1], 0.5);
  EXPECT_NEAR(weights_in(DType::f64).values<double>()[1], 1.0 / (1.0 + std::exp(-1.0)), 1e-6);
}

// A score of NaN or +inf makes its own row NaN and no other; the score of a hidden key has no effect.
TEST(NotFinite, StaysInItsRow) {
  for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
    Setting s;
    s.query.values<double>()[0] = bad;  // head 0, query 0
    const Tensor out = attention(s.query, s.key, s.value);
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(std::isnan(out.view().at<double>(0, h, i, 0)), h == 0 && i == 0) << h << ' ' << i;
      }
    }
  }
  Setting s;
  s.key.values<double>()[4 * 2] = std::nan("");  // head 0, key 2: queries 0 and 1 do not see it
  const Tensor out = attention(s.query, s.key, s.value, {.causal = true});
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(std::isnan(out.view().at<double>(0, 0, i, 0)), i == 2);
}

// In backward too, a key that a row does not see may contain any values, and so may the upstream gradient of its
// weight.
TEST(NotFinite, StaysInItsRowInBackwardToo) {
  for (const std::string& way : ways_to_compute()) {
    SCOPED_TRACE(way);
    const DType dtype = way == "f64" ? DType::f64 : DType::f32;
    if (way != "f64") use_instruction_set(way);
    Setting s;
    s.key.values<double>()[4 * 2] = std::nan("");  // head 0, key 2: only query 2 sees it
    s.query.values<double>()[4 * 3] = INFINITY;    // head 1, query 0 sees only key 0
    Tensor dout({1, 2, 3, 4}, dtype), dweights({1, 2, 3, 3}, DType::f64);
    copy(Tensor::from<double>({1, 1, 1, 1}, {1.0}).view().expand({1, 2, 3, 4}), dout);
    dweights.values<double>()[1] = std::nan("");  // head 0, query 0, key 1: not seen
    Tensor in_dquery({1, 2, 3, 4}, dtype), in_dkey({1, 2, 3, 4}, dtype), dvalue({1, 2, 3, 4}, dtype);
    attention_backward({.dquery = in_dquery, .dkey = in_dkey, .dvalue = dvalue},
                       {.dout = dout, .dweights = {{.from = dweights}}}, s.query.to(dtype), s.key.to(dtype),
                       s.value.to(dtype), {.softcap = 2.0, .causal = true});
    const Tensor dquery = in_dquery.to(DType::f64), dkey = in_dkey.to(DType::f64);
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(std::isnan(dquery.view().at<double>(0, 0, i, 0)), i == 2) << i;
      EXPECT_TRUE(i == 0 || std::isfinite(dquery.view().at<double>(0, 1, i, 0))) << i;
    }
    for (std::int64_t j = 1; j < 3; ++j) EXPECT_TRUE(std::isfinite(dkey.view().at<double>(0, 1, j, 0))) << j;
  }
  use_instruction_set("");
}

}  // namespace
}  // namespace rapt
