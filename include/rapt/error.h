// The exception type of this library, and its subclass for files.
#pragma once

#include <stdexcept>

#pragma GCC visibility push(default)
namespace rapt {

// A bad argument, rejected before anything was written, or a failure of a GPU. For a bad argument, what() says what was
// requested, what was found and what would work: "attention: key has head size 64, query has 128; they must be equal".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file could not be opened, parsed or written, or holds a type that rapt does not support.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace rapt
#pragma GCC visibility pop
