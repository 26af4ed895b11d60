// The one exception this library throws.
#pragma once

#include <stdexcept>

namespace rapt {

// A bad argument, refused before anything was written. what() says what was asked, what was found and what would
// work: "attention: key has head size 64, query has 128; they must be equal".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rapt
