// The sgemm baseline: a BLAS library installed on the machine, found at run time. rapt itself does not need one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rapt::bench {

// C = A · B, row-major, f32: A is (m, k), C is (m, n), and B is (k, n) or, transposed, (n, k).
struct SgemmCall {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  bool b_transposed = false;
  float* c = nullptr;
};

class SgemmLibrary {
 public:
  // All libraries that can be loaded, each once.
  static std::vector<SgemmLibrary> find();

  const std::string& name() const { return name_; }
  void set_threads(int threads) const { set_threads_(threads); }
  void multiply(const SgemmCall& call) const;

 private:
  using Cblas = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  using Dnnl = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t,
                       const float*, std::int64_t, float, float*, std::int64_t);
  using SetThreads = void (*)(int);

  std::string name_;
  Cblas cblas_ = nullptr;
  Dnnl dnnl_ = nullptr;
  SetThreads set_threads_ = nullptr;
};

}  // namespace rapt::bench
