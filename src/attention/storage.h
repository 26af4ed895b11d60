// How k and v are stored: in pages, and in i8 with scales.
#pragma once

#include "attention/checks.h"
#include "core/problem.h"

namespace rapt {

inline bool has_pages(const AttentionOptions& options) {
  return !options.pages.table.empty() || options.pages.per_row != 0;
}

// Sets the problem's pages, key length and scales. Its query, key and value have already been checked.
void resolve_storage(const Checks& checks, const AttentionOptions& options, AttentionProblem& problem);

// Checks every page that will be read, once the key counts of the sequences are known.
void check_page_table(const Checks& checks, const AttentionProblem& problem);

// Rejects pages and i8 for backward, which supports only plain tensors.
void require_plain_storage(const Checks& checks, const ConstTensorView& key, const ConstTensorView& value,
                           const AttentionOptions& options);

}  // namespace rapt
