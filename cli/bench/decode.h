// `rapt bench decode`: the layer decoding one token with a long cache of each kind, compared with a streaming read of
// its bytes.
#pragma once

#include "bench/harness/decode_rounds.h"
#include "cli/exit_code.h"
#include "cli/terminal/terminal.h"

namespace rapt::cli {

class Command;

struct DecodeOptions {
  bool asked = false;      // set when the command is given
  bench::DecodePlan plan;  // kv_heads 0: as many as heads
  bool json = false;
  ColorChoice color = ColorChoice::automatic;
};

void add_bench_decode(Command& bench, DecodeOptions& options);
ExitCode run_bench_decode(const DecodeOptions& options);

}  // namespace rapt::cli
