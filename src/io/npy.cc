#include "io/npy.h"

#include <algorithm>
#include <utility>

#include "io/atomic_file.h"
#include "io/file_map.h"
#include "io/file_types.h"
#include "io/tensor_bytes.h"

namespace rapt {
namespace io {
namespace {

void swap_bytes(std::span<std::byte> data, std::size_t size) {
  if (size == 1) return;
  for (std::size_t at = 0; at + size <= data.size(); at += size) {
    const auto item = data.subspan(at, size);
    std::reverse(item.begin(), item.end());
  }
}

Tensor make_tensor(const Dims& shape, DType dtype, const FileChecks& checks) {
  try {
    return Tensor(shape, dtype);
  } catch (const std::bad_alloc&) {
    checks.fail("shape ", shape, " of ", dtype, " needs more memory than is available");
  }
}

std::span<std::byte> bytes_of(Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.view().data()),
          static_cast<std::size_t>(tensor.count()) * size_of(tensor.dtype())};
}

template <class Integer>
void convert(std::span<const std::byte> from, Tensor& to, std::size_t first) {
  for (std::size_t i = 0; i < from.size() / sizeof(Integer); ++i) {
    Integer value{};
    std::memcpy(&value, from.data() + i * sizeof value, sizeof value);
    switch (to.dtype()) {
      case DType::boolean: to.values<bool>()[first + i] = value != 0; break;
      case DType::f64: to.values<double>()[first + i] = static_cast<double>(value); break;
      default: to.values<float>()[first + i] = static_cast<float>(value);
    }
  }
}

using Convert = void (*)(std::span<const std::byte>, Tensor&, std::size_t);

Convert converter(char kind, std::uint64_t size) {
  const bool has_sign = kind == 'i';
  switch (size) {
    case 1: return has_sign ? convert<std::int8_t> : convert<std::uint8_t>;
    case 2: return has_sign ? convert<std::int16_t> : convert<std::uint16_t>;
    case 4: return has_sign ? convert<std::int32_t> : convert<std::uint32_t>;
    case 8: return has_sign ? convert<std::int64_t> : convert<std::uint64_t>;
    default: return nullptr;
  }
}

// Converts integers block by block, so that the original array is never in memory as a whole.
Tensor read_integers(const NpyHeader& header, const Dims& shape, DType dtype, const FileChecks& checks,
                     const ReadData& read) {
  checks.require(dtype == DType::boolean || dtype == DType::f32 || dtype == DType::f64, "integers cannot be read as ",
                 dtype, "; bool, f32 and f64 can be used");
  const auto size = static_cast<std::size_t>(header.item_size);
  const Convert convert_block = converter(header.kind, size);
  Tensor tensor = make_tensor(shape, dtype, checks);
  std::vector<std::byte> block(std::size_t{1} << 16);
  const auto count = static_cast<std::size_t>(tensor.count());
  for (std::size_t done = 0; done < count;) {
    const std::size_t step = std::min(count - done, block.size() / size);
    const auto part = std::span(block).first(step * size);
    read(part);
    if (header.info.big_endian) swap_bytes(part, size);
    convert_block(part, tensor, done);
    done += step;
  }
  return tensor;
}

}  // namespace

NpyArray read_array(const NpyHeader& header, std::uint64_t available, const NpyOptions& options,
                    const FileChecks& checks, const ReadData& read) {
  const NpyInfo& info = header.info;
  const bool integer =
      (header.kind == 'i' || header.kind == 'u') && converter(header.kind, header.item_size) != nullptr;
  const bool convert = integer && options.integers_as.has_value();
  if (!convert && !info.dtype) {
    checks.fail("holds ", info.type, ", which rapt does not support",
                integer ? "; integers can be read as bool, f32 or f64 (NpyOptions::integers_as)" : "");
  }
  Dims shape{std::span<const std::int64_t>(info.shape)};
  const auto count = checked_count(info.shape);
  std::uint64_t bytes = 0;
  const bool countable = count && !__builtin_mul_overflow(*count, header.item_size, &bytes);
  checks.require(countable, "has shape ", shape, ", more bytes than a 64-bit integer can count");
  checks.require(bytes <= available, "shape ", shape, " of ", info.type, " takes ", bytes, " bytes from byte ",
                 header.data_begin, ", but only ", available, " remain");
  checks.require(bytes == available, "the array ends at byte ", header.data_begin + bytes, ", but there are ",
                 header.data_begin + available, " bytes");

  if (info.fortran_order) {  // memory in row-major order has the dimensions reversed
    std::reverse(&shape[0], &shape[0] + shape.rank());
  }
  if (convert) return {read_integers(header, shape, *options.integers_as, checks, read), info.fortran_order};
  Tensor tensor = make_tensor(shape, *info.dtype, checks);
  const auto memory = bytes_of(tensor);
  if (!memory.empty()) read(memory);
  if (info.big_endian) swap_bytes(memory, size_of(*info.dtype));
  if (*info.dtype == DType::boolean) make_bools(memory);
  return {std::move(tensor), info.fortran_order};
}

}  // namespace io

ConstTensorView NpyArray::view() const {
  const ConstTensorView view = memory_.view();
  if (!fortran_order_) return view;
  Dims shape = view.shape(), strides = view.strides();
  std::reverse(&shape[0], &shape[0] + shape.rank());
  std::reverse(&strides[0], &strides[0] + strides.rank());
  return {view.data(), view.dtype(), shape, strides};
}

Tensor NpyArray::tensor() && {
  if (fortran_order_ && memory_.shape().rank() > 1) return Tensor::copy_of(view());
  return std::move(memory_);
}

NpyArray read_npy(std::span<const std::byte> bytes, const std::string& name, const NpyOptions& options) {
  const io::FileChecks checks("npy", name);
  const io::NpyHeader header = io::parse_npy_header(bytes, checks);
  auto data = bytes.subspan(static_cast<std::size_t>(header.data_begin));
  return io::read_array(header, data.size(), options, checks, [&](std::span<std::byte> to) {
    std::memcpy(to.data(), data.data(), to.size());
    data = data.subspan(to.size());
  });
}

NpyArray read_npy(const std::string& path, const NpyOptions& options) {
  const io::FileMap map(path, io::FileChecks("npy", path));
  return read_npy(map.bytes(), path, options);
}

NpyInfo npy_info(std::span<const std::byte> bytes, const std::string& name) {
  return io::parse_npy_header(bytes, io::FileChecks("npy", name)).info;
}

NpyInfo npy_info(const std::string& path) {
  const io::FileMap map(path, io::FileChecks("npy", path));
  return npy_info(map.bytes(), path);
}

namespace {

void write_to(io::Sink& sink, const ConstTensorView& tensor) {
  sink.write(io::as_bytes(io::npy_header_for(tensor)));
  io::for_each_block(tensor, [&](io::Bytes bytes) { sink.write(bytes); });
}

}  // namespace

void write_npy(const std::string& path, const ConstTensorView& tensor) {
  const io::FileChecks checks("npy", path);
  io::require_writable(tensor, checks.of("the tensor"));
  io::AtomicFile file(path, checks);
  write_to(file, tensor);
  file.commit();
}

std::vector<std::byte> npy_bytes(const ConstTensorView& tensor) {
  io::require_writable(tensor, io::FileChecks("npy", "(in memory)").of("the tensor"));
  io::MemorySink sink;
  write_to(sink, tensor);
  return sink.take();
}

}  // namespace rapt
