// NumPy files: .npy with one array, .npz with several named arrays.
//
//   const NpyArray scores = read_npy("scores.npy");
//   attention(scores.view(), …);
//
//   const NpzFile file("inputs.npz");
//   const NpyArray query = file.at("query");
//   write_npz("outputs.npz", {{"out", out}, {"lse", lse}}, {.compress = true});
//
// Supported arrays:
//   float16, float32, float64, bool, in either byte order, in C or Fortran order, of rank 0 to 8, also empty
//   bfloat16  of ml_dtypes, which NumPy stores as '<V2', an untyped 2-byte field: every V2 is read as bfloat16.
//             NumPy reads the files that rapt writes as '|V2'; array.view(ml_dtypes.bfloat16) restores the type
//   integers  only on request, and converted: NpyOptions
// Other types are rejected, with a message that names the type: npy: scores.npy: holds int64; …
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rapt/named_tensor.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

struct NpyOptions {
  // Converts integers (int8 … int64, uint8 … uint64) to bool (nonzero is true), f32 or f64 (rounded to nearest). Use
  // DType::boolean for an int64 mask of zeros and ones. Arrays of other types are unchanged.
  std::optional<DType> integers_as;
};

// The description of an array in its file header.
struct NpyInfo {
  std::string type;            // NumPy's name: "float32", "int64"
  std::optional<DType> dtype;  // rapt's type; none if rapt does not support it
  std::vector<std::int64_t> shape;
  bool fortran_order = false;
  bool big_endian = false;
};

// An array that owns its memory.
class NpyArray {
 public:
  NpyArray() = default;
  NpyArray(Tensor memory, bool fortran_order) : memory_(std::move(memory)), fortran_order_(fortran_order) {}

  // In the array's shape. Fortran order is expressed by strides, so no data is moved.
  ConstTensorView view() const;
  DType dtype() const { return memory_.dtype(); }
  // Row-major: the memory itself, or a copy if the order is Fortran.
  Tensor tensor() &&;
  Tensor tensor() const& { return Tensor::copy_of(view()); }

 private:
  Tensor memory_;  // for Fortran order: the array with its dimensions reversed
  bool fortran_order_ = false;
};

NpyArray read_npy(const std::string& path, const NpyOptions& options = {});
// Reads from memory, for example from standard input; `name` is used in error messages.
NpyArray read_npy(std::span<const std::byte> bytes, const std::string& name, const NpyOptions& options = {});
NpyInfo npy_info(const std::string& path);
NpyInfo npy_info(std::span<const std::byte> bytes, const std::string& name);

// Writes row-major, whatever the view's strides. Atomic, like write_safetensors.
void write_npy(const std::string& path, const ConstTensorView& tensor);
std::vector<std::byte> npy_bytes(const ConstTensorView& tensor);

// An open .npz: a zip archive of .npy files. Opening it reads the archive's directory. A member is read and
// decompressed on access, and its checksum is verified. Members that are not .npy files are skipped.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  // A file in memory, which must outlive this object; `name` is used in error messages.
  NpzFile(std::span<const std::byte> bytes, const std::string& name);
  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;
  ~NpzFile();

  std::vector<std::string> names() const;  // without ".npy", in archive order
  bool contains(std::string_view name) const;
  NpyInfo info(std::string_view name) const;  // reads the member's header only
  NpyArray at(std::string_view name, const NpyOptions& options = {}) const;
  std::optional<NpyArray> find(std::string_view name, const NpyOptions& options = {}) const;

 private:
  struct [[gnu::visibility("hidden")]] State;
  std::unique_ptr<State> state_;
};

struct NpzWriteOptions {
  bool compress = false;  // deflate, like numpy.savez_compressed
};

void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors, const NpzWriteOptions& options = {});
std::vector<std::byte> npz_bytes(const std::vector<NamedTensor>& tensors, const NpzWriteOptions& options = {});

}  // namespace rapt
#pragma GCC visibility pop
