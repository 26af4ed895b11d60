// The questions, by file.
#pragma once

#include "exhibits/builder.h"

namespace rapt::exhibits {

// question_layouts.cc, question_axes.cc: memory layouts
Question question_view();
Question question_permute();
Question question_batch_first();
// question_masks.cc
Question question_mask_meaning();
Question question_hiding();
// question_alignment.cc
Question question_alignment();
// question_softmax.cc
Question question_scale();
Question question_axis();
// question_vectors.cc: what q, k and v are, and the weights that a layer returns
Question question_qkv();
Question question_need_weights();
// question_heads.cc
Question question_projection();
Question question_segments();
Question question_several_heads();
// question_head_count.cc
Question question_divisible();
Question question_parallel();
// question_training.cc
Question question_all_positions();
Question question_buffer();
// question_cache.cc
Question question_cache();

}  // namespace rapt::exhibits
