// Saves a layer and loads it, with the naming schemes of other libraries.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "rapt/multi_head_attention.h"

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "rapt-files-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const std::string model = folder + "/model.safetensors";

  // A file from another program: nn.Linear layers called q_proj, k_proj, v_proj and o_proj.
  const rapt::MultiHeadAttention saved({.embed_size = 8, .heads = 4, .kv_heads = 2}, 1);
  saved.save(model, {.family = rapt::NameFamily::q_proj, .prefix = "encoder.layers.0.self_attn"});

  // Finds the layer in the file. The layer's sizes come from the tensors; only the number of heads must be given.
  const rapt::LoadedLayer loaded =
      rapt::MultiHeadAttention::load(model, {.prefix = "encoder.layers.0", .heads = 4, .batch_first = true});
  for (const rapt::TensorRole& tensor : loaded.found.tensors) {
    std::printf("%-45s %s\n", tensor.tensor.c_str(), tensor.role.c_str());
  }
  const rapt::Tensor y = loaded.layer.forward(rapt::Tensor({1, 3, 8})).out;
  loaded.layer.save(folder + "/torch.safetensors");  // PyTorch's names; set the family for others

  std::printf("out %s, kv heads %d\n", rapt::to_string(y.shape()).c_str(),
              static_cast<int>(loaded.layer.config().kv_heads));
  std::filesystem::remove_all(folder);
}
