#include "nn/output_dropout.h"

#include <cmath>
#include <cstddef>

#include "core/elements.h"
#include "rapt/random.h"

namespace rapt::nn {

void drop_output(const LayerCall& call, const TensorView& out) {
  const Dropout& dropout = call.options.attention.dropout;
  const double rate = call.config.output_dropout;
  const auto threshold = static_cast<std::uint64_t>(std::floor(rate * 0x1p32));
  const double scale = rate < 1.0 ? 1.0 / (1.0 - rate) : 0.0;
  const PhiloxKey key = philox_key(dropout.seed);
  for (std::int64_t b = 0; b < out.size(0); ++b) {
    for (std::int64_t i = 0; i < out.size(1); ++i) {
      for (std::int64_t o = 0; o < out.size(2); o += 4) {
        const PhiloxCounter words =
            philox4x32_10({static_cast<std::uint32_t>(b + dropout.batch_start), 0xFFFFFFFFU,
                           static_cast<std::uint32_t>(i + dropout.query_start), static_cast<std::uint32_t>(o / 4)},
                          key);
        for (std::int64_t n = o; n < std::min(o + 4, out.size(2)); ++n) {
          const std::int64_t place = b * out.stride(0) + i * out.stride(1) + n * out.stride(2);
          const bool kept = words[static_cast<std::size_t>(n - o)] >= threshold;
          store(out.data(), out.dtype(), place, kept ? load(out.data(), out.dtype(), place) * scale : 0.0);
        }
      }
    }
  }
}

}  // namespace rapt::nn
