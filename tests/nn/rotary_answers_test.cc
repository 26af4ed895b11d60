// Compares the rotary embedding with other implementations: frequencies and rotations of transformers, and ONNX's
// operator. tests/data/make_rotary.py describes how their results were computed.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "rapt/rotary.h"
#include "support/relative_error.h"
#include "support/safetensors.h"

namespace rapt::test {
namespace {

using nlohmann::json;

const Safetensors& file(const std::string& name) {
  static std::map<std::string, Safetensors> files;
  const auto found = files.find(name);
  if (found != files.end()) return found->second;
  const std::string path = std::string(RAPT_TEST_DATA "/rotary/") + name + ".safetensors";
  return files.emplace(name, read_safetensors(path)).first->second;
}

std::map<std::string, json> cases_of(const std::string& name) {
  std::map<std::string, json> cases;
  for (const json& spec : json::parse(file(name).metadata.at("cases"))) cases[spec.at("name")] = spec;
  return cases;
}

RotaryScaling scaling_of(const json& spec) {
  const std::string type = spec.at("type");
  const double factor = spec.value("factor", 1.0);
  const std::int64_t original = spec.value("original", std::int64_t{0});
  if (type == "linear") return RotaryScaling::linear(factor);
  if (type == "dynamic") return RotaryScaling::dynamic(factor, original, spec.at("length"));
  if (type == "llama3") return RotaryScaling::llama3(factor, original, spec.at("low"), spec.at("high"));
  if (type != "yarn") return RotaryScaling::none();
  RotaryScaling::Yarn ramp;
  ramp.beta_fast = spec.value("beta_fast", ramp.beta_fast);
  ramp.beta_slow = spec.value("beta_slow", ramp.beta_slow);
  ramp.truncate = spec.value("truncate", ramp.truncate);
  if (spec.contains("attention_factor")) ramp.attention_factor = spec.at("attention_factor");
  return RotaryScaling::yarn(factor, original, ramp);
}

Rotary rotary_of(const json& spec, RotaryPairs pairs = RotaryPairs::half_split, std::int64_t max_positions = 0) {
  return Rotary(spec.at("head_size"), {.base = spec.value("base", 10000.0),
                                       .size = spec.value("size", std::int64_t{0}),
                                       .pairs = pairs,
                                       .scaling = scaling_of(spec),
                                       .max_positions = max_positions});
}

TEST(RotaryFrequencies, AreThoseOfTransformers) {
  const auto cases = cases_of("frequencies");
  EXPECT_GE(cases.size(), 20U);
  for (const auto& [name, spec] : cases) {
    const Rotary rotary = rotary_of(spec);
    const auto single = file("frequencies").at(name + "/f32").values<float>();
    const auto wide = file("frequencies").at(name + "/f64").values<double>();
    ASSERT_EQ(rotary.frequencies().size(), wide.size()) << name;
    for (std::size_t n = 0; n < wide.size(); ++n) {
      // The same formulas in double.
      EXPECT_NEAR(rotary.frequencies()[n], wide[n], 1e-12 * wide[n]) << name << ' ' << n;
      // Transformers' own f32 results: the exponents are rounded to f32, and base^x multiplies that error by log(base).
      EXPECT_NEAR(rotary.frequencies()[n], single[n], 2e-6 * static_cast<double>(single[n])) << name << ' ' << n;
    }
    const double factor = file("frequencies").at(name + "/attention").values<double>()[0];
    EXPECT_NEAR(rotary.attention_factor(), factor, 1e-15 * factor) << name;
  }
}

// transformers has no separate "ntk": its "dynamic" is ntk with a factor that depends on the length.
TEST(RotaryFrequencies, OfNtkAreThoseOfDynamicWithTheFactorThatItsLengthGives) {
  const Rotary ntk(64, {.scaling = RotaryScaling::ntk(2.0 * 8192 / 2048 - 1.0)});
  const auto wanted = file("frequencies").at("dynamic_long/f64").values<double>();
  for (std::size_t n = 0; n < wanted.size(); ++n) EXPECT_NEAR(ntk.frequencies()[n], wanted[n], 1e-12 * wanted[n]);
  // The first pair is unchanged, the last one is slower by the whole factor.
  const Rotary plain(64);
  EXPECT_EQ(ntk.frequencies().front(), plain.frequencies().front());
  EXPECT_NEAR(ntk.frequencies().back() * 7.0, plain.frequencies().back(), 1e-15);
}

class RotatedByOthers : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(As, RotatedByOthers, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST_P(RotatedByOthers, IsWhatWeComputeToo) {
  const auto frequencies = cases_of("frequencies");
  const auto cases = cases_of("rotated");
  EXPECT_GE(cases.size(), 11U);
  for (const auto& [name, spec] : cases) {
    const bool interleaved = spec.at("by") == "gptj" || spec.value("interleaved", 0) == 1;
    const auto pairs = interleaved ? RotaryPairs::interleaved : RotaryPairs::half_split;
    std::vector<std::int64_t> positions;
    for (const double position : file("rotated").at(name + "/positions").values<double>()) {
      positions.push_back(static_cast<std::int64_t>(position));
    }
    const Tensor& answer = file("rotated").at(name + "/y");
    for (const std::int64_t max_positions : {0, 2500}) {  // with 2500, about half of the positions are past the table
      const Rotary rotary = rotary_of(frequencies.at(spec.at("frequencies")), pairs, max_positions);
      // Rotates from f32 to the tested type, so that only the result is rounded to 16 bits.
      Tensor y(answer.shape(), GetParam());
      const bool is_f64 = GetParam() == DType::f64;
      const Tensor x = file("rotated").at(name + "/x").to(is_f64 ? DType::f64 : DType::f32);
      rotary.apply(x, y, RotaryPositions::tokens(positions));
      // In f64, angles reach 5000, where the last bit of a frequency changes an angle by 1e-12.
      const std::map<DType, double> bounds = {
          {DType::f64, 2e-12}, {DType::f32, 1e-7}, {DType::bf16, 0x1p-8}, {DType::f16, 0x1p-11}};
      EXPECT_TRUE(is_near(y, answer, bounds.at(GetParam()))) << name;
    }
  }
}

}  // namespace
}  // namespace rapt::test
