// BERT, RoBERTa and DistilBERT: each layer adds to its input, then normalizes.
#include "models/network/pass.h"

namespace rapt::models {

Tensor run_bert(Pass& pass) {
  Tensor x = pass.embedded();
  (*pass.parts().input_norm)(x, x);
  pass.keep(0, x);
  for (std::size_t n = 0; n < pass.parts().blocks.size(); ++n) {
    const Block& block = pass.parts().blocks[n];
    add(x, pass.attended(n, x));
    block.attention_norm(x, x);
    add(x, pass.transformed(n, x));
    block.mlp_norm(x, x);
    pass.keep(n + 1, x);
  }
  return x;
}

}  // namespace rapt::models
