// NumPy's files: .npy with one array, .npz with several by name.
//
//   const NpyArray scores = read_npy("scores.npy");
//   attention(scores.view(), …);
//
//   const NpzFile file("inputs.npz");
//   const NpyArray query = file.at("query");
//   write_npz("outputs.npz", {{"out", out}, {"lse", lse}}, {.compress = true});
//
// Which arrays are read:
//   float16, float32, float64, bool, in either byte order and in C or Fortran order, of rank 0 to 8, empty ones too
//   bfloat16 of ml_dtypes, for which NumPy writes the type '<V2', "two bytes of something": every V2 is taken for it.
//             NumPy reads what we write as '|V2'; there, `array.view(ml_dtypes.bfloat16)` gives it its name back
//   integers  on request only, converted: NpyOptions
// Others are refused, with their name. Errors read: npy: scores.npy: holds int64; …
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
  // int8 to int64 and uint8 to uint64 become bool (anything but 0 is true), f32 or f64 (to nearest). An int64 mask of
  // zeros and ones is read with DType::boolean. Arrays of other types are not touched.
  std::optional<DType> integers_as;
};

// What a file says of its array.
struct NpyInfo {
  std::string type;            // in NumPy's words: "float32", "int64"
  std::optional<DType> dtype;  // in ours; none where rapt has no such type
  std::vector<std::int64_t> shape;
  bool fortran_order = false;
  bool big_endian = false;
};

// An array in memory of its own.
class NpyArray {
 public:
  NpyArray() = default;
  NpyArray(Tensor memory, bool fortran_order) : memory_(std::move(memory)), fortran_order_(fortran_order) {}

  // In the array's own shape. Fortran order is a matter of strides: nothing was moved.
  ConstTensorView view() const;
  DType dtype() const { return memory_.dtype(); }
  // Row-major: the memory itself, or a copy where the order is Fortran's.
  Tensor tensor() &&;
  Tensor tensor() const& { return Tensor::copy_of(view()); }

 private:
  Tensor memory_;  // in Fortran order: the array with its dimensions reversed
  bool fortran_order_ = false;
};

NpyArray read_npy(const std::string& path, const NpyOptions& options = {});
// From memory, for example what came through standard input; `name` is what errors call it.
NpyArray read_npy(std::span<const std::byte> bytes, const std::string& name, const NpyOptions& options = {});
NpyInfo npy_info(const std::string& path);
NpyInfo npy_info(std::span<const std::byte> bytes, const std::string& name);

// Row-major, whatever the view's strides. Whole or absent, as write_safetensors.
void write_npy(const std::string& path, const ConstTensorView& tensor);
std::vector<std::byte> npy_bytes(const ConstTensorView& tensor);

// An open .npz: a zip archive whose members are .npy files. Opening one reads its directory; a member is read and
// inflated when it is asked for, and its checksum compared. Members that are no .npy files are passed over.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  // A file that is in memory already, and stays there; `name` is what errors call it.
  NpzFile(std::span<const std::byte> bytes, const std::string& name);
  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;
  ~NpzFile();

  std::vector<std::string> names() const;  // without ".npy", in the archive's order
  bool contains(std::string_view name) const;
  NpyInfo info(std::string_view name) const;  // reads the member's header only
  NpyArray at(std::string_view name, const NpyOptions& options = {}) const;
  std::optional<NpyArray> find(std::string_view name, const NpyOptions& options = {}) const;

 private:
  struct [[gnu::visibility("hidden")]] State;
  std::unique_ptr<State> state_;
};

struct NpzWriteOptions {
  bool compress = false;  // deflate, as numpy.savez_compressed
};

void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors, const NpzWriteOptions& options = {});
std::vector<std::byte> npz_bytes(const std::vector<NamedTensor>& tensors, const NpzWriteOptions& options = {});

}  // namespace rapt
#pragma GCC visibility pop
