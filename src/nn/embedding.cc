#include <cstddef>

#include "attention/apart.h"
#include "core/engine.h"
#include "nn/matrix_checks.h"
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
  const Checks checks("embed", table.device());
  check_tokens(checks, tokens, y, table, "y", "table");
  Apart tensors(checks);
  tensors.add_input("table", table);
  tensors.add_output("y", y);
  device_row(table.device()).layer->embed(y, tokens, table, core::pool_workers());
}

void embed_backward(const TensorView& dtable, const ConstTensorView& dy, std::span<const std::int32_t> tokens) {
  const Checks checks("embed_backward", dy.device());
  check_tokens(checks, tokens, dy, dtable, "dy", "dtable");
  Apart tensors(checks);
  tensors.add_input("dy", dy);
  tensors.add_output("dtable", dtable);
  device_row(dy.device()).layer->embed_backward(dtable, dy, tokens, core::pool_workers());
}

}  // namespace rapt
