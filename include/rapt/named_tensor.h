// A tensor with a name: a parameter of a layer, or an entry of a file.
#pragma once

#include <string>

#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

struct NamedTensor {
  std::string name;
  ConstTensorView value;
};

}  // namespace rapt
#pragma GCC visibility pop
