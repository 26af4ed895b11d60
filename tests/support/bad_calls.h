// Every bad call of attention with its exact error message, for the tests of C++ and of C.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "rapt/attention.h"

namespace rapt::test {

// A valid call; each invalid one differs from it in one argument. q is (2, 4, 3, 8), k is (2, 2, 5, 8), v has size 6.
struct AttentionCall {
  Tensor q{{2, 4, 3, 8}}, k{{2, 2, 5, 8}}, v{{2, 2, 5, 6}}, out_memory{{2, 4, 3, 6}}, lse_memory{{2, 4, 3}};
  Tensor weights{{2, 4, 3, 5}}, hide{{3, 5}, DType::boolean}, bias{{3, 5}}, sinks{{4}};
  Tensor dq{{2, 4, 3, 8}}, dk{{2, 2, 5, 8}}, dv{{2, 2, 5, 6}}, dbias{{3, 5}}, dsinks{{4}}, dout{{2, 4, 3, 6}};
  Tensor spare{{64, 64}};  // for tensors of a wrong shape

  std::vector<std::int32_t> table{2, 0, 1, 99};  // the last is past a key length

  ConstTensorView query = q, key = k, value = v;
  AttentionOptions options{};
  AttentionOutputs outputs{.out = out_memory, .lse = lse_memory};
  AttentionUpstream upstream{.dout = dout};
  AttentionGradients gradients{.dquery = dq, .dkey = dk, .dvalue = dv};

  std::vector<Tensor*> written() { return {&out_memory, &lse_memory, &weights, &dq, &dk, &dv, &dbias, &dsinks}; }
  TensorView shaped(const Dims& shape, DType dtype = DType::f32) { return {spare.view().data(), dtype, shape}; }
  static TensorView at(Tensor& memory, std::int64_t first, const Dims& shape) {
    return {memory.view().data_as<float>() + first, shape};
  }
  TensorView on_gpu(const Dims& shape) {
    return {spare.view().data(), DType::f32, shape, Device{Device::Kind::cuda, 1}};
  }
  // Three pages of 16 keys, two per row; row 0 has 20 keys and row 1 has 5.
  void in_pages(std::int64_t pages = 3, std::int64_t size = 16) {
    key = shaped({pages, 2, size, 8}), value = shaped({pages, 2, size, 6});
    options.pages = {table, 2}, options.key_lengths = {20, 5};
  }
  // The same in i8, with scales.
  void in_i8() {
    key = shaped({2, 2, 5, 8}, DType::i8), value = shaped({2, 2, 5, 6}, DType::i8);
    options.key_scales = options.value_scales = shaped({2, 2, 5});
  }
  void one_row() {
    query = query.slice(0, 0, 1), key = key.slice(0, 0, 1), value = value.slice(0, 0, 1);
    outputs = {.out = out_memory.view().slice(0, 0, 1)};
  }
};

struct BadCall {
  const char* name;
  std::function<void(AttentionCall&)> spoil;
  const char* message;  // if it ends in a space: the beginning of the message
};

inline void PrintTo(const BadCall& bad, std::ostream* stream) { *stream << bad.name; }

const std::vector<BadCall>& bad_forward_calls();
const std::vector<BadCall>& bad_backward_calls();

// Makes a valid call invalid and attempts it. `attempt` returns the error message, or none if the call succeeded. The
// call must write nothing.
void expect_refusal(const BadCall& bad, const std::function<std::string(AttentionCall&)>& attempt);

}  // namespace rapt::test
