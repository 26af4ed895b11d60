// The settings of a layer, converted from the tuples that the Python classes build from their keywords, and back.
#pragma once

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "rapt/multi_head_attention.h"

namespace rapt::python {

// A rapt.LayerConfig: the fields of MultiHeadAttentionConfig, in their order.
MultiHeadAttentionConfig layer_config(nb::handle object);
nb::tuple to_tuple(const MultiHeadAttentionConfig& config);

// (prefix, heads, kv_heads, batch_first, add_zero_attention, dropout, rotary, dtype), as LoadOptions has them.
LoadOptions load_options(nb::handle object);
// (family, prefix, packed, dtype), as SaveOptions has them.
SaveOptions save_options(const char* function, nb::handle object);
// A rapt.FoundLayer.
nb::tuple to_tuple(const FoundLayer& found);

}  // namespace rapt::python
