#include "cpu/layer/layer_ops.h"

namespace rapt::cpu {

constinit const LayerOps kLayerOps = {
    .copy = copy_elements,
    .fill = fill,
    .rotate = rotate,
    .fill_rotary_table = fill_rotary_table,
    .append = append,
    .find_not_finite = find_not_finite,
    .drop_output = drop_output,
    .add = add,
    .add_row_sums = add_row_sums,
    .norm = norm,
    .norm_backward = norm_backward,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .embed = embed,
    .embed_backward = embed_backward,
    .cross_entropy = cross_entropy,
    .add_squares = add_squares,
    .scale = scale,
    .adam = adam,
};

}  // namespace rapt::cpu
