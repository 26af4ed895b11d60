#include "cuda/errors.h"

#include <cuda_runtime_api.h>

#include "core/text.h"

namespace rapt::cuda {

namespace {

// Whether an error can only come from work that an earlier call enqueued, whichever call reports it.
bool is_of_earlier_work(cudaError_t code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorContained: return true;
    default: return false;
  }
}

}  // namespace

std::string words_of(int code) {
  const auto error = static_cast<cudaError_t>(code);
  return text(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

void require(int code, const char* call, int device) {
  const auto error = static_cast<cudaError_t>(code);
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // reported here, and not by the next call
  if (is_of_earlier_work(error)) {
    throw Error(text("cuda:", device, ": work of an earlier call failed, as ", call, " reports: ", words_of(code),
                     "; this process can no longer use the GPU"));
  }
  throw Error(text("cuda:", device, ": ", call, " failed: ", words_of(code)));
}

void require_launched(const char* kernel, int device) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) require(error, kernel, device);
}

}  // namespace rapt::cuda
