#include "support/note_run.h"

#include <cstddef>
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "support/relative_error.h"

namespace rapt::test {
namespace {

const Safetensors& note_file(const std::string& note) {
  static std::map<std::string, Safetensors> files;
  if (!files.contains(note)) files[note] = read_safetensors(RAPT_TEST_DATA "/notes/" + note + ".safetensors");
  return files.at(note);
}

}  // namespace

NoteRun::NoteRun(const std::string& note, const std::string& run, DType dtype)
    : file_(&note_file(note)), run_(run), dtype_(dtype) {}

Tensor NoteRun::tensor(const std::string& name) const {
  const Tensor& stored = file_->at(run_ + "/" + name);
  return stored.to(stored.dtype() == DType::boolean ? DType::boolean : dtype_);
}

Tensor NoteRun::linear(const std::string& name, const ConstTensorView& x) const {
  return linear_from(name + ".weight", name + ".bias", x);
}

Tensor NoteRun::linear_from(const std::string& weight, const std::string& bias, const ConstTensorView& x) const {
  const Tensor input = Tensor::copy_of(x, DType::f64);
  const Tensor w = file_->at(run_ + "/" + weight).to(DType::f64);  // (out, in)
  const std::int64_t outputs = w.size(0);
  const Tensor b = has(bias) ? file_->at(run_ + "/" + bias).to(DType::f64) : Tensor({outputs}, DType::f64);
  Tensor result({x.size(0), x.size(1), outputs}, DType::f64);
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    for (std::int64_t token = 0; token < x.size(1); ++token) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        double sum = b.view().at<double>(o);
        for (std::int64_t i = 0; i < w.size(1); ++i) {
          sum += input.view().at<double>(row, token, i) * w.view().at<double>(o, i);
        }
        result.view().at<double>(row, token, o) = sum;
      }
    }
  }
  return result.to(x.dtype());
}

void NoteRun::expect(const std::string& answer, const ConstTensorView& result) const {
  const Tensor& f32 = file_->at(run_ + "/f32/" + answer);
  ASSERT_TRUE(dtype_ == DType::f32 || has("f64/" + answer)) << "no f64 answer for " << run_;
  const Tensor& f64 = has("f64/" + answer) ? file_->at(run_ + "/f64/" + answer) : f32;
  const double bound = dtype_ == DType::f64 ? 1e-12 : f32_bound(f32, f64);
  EXPECT_TRUE(is_near(result, dtype_ == DType::f64 ? f64 : f32, bound)) << run_ << ": " << answer;
}

Attended attend(const ConstTensorView& q, const ConstTensorView& k, const ConstTensorView& v,
                const AttentionOptions& options) {
  Attended made;
  made.memory = Tensor({q.size(0), q.size(2), q.size(1) * v.size(3)}, q.dtype());
  made.weights = Tensor({q.size(0), q.size(1), q.size(2), k.size(2)}, q.dtype());
  const TensorView out = split_heads(made.memory.view(), q.size(1));
  attention({.out = out, .lse = {}, .captures = {{.stage = Stage::dropped_weights, .to = made.weights, .of = {}}}}, q,
            k, v, options);
  EXPECT_EQ(combine_heads(out).data(), made.memory.view().data());  // a view of the memory that attention wrote
  return made;
}

Tensor is_zero(const ConstTensorView& mask) {
  Tensor zero = Tensor::copy_of(mask, DType::boolean);
  for (bool& value : zero.values<bool>()) value = !value;
  return zero;
}

}  // namespace rapt::test
