// Error messages about files: the format, the file, then the problem.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "rapt/error.h"

namespace rapt::io {

// A name from a file, in quotes: control characters are escaped, and a long name is shortened.
std::string quoted(std::string_view name);
// The first few of a list of names: "a", "b" and 7 more.
std::string list_of(const std::vector<std::string>& names);

// Messages start with "npy: scores.npy: ", so that a user can find the file.
class FileChecks {
 public:
  FileChecks(std::string_view format, std::string_view file);
  // The same for a part of the file: "npz: inputs.npz: member "query.npy": ".
  FileChecks of(std::string_view part) const {
    FileChecks checks = *this;
    checks.start_ += text(part, ": ");
    return checks;
  }

  template <class... Pieces>
  [[noreturn]] void fail(const Pieces&... pieces) const {
    throw FileError(text(start_, pieces...));
  }
  template <class... Pieces>
  void require(bool good, const Pieces&... pieces) const {
    if (!good) fail(pieces...);
  }
  // Appends the system's message for `error`, an errno.
  template <class... Pieces>
  [[noreturn]] void fail_for(int error, const Pieces&... pieces) const {
    fail(pieces..., ": ", system_words(error));
  }

 private:
  static std::string system_words(int error);

  std::string start_;
};

}  // namespace rapt::io
