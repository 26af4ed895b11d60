// The memory layout of a packed matrix.
//
// Columns of Wᵀ form panels. A panel is as wide as the register tile of an instruction set; only the last one may be
// narrower, by whole vectors. A panel is (K, width), so that a product reads it from front to back. In bf16, rows 2k
// and 2k + 1 share 32-bit words, the first in the lower half, so that a shift or a mask turns either into f32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/product.h"
#include "cpu/kernel_table.h"

namespace rapt::cpu {

class PackedOrder {
 public:
  PackedOrder(const PackedWeights& weights, std::int64_t panel_width, std::int64_t lanes)
      : weights_(weights), panel_width_(panel_width), lanes_(lanes) {}

  std::int64_t panels() const { return (weights_.outputs + panel_width_ - 1) / panel_width_; }
  std::int64_t first_column(std::int64_t panel) const { return panel * panel_width_; }
  // The number of columns of Wᵀ in a panel, and the width of the panel, which is padded to whole vectors.
  std::int64_t columns(std::int64_t panel) const {
    const std::int64_t rest = weights_.outputs - first_column(panel);
    return rest < panel_width_ ? rest : panel_width_;
  }
  std::int64_t width(std::int64_t panel) const { return (columns(panel) + lanes_ - 1) / lanes_ * lanes_; }

  std::int64_t bytes_of_width(std::int64_t width) const {
    const std::int64_t rows = weights_.dtype == DType::bf16 ? (weights_.inputs + 1) / 2 * 2 : weights_.inputs;
    const std::int64_t bytes = rows * width * static_cast<std::int64_t>(size_of(weights_.dtype));
    constexpr auto kStep = static_cast<std::int64_t>(Arena::kAlignment);
    return (bytes + kStep - 1) / kStep * kStep;
  }
  // The distance from one panel to the next.
  std::int64_t panel_bytes() const { return bytes_of_width(panel_width_); }
  std::byte* panel(std::int64_t n) const { return weights_.data + n * panel_bytes(); }
  std::size_t bytes() const {
    if (weights_.outputs == 0) return 0;
    return static_cast<std::size_t>((panels() - 1) * panel_bytes() + bytes_of_width(width(panels() - 1)));
  }

  // The index of element (k, column) in a panel of this width.
  std::int64_t place(std::int64_t k, std::int64_t column, std::int64_t width) const {
    if (weights_.dtype == DType::bf16) return ((k / 2) * width + column) * 2 + k % 2;
    return k * width + column;
  }

 private:
  const PackedWeights& weights_;
  std::int64_t panel_width_, lanes_;
};

}  // namespace rapt::cpu
