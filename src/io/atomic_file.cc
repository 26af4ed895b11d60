#include "io/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace rapt::io {
namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 16;

// A unique name, in this process and across processes.
std::string unique_ending() {
  static std::atomic<unsigned> counter = 0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return text('.', ::getpid(), '-', counter++, '-', now % 1000000007, ".tmp");
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, const FileChecks& checks) : checks_(checks), target_(path) {
  checks.require(!path.empty(), "the path is empty");
  checks.require(path.find('\0') == std::string::npos, "the path has a zero byte in it");
  follow_links();
  struct stat status {};
  if (::stat(target_.c_str(), &status) == 0) {
    checks.require(!S_ISDIR(status.st_mode), "is a directory, not a file");
    // Renaming onto a device or a pipe would replace it.
    checks.require(S_ISREG(status.st_mode), "is not a regular file and cannot be replaced");
    if (::access(target_.c_str(), W_OK) != 0) checks.fail_for(errno, "cannot be written");
    replaces_ = true;
    mode_ = status.st_mode & 0777U;
  }
  buffer_.reserve(kBufferSize);
  create();
}

void AtomicFile::follow_links() {
  std::error_code error;
  std::filesystem::path path = target_;
  for (int links = 0; std::filesystem::is_symlink(path, error); ++links) {
    checks_.require(links < 40, "is a symbolic link in a loop");
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
    if (error) checks_.fail("cannot be written: ", error.message());
  }
  target_ = path.string();
}

void AtomicFile::create() {
  const std::size_t slash = target_.rfind('/');
  folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : target_.substr(0, slash);
  const std::string name = slash == std::string::npos ? target_ : target_.substr(slash + 1);
  checks_.require(!name.empty(), "is a directory, not a file");
  for (int attempt = 0; attempt < 100; ++attempt) {
    // A name has at most 255 bytes, so a long one is truncated, and the suffix keeps it unique.
    const std::string candidate = text(folder_, "/.", name.substr(0, 200), unique_ending());
    descriptor_ = ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      temporary_ = candidate;
      return;
    }
    if (errno != EEXIST) break;
  }
  checks_.fail_for(errno, "cannot be written in ", folder_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write_out(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) checks_.fail_for(errno, "cannot be written past byte ", flushed_);
    flushed_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::flush() {
  write_out(buffer_);
  buffer_.clear();
}

void AtomicFile::write(Bytes bytes) {
  if (buffer_.size() + bytes.size() > kBufferSize) flush();
  if (bytes.size() >= kBufferSize) {
    write_out(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::overwrite(std::uint64_t offset, Bytes bytes) {
  flush();
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) checks_.fail_for(errno, "cannot be written at byte ", offset);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  flush();
  if (replaces_ && ::fchmod(descriptor_, mode_) != 0) checks_.fail_for(errno, "its permissions cannot be set");
  // Before the rename, because otherwise a crash could leave the new name on an empty file.
  if (::fsync(descriptor_) != 0) checks_.fail_for(errno, "cannot be flushed to disk");
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0 && errno != EINTR) checks_.fail_for(errno, "cannot be flushed to disk");
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) checks_.fail_for(errno, "cannot be renamed into place");
  temporary_.clear();

  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a directory that is writable but not readable: the rename is done, but cannot be synced
  const bool synced = ::fsync(folder) == 0 || errno == EINVAL;  // some file systems do not support it
  const int error = errno;
  ::close(folder);
  if (!synced) checks_.fail_for(error, "is written, but its directory cannot be flushed to disk");
}

}  // namespace rapt::io
