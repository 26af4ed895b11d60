#include "nn/output_dropout.h"

#include <cmath>

#include "core/engine.h"

namespace rapt::nn {

void drop_output(const LayerCall& call, const TensorView& out, const Workers& workers) {
  const Dropout& dropout = call.options.attention.dropout;
  const double rate = call.config.output_dropout;
  device_row(out.device())
      .layer->drop_output({.x = out,
                           .threshold = static_cast<std::uint64_t>(std::floor(rate * 0x1p32)),
                           .scale = rate < 1.0 ? 1.0 / (1.0 - rate) : 0.0,
                           .key = philox_key(dropout.seed),
                           .batch_start = static_cast<std::uint32_t>(dropout.batch_start),
                           .query_start = static_cast<std::uint32_t>(dropout.query_start)},
                          workers);
}

}  // namespace rapt::nn
