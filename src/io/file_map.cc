#include "io/file_map.h"

#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace rapt::io {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

FileMap::FileMap(const std::string& path, const FileChecks& checks) {
  checks.require(path.find('\0') == std::string::npos, "the path has a zero byte in it");
  // Without O_NONBLOCK, opening a pipe would block until it has a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) checks.fail_for(errno, "cannot be opened");
  struct stat status {};
  if (::fstat(file.number, &status) != 0) checks.fail_for(errno, "cannot be opened");
  checks.require(!S_ISDIR(status.st_mode), "is a directory, not a file");
  checks.require(S_ISREG(status.st_mode), "is not a regular file; read it into memory and pass its bytes");
  if (status.st_size == 0) return;
  checks.require(static_cast<std::uint64_t>(status.st_size) <= std::numeric_limits<std::size_t>::max(),
                 "is larger than the address space");
  size_ = static_cast<std::size_t>(status.st_size);
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) {  // NOLINT(performance-no-int-to-ptr): the system's macro
    size_ = 0;
    checks.fail_for(errno, "cannot be mapped to memory");
  }
  data_ = static_cast<const std::byte*>(memory);
}

FileMap::FileMap(FileMap&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

FileMap::~FileMap() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the map was made by this class
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace rapt::io
