// The cases in tests/data/vectors, with results computed by PyTorch: each becomes one call of attention and one of
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

// A case by name; its inputs and expected results are read from the group's file on demand.
struct VectorName {
  std::string group;
  std::string name;
};

// All cases, as listed in tests/data/vectors/cases.txt.
const std::vector<VectorName>& vector_names();
// Cases whose inputs are exact in bf16 and f16.
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
  // PyTorch's result, computed in f64 or in f32.
  const Tensor& answer(const std::string& tensor, DType computed_in) const;

 private:
  std::string name_;
  std::shared_ptr<const Safetensors> file_;
  nlohmann::json spec_;
};

// The options that a case uses, derived from its settings rather than its name: "causal_bottom_right", "gqa", …
std::set<std::string> features_of(const VectorCase& vector);

struct RunAs {
  Engine engine = Engine::reference;
  DType query = DType::f64;
  DType key_value = DType::f64;
  bool reuse_forward = false;  // pass forward's out and lse to backward
};

// All requested results, in the canonical order of dimensions: out, lse, capture<n>, dq, dk, dv, dmask<n>, dsinks.
using Results = std::map<std::string, Tensor>;
Results run_case(const VectorCase& vector, const RunAs& as);

// The expected result and the maximum relative error, for a result of the given type.
struct Expected {
  const Tensor* answer = nullptr;
  double relative_error = 0.0;
};
using Tolerance = std::function<Expected(const VectorCase& vector, const std::string& result, DType written)>;

// f64: 1e-12 from the f64 answer. f32: 2e-6, or twice PyTorch's own error, from the f32 answer. In 16 bits, one
// rounding of the f64 answer.
Expected torch_tolerance(const VectorCase& vector, const std::string& result, DType written);

// Runs the case and compares each result with the expected one; each that is too far off is a test failure.
void expect_matches_torch(const VectorCase& vector, const RunAs& as, const Tolerance& tolerance = torch_tolerance);

}  // namespace rapt::test
