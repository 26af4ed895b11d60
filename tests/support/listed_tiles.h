// The tiles of a plan in the order in which they are handed out.
#pragma once

#include <vector>

#include "cuda/rows_arguments.h"
#include "cuda/rows_plan.h"

namespace rapt::test {

// Whether scores change between the products and the softmax, so that the general kernel runs.
bool is_general(const cuda::Arguments& call);

// The list of a plan whose sequences differ: the tiles of a column, longest first; else empty.
std::vector<cuda::TileEntry> listed_tiles(const cuda::Arguments& call, const cuda::RowsPlan& plan);

// All tiles.
std::vector<cuda::Tile> tiles_of(const cuda::Arguments& call, const cuda::RowsPlan& plan);

}  // namespace rapt::test
