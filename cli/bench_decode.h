// `rapt bench decode`: the layer decoding one token with a long cache of each kind, compared with a streaming read of
// its bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "exit_code.h"
#include "rapt/dtype.h"
#include "terminal.h"

namespace rapt::cli {

class Command;

struct DecodeOptions {
  bool asked = false;  // set when the command is given
  std::int64_t batch = 1;
  std::int64_t cached = 8192;  // tokens
  std::int64_t embed = 1024;   // E
  std::int64_t heads = 16;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t page_size = 64;
  std::vector<DType> types{DType::f32, DType::bf16, DType::f16, DType::i8};
  std::vector<std::int64_t> threads{1};
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds
  bool json = false;
  ColorChoice color = ColorChoice::automatic;
};

void add_bench_decode(Command& bench, DecodeOptions& options);
ExitCode run_bench_decode(const DecodeOptions& options);

}  // namespace rapt::cli
