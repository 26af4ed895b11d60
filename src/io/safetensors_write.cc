// Writing safetensors; the format is described in safetensors.cc.
#include <algorithm>
#include <numeric>
#include <set>

#include "io/atomic_file.h"
#include "io/file_types.h"
#include "io/json.h"
#include "io/tensor_bytes.h"
#include "rapt/safetensors.h"

namespace rapt {
namespace {

using io::FileChecks;
using io::quoted;

void require_tensors(const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& metadata,
                     const FileChecks& checks) {
  std::set<std::string_view> seen;
  for (const NamedTensor& tensor : tensors) {
    const FileChecks own = checks.of(text("tensor ", quoted(tensor.name)));
    own.require(tensor.name != "__metadata__", "this name is reserved for metadata");
    own.require(io::is_utf8(tensor.name), "its name is not UTF-8");
    own.require(seen.insert(tensor.name).second, "is given twice");
    io::require_writable(tensor.value, own);
  }
  for (const auto& [key, value] : metadata) {
    checks.require(io::is_utf8(key) && io::is_utf8(value), "metadata ", quoted(key), " is not UTF-8");
  }
}

// The order of the data: the widest types first, so that each tensor starts at a multiple of the size of its type.
// Tensors with equally wide types keep the given order.
std::vector<std::size_t> data_order(const std::vector<NamedTensor>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].value.dtype()) > size_of(tensors[b].value.dtype());
  });
  return order;
}

std::string header_of(const std::vector<NamedTensor>& tensors, const std::vector<std::size_t>& order,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<std::uint64_t> begins(tensors.size());
  std::uint64_t at = 0;
  for (const std::size_t index : order) {
    begins[index] = at;
    at += io::byte_count(tensors[index].value);
  }
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (header.back() != '{') header += ',';
      header += io::json_string(key) + ':' + io::json_string(value);
    }
    header += '}';
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ConstTensorView& view = tensors[i].value;
    if (header.size() > 1) header += ',';
    header += text(io::json_string(tensors[i].name), ":{\"dtype\":\"", io::file_type(view.dtype()).safetensors,
                   "\",\"shape\":[");
    for (int dim = 0; dim < view.rank(); ++dim) header += text(dim == 0 ? "" : ",", view.size(dim));
    header += text("],\"data_offsets\":[", begins[i], ',', begins[i] + io::byte_count(view), "]}");
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

void write_to(io::Sink& sink, const std::vector<NamedTensor>& tensors,
              const std::map<std::string, std::string>& metadata) {
  const std::vector<std::size_t> order = data_order(tensors);
  const std::string header = header_of(tensors, order, metadata);
  const std::uint64_t size = header.size();
  sink.write(std::as_bytes(std::span(&size, 1)));
  sink.write(io::as_bytes(header));
  for (const std::size_t index : order) {
    io::for_each_block(tensors[index].value, [&](io::Bytes bytes) { sink.write(bytes); });
  }
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const FileChecks checks("safetensors", path);
  require_tensors(tensors, metadata, checks);
  io::AtomicFile file(path, checks);
  write_to(file, tensors, metadata);
  file.commit();
}

std::vector<std::byte> safetensors_bytes(const std::vector<NamedTensor>& tensors,
                                         const std::map<std::string, std::string>& metadata) {
  require_tensors(tensors, metadata, FileChecks("safetensors", "(in memory)"));
  io::MemorySink sink;
  write_to(sink, tensors, metadata);
  return sink.take();
}

}  // namespace rapt
