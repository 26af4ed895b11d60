// The cases in tests/data/vectors, which PyTorch answered: each becomes one call of attention and one of
// attention_backward, with any engine and any types.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rapt/attention.h"
#include "support/safetensors.h"

namespace rapt::test {

// A case by name; its inputs and answers are read from the group's file when they are asked for.
struct VectorName {
  std::string group;
  std::string name;
};

// Every case there is, as tests/data/vectors/cases.txt lists them.
const std::vector<VectorName>& vector_names();
// Those whose inputs bf16 and f16 hold exactly.
std::vector<VectorName> sixteen_bit_vector_names();

class VectorCase {
 public:
  explicit VectorCase(const VectorName& name);

  const std::string& name() const { return name_; }
  const nlohmann::json& spec() const { return spec_; }
  const nlohmann::json& options() const { return spec_.at("options"); }
  bool only_f32() const { return spec_.value("only_f32", false); }

  bool has(const std::string& tensor) const { return file_->has(name_ + "/" + tensor); }
  const Tensor& input(const std::string& tensor) const { return file_->at(name_ + "/" + tensor); }
  // PyTorch's answer, computed in f64 or in f32.
  const Tensor& answer(const std::string& tensor, DType computed_in) const;

 private:
  std::string name_;
  std::shared_ptr<const Safetensors> file_;
  nlohmann::json spec_;
};

// The options that a case uses, read off what it asks for rather than off its name: "causal_bottom_right", "gqa", …
std::set<std::string> features_of(const VectorCase& vector);

struct RunAs {
  Engine engine = Engine::reference;
  DType query = DType::f64;
  DType key_value = DType::f64;
  bool reuse_forward = false;  // hand forward's out and lse to backward
};

// Everything the case asks for, in the canonical order of dimensions: out, lse, capture<n>, dq, dk, dv, dmask<n>,
// dsinks.
using Results = std::map<std::string, Tensor>;
Results run_case(const VectorCase& vector, const RunAs& as);

// What a result, in the type it was written in, is compared with.
struct Expected {
  const Tensor* answer = nullptr;
  double relative_error = 0.0;
};
using Tolerance = std::function<Expected(const VectorCase& vector, const std::string& result, DType written)>;

// f64: 1e-12 from the f64 answer. f32: 2e-6, or twice PyTorch's own error, from the f32 answer. 16 bits: one rounding
// from the f64 answer.
Expected torch_tolerance(const VectorCase& vector, const std::string& result, DType written);

// Runs the case and holds each result against its answer, with one test failure for each that is too far.
void expect_matches_torch(const VectorCase& vector, const RunAs& as, const Tolerance& tolerance = torch_tolerance);

}  // namespace rapt::test
