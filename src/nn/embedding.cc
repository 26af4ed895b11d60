#include <algorithm>
#include <cstddef>

#include "attention/apart.h"
#include "nn/row_work.h"
#include "rapt/layers.h"

namespace rapt {

namespace {

void check_tokens(const Checks& checks, std::span<const std::int32_t> tokens, const ConstTensorView& rows,
                  const ConstTensorView& table, const char* rows_name, const char* table_name) {
  nn::check_matrix(checks, table_name, table, rows.dtype());
  nn::check_matrix(checks, rows_name, rows, rows.dtype());
  checks.shaped(rows_name, rows, {std::ssize(tokens), table.size(1)}, "a row for each token");
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    checks.require(tokens[t] >= 0 && tokens[t] < table.size(0), "tokens[", t, "] is ", tokens[t],
                   "; it must be at least 0 and less than ", table.size(0), ", the rows of ", table_name);
  }
}

}  // namespace

void embed(const TensorView& y, std::span<const std::int32_t> tokens, const ConstTensorView& table) {
  const Checks checks("embed");
  check_tokens(checks, tokens, y, table, "y", "table");
  Apart tensors(checks);
  tensors.add_input("table", table);
  tensors.add_output("y", y);
  nn::with_float_type(y.dtype(), [&](auto type) {
    using T = decltype(type);
    for (std::int64_t t = 0; t < y.size(0); ++t) {
      std::copy_n(nn::row_of<T>(table, tokens[static_cast<std::size_t>(t)]), y.size(1), nn::row_of<T>(y, t));
    }
  });
}

void embed_backward(const TensorView& dtable, const ConstTensorView& dy, std::span<const std::int32_t> tokens) {
  const Checks checks("embed_backward");
  check_tokens(checks, tokens, dy, dtable, "dy", "dtable");
  Apart tensors(checks);
  tensors.add_input("dy", dy);
  tensors.add_output("dtable", dtable);
  nn::with_float_type(dy.dtype(), [&](auto type) {
    using T = decltype(type);
    for (std::int64_t t = 0; t < dy.size(0); ++t) {
      const T* from = nn::row_of<T>(dy, t);
      T* to = nn::row_of<T>(dtable, tokens[static_cast<std::size_t>(t)]);
      for (std::int64_t n = 0; n < dy.size(1); ++n) to[n] += from[n];
    }
  });
}

}  // namespace rapt
