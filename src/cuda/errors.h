// CUDA errors as text. No CUDA header is included, so error codes are plain numbers here.
#pragma once

#include <string>

namespace rapt::cuda {

// Throws rapt::Error unless `code` (a cudaError_t) is success: "cuda:0: cudaMemcpy failed: invalid argument (…)". A
// kernel or copy of an earlier call may have failed, which any later call may report; the message then says so.
void require(int code, const char* call, int device);

// Called at the end of a launch function: throws if the launch was refused.
void require_launched(const char* kernel, int device);

// CUDA's own description and name of a code: "out of memory (cudaErrorMemoryAllocation)".
std::string words_of(int code);

}  // namespace rapt::cuda
