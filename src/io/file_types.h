// The names of element types in file formats, one row per type.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "rapt/dtype.h"

namespace rapt::io {

struct FileType {
  DType dtype;
  std::string_view safetensors;
  char npy;  // NumPy's letter for the kind; the size in bytes follows it
};

inline constexpr std::array kFileTypes = {
    FileType{DType::f64, "F64", 'f'},   FileType{DType::f32, "F32", 'f'},
    FileType{DType::bf16, "BF16", 'V'},  // NumPy has no bfloat16; that of ml_dtypes is written as a 2-byte void type
    FileType{DType::f16, "F16", 'f'},   FileType{DType::boolean, "BOOL", 'b'},
    FileType{DType::i8, "I8", 'i'},
};

constexpr const FileType& file_type(DType dtype) {
  for (const FileType& type : kFileTypes) {
    if (type.dtype == dtype) return type;
  }
  return kFileTypes.front();  // not reached, because every type has a row, as a test checks
}

constexpr std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const FileType& type : kFileTypes) {
    if (type.safetensors == name) return type.dtype;
  }
  return std::nullopt;
}

constexpr std::optional<DType> dtype_of_npy(char kind, std::uint64_t size) {
  for (const FileType& type : kFileTypes) {
    if (type.npy == kind && size_of(type.dtype) == size) return type.dtype;
  }
  return std::nullopt;
}

}  // namespace rapt::io
