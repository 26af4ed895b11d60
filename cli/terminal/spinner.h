// A line on a terminal that says what is going on and for how long, while the work is done elsewhere.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace rapt::cli {

// Shows nothing in the first second, nor where stderr is no terminal. Takes its line away at the end.
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
