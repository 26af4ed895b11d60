// GPUs and their limits. Includes no CUDA header.
#pragma once

#include "cuda/launch.h"
#include "rapt/tensor.h"

namespace rapt::cuda {

struct Limits {
  int capability = 0;  // compute capability times 10
  int multiprocessors = 0;
  int shared_bytes = 0;  // the most shared memory that a block may request
};

// The number of GPUs; 0 without a driver.
int device_count();

// The limits of a GPU. Throws rapt::Error if there is no such GPU.
const Limits& limits_of(int device);

// Makes a GPU the current one of this thread while this object exists. Throws rapt::Error if there is no such GPU.
class Current {
 public:
  explicit Current(int device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = -1;  // −1: this GPU was already the current one
};

inline NativeStream stream_of(StreamHandle handle) { return static_cast<NativeStream>(handle.handle); }

// A launch on a GPU, without workspace.
Launch launch_on(int device, StreamHandle stream);

}  // namespace rapt::cuda
