// GPT-2: each layer normalizes a copy of its input and adds to the input itself.
#include "models/network/pass.h"

namespace rapt::models {

Tensor run_gpt2(Pass& pass) {
  Tensor x = pass.embedded();
  Tensor normed(x.shape(), DType::f32);
  const std::vector<Block>& blocks = pass.parts().blocks;
  for (std::size_t n = 0; n < blocks.size(); ++n) {
    pass.keep(n, x);
    blocks[n].attention_norm(normed, x);
    add(x, pass.attended(n, normed));
    blocks[n].mlp_norm(normed, x);
    add(x, pass.transformed(n, normed));
  }
  (*pass.parts().output_norm)(x, x);
  pass.keep(blocks.size(), x);
  return x;
}

}  // namespace rapt::models
