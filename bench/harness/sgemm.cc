#include "bench/harness/sgemm.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>

namespace rapt::bench {
namespace {

struct Candidate {
  const char* name;                  // as reported
  std::array<const char*, 2> files;  // file names for the loader; the first that exists is used
  const char* product;
  const char* set_threads;
};

constexpr std::array kCandidates = std::to_array<Candidate>({
    {"OpenBLAS", {"libopenblas.so.0", "libopenblas.so"}, "cblas_sgemm", "openblas_set_num_threads"},
    {"oneDNN", {"libdnnl.so.3", "libdnnl.so.2"}, "dnnl_sgemm", "omp_set_num_threads"},
    {"MKL", {"libmkl_rt.so.2", "libmkl_rt.so"}, "cblas_sgemm", "MKL_Set_Num_Threads"},
});

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::vector<SgemmLibrary> SgemmLibrary::find() {
  // Threads that spin after a product would take a core from the next measurement. The user's settings have priority.
  setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
  setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);  // 2^20 cycles

  std::vector<SgemmLibrary> found;
  for (const Candidate& candidate : kCandidates) {
    void* handle = nullptr;
    for (const char* file : candidate.files) {
      if (handle == nullptr) handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);  // never closed: its threads keep running
    }
    if (handle == nullptr) continue;
    SgemmLibrary library;
    library.name_ = candidate.name;
    const std::string product = candidate.product;
    if (product == "dnnl_sgemm") {
      library.dnnl_ = symbol<Dnnl>(handle, candidate.product);
    } else {
      library.cblas_ = symbol<Cblas>(handle, candidate.product);
    }
    library.set_threads_ = symbol<SetThreads>(handle, candidate.set_threads);
    // A build whose number of threads cannot be set (oneDNN on TBB) cannot be compared at the same number of threads.
    const bool complete = (library.dnnl_ != nullptr || library.cblas_ != nullptr) && library.set_threads_ != nullptr;
    if (complete) found.push_back(library);
  }
  return found;
}

void SgemmLibrary::multiply(const SgemmCall& call) const {
  const std::int64_t b_stride = call.b_transposed ? call.k : call.n;
  if (dnnl_ != nullptr) {
    const int status = dnnl_('N', call.b_transposed ? 'T' : 'N', call.m, call.n, call.k, 1.0F, call.a, call.k, call.b,
                             b_stride, 0.0F, call.c, call.n);
    if (status != 0) throw std::runtime_error("dnnl_sgemm failed");
    return;
  }
  constexpr int kRowMajor = 101;
  constexpr int kNoTranspose = 111;
  constexpr int kTranspose = 112;
  const auto size = [](std::int64_t value) { return static_cast<int>(value); };
  cblas_(kRowMajor, kNoTranspose, call.b_transposed ? kTranspose : kNoTranspose, size(call.m), size(call.n),
         size(call.k), 1.0F, call.a, size(call.k), call.b, size(b_stride), 0.0F, call.c, size(call.n));
}

}  // namespace rapt::bench
