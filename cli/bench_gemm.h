// `rapt bench gemm`: the packed matrix product, compared with the BLAS libraries of this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "exit_code.h"
#include "rapt/dtype.h"
#include "terminal.h"

namespace rapt::cli {

class Command;

// W is (outputs, inputs).
struct GemmShape {
  std::int64_t inputs = 1024, outputs = 1024;  // K, N
};

struct GemmOptions {
  bool asked = false;  // set when the command is given
  std::vector<std::int64_t> rows{1, 8, 32, 128, 512, 2048};
  std::vector<GemmShape> shapes{GemmShape{}};
  std::vector<DType> types{DType::f32};
  std::vector<std::int64_t> threads{1};
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds
  bool json = false;
  ColorChoice color = ColorChoice::automatic;
};

void add_bench_gemm(Command& bench, GemmOptions& options);
ExitCode run_bench_gemm(const GemmOptions& options);

}  // namespace rapt::cli
