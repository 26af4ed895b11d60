// The one exception this library throws, and its kind for files.
#pragma once

#include <stdexcept>

#pragma GCC visibility push(default)
namespace rapt {

// A bad argument, refused before anything was written. what() says what was asked, what was found and what would
// work: "attention: key has head size 64, query has 128; they must be equal".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What is wrong lies in a file or on its way there: it cannot be opened, is broken, holds what rapt has no type for, or
// cannot be written.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace rapt
#pragma GCC visibility pop
