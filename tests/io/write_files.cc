// Writes one file of each kind into a folder, for read_back.py to read.
#include <cstdio>
#include <string>
#include <vector>

#include "rapt/npy.h"
#include "rapt/safetensors.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::puts("write_files FOLDER");
    return 2;
  }
  const std::string folder = argv[1];
  std::vector<double> values(24);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i % 7) - 2.0 + 0.25 * static_cast<double>(i);
  const auto wide = rapt::Tensor::from<double>({2, 3, 4}, values);

  std::vector<rapt::Tensor> tensors;
  std::vector<rapt::NamedTensor> named;
  for (const rapt::DType dtype :
       {rapt::DType::boolean, rapt::DType::f16, rapt::DType::f32, rapt::DType::f64, rapt::DType::bf16}) {
    tensors.push_back(wide.to(dtype));
    named.push_back({std::string(rapt::name_of(dtype)), tensors.back().view()});
  }
  named.push_back({"transposed", wide.view().transpose(0, 2)});
  const rapt::Tensor scalar(rapt::Dims{}), empty(rapt::Dims{0, 3});
  named.push_back({"scalar", scalar});
  named.push_back({"empty", empty});
  named.push_back({"größe \"quoted\"", wide});
  for (std::size_t i = 0; i + 1 < named.size(); ++i)
    rapt::write_npy(folder + "/" + named[i].name + ".npy", named[i].value);
  rapt::write_npz(folder + "/stored.npz", named);
  rapt::write_npz(folder + "/deflated.npz", named, {.compress = true});
  rapt::write_safetensors(folder + "/all.safetensors", named, {{"format", "np"}, {"größe", "\"x\"\n"}});
  return 0;
}
