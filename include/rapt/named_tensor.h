// A tensor and what it is called: a parameter of a layer, an entry of a file.
#pragma once

#include <string>

#include "rapt/tensor.h"

namespace rapt {

struct NamedTensor {
  std::string name;
  ConstTensorView value;
};

}  // namespace rapt
