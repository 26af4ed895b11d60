#include "cli/terminal/spinner.h"

#include <chrono>
#include <cstdio>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace rapt::cli {

Spinner::Spinner(std::string what) : what_(std::move(what)) {
  if (isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { run(); });
}

Spinner::~Spinner() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Spinner::run() {
  const auto start = std::chrono::steady_clock::now();
  bool shown = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    fmt::print(stderr, "\r\x1b[K{} … {} s", what_, seconds.count());
    shown = true;
  }
  if (shown) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace rapt::cli
