// Stages in shared memory between warps that fill them and warps that use them. Each stage has a barrier `full` and a
// barrier `empty`. Both sides go through the stages in the same order, and each side keeps its own Cursor.
#pragma once

#include "cuda/ptx.cuh"

namespace rapt::cuda {

// The position of one side in a ring of stages.
template <int kStages>
struct Cursor {
  int stage = 0;
  std::uint32_t round = 0;  // parity of the number of completed rounds

  RAPT_DEVICE void advance() {
    if (++stage == kStages) {
      stage = 0;
      round ^= 1;
    }
  }
};

template <int kStages>
struct Ring {
  Barrier full[kStages], empty[kStages];

  // `fills` arrivals make a stage full, and `uses` arrivals make it empty.
  RAPT_DEVICE void init(int fills, int uses) {
    for (int i = 0; i < kStages; ++i) {
      full[i].init(fills);
      empty[i].init(uses);
    }
  }
  RAPT_DEVICE void wait_full(const Cursor<kStages>& at) { full[at.stage].wait(at.round); }
  // Returns at once in the first round, in which all stages are empty.
  RAPT_DEVICE void wait_empty(const Cursor<kStages>& at) { empty[at.stage].wait(at.round ^ 1); }
};

}  // namespace rapt::cuda
