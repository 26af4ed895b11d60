// A progress line on a terminal, with the elapsed time, while another thread works.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace rapt::cli {

// Shows nothing in the first second, or if stderr is not a terminal. Clears its line at the end.
class Spinner {
 public:
  explicit Spinner(std::string what);
  Spinner(const Spinner&) = delete;
  Spinner& operator=(const Spinner&) = delete;
  ~Spinner();

 private:
  void run();

  std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace rapt::cli
