// Reading safetensors. A file is
//   u64        the header's size, little-endian
//   header     JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …, "__metadata__": {…}}
//   data       the tensors' bytes; data_offsets count from its start, and the tensors cover it exactly once
#include "rapt/safetensors.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "io/file_map.h"
#include "io/file_types.h"
#include "io/json.h"
#include "io/tensor_bytes.h"

namespace rapt {
namespace {

using io::Bytes;
using io::FileChecks;
using io::quoted;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the limit of the safetensors package

// The types of the format and their sizes, so that a shape can be checked against its byte size.
struct FormatType {
  std::string_view name;
  unsigned bits;
};
constexpr std::array kFormatTypes = {
    FormatType{"BOOL", 8},    FormatType{"F4", 4},          FormatType{"F6_E2M3", 6},     FormatType{"F6_E3M2", 6},
    FormatType{"U8", 8},      FormatType{"I8", 8},          FormatType{"F8_E5M2", 8},     FormatType{"F8_E4M3", 8},
    FormatType{"F8_E8M0", 8}, FormatType{"F8_E4M3FNUZ", 8}, FormatType{"F8_E5M2FNUZ", 8}, FormatType{"I16", 16},
    FormatType{"U16", 16},    FormatType{"F16", 16},        FormatType{"BF16", 16},       FormatType{"I32", 32},
    FormatType{"U32", 32},    FormatType{"F32", 32},        FormatType{"C64", 64},        FormatType{"F64", 64},
    FormatType{"I64", 64},    FormatType{"U64", 64},
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string result = "[";
  for (std::size_t i = 0; i < shape.size() && i < 12; ++i) result += text(i == 0 ? "" : ", ", shape[i]);
  return result + (shape.size() > 12 ? ", …]" : "]");
}

// Reads the header into entries, and checks each entry by itself and all of them together.
class HeaderReader {
 public:
  HeaderReader(Bytes file, const FileChecks& checks) : file_(file), checks_(checks) {}

  void read(std::vector<SafetensorsEntry>& entries, std::map<std::string, std::string>& metadata) {
    checks_.require(file_.size() >= 8, "has ", file_.size(), " bytes; a header's size alone takes 8");
    const auto size = io::read_number<std::uint64_t>(file_, 0);
    checks_.require(size <= file_.size() - 8, "the header ends at byte ", text_of_sum(8, size), ", the file has ",
                    file_.size(), " bytes");
    checks_.require(size <= kMaxHeader, "the header has ", size, " bytes; the limit is ", kMaxHeader);
    data_ = 8 + size;
    io::JsonReader json(io::as_text(file_.subspan(8, static_cast<std::size_t>(size))), checks_, 8);
    json.object([&](const std::string& key) {
      if (key == "__metadata__") {
        json.object([&](const std::string& word) { metadata.emplace(word, json.string()); });
      } else {
        entries.push_back(entry(json, key));
      }
    });
    json.end();
    require_cover(entries);
  }

 private:
  static std::string text_of_sum(std::uint64_t a, std::uint64_t b) {
    const auto sum = io::checked_add(a, b);
    return sum ? std::to_string(*sum) : "2^64 or later";
  }

  SafetensorsEntry entry(io::JsonReader& json, const std::string& name) const {
    SafetensorsEntry entry;
    entry.name = name;
    const FileChecks checks = checks_.of(text("tensor ", quoted(name)));
    bool has_type = false, has_shape = false, has_offsets = false;
    std::vector<std::uint64_t> offsets;
    json.object([&](const std::string& key) {
      if (key == "dtype") {
        has_type = true;
        entry.type = json.string();
      } else if (key == "shape") {
        has_shape = true;
        json.array([&] { entry.shape.push_back(json.whole_number()); });
      } else if (key == "data_offsets") {
        has_offsets = true;
        json.array([&] {
          offsets.push_back(static_cast<std::uint64_t>(json.whole_number()));
          checks.require(offsets.size() <= 2, "data_offsets must be two numbers");
        });
      } else {
        json.skip();
      }
    });
    checks.require(has_type, "has no dtype");
    checks.require(has_shape, "has no shape");
    checks.require(has_offsets, "has no data_offsets");
    checks.require(offsets.size() == 2, "data_offsets must be two numbers");
    entry.dtype = io::dtype_of_safetensors(entry.type);
    // Neither sum overflows, because both offsets are less than 2^63, and data_ is at most the size of the file.
    entry.begin = data_ + offsets[0];
    entry.end = data_ + offsets[1];
    require_entry(entry);
    return entry;
  }

  void require_entry(const SafetensorsEntry& entry) const {
    const std::string name = quoted(entry.name);
    checks_.require(entry.begin <= entry.end, "tensor ", name, " begins at byte ", entry.begin,
                    " and ends before it, at byte ", entry.end);
    checks_.require(entry.end <= file_.size(), "tensor ", name, " ends at byte ", entry.end, ", the file has ",
                    file_.size(), " bytes: it may have been cut short; copy or download it again");
    const auto count = io::checked_count(entry.shape);
    checks_.require(count.has_value(), "tensor ", name, " has shape ", shape_text(entry.shape),
                    ", more elements than a 64-bit integer can count");
    const auto* type = std::find_if(kFormatTypes.begin(), kFormatTypes.end(),
                                    [&](const FormatType& candidate) { return candidate.name == entry.type; });
    if (type == kFormatTypes.end()) return;  // an unknown, newer type: only its position in the file is known
    const std::uint64_t bytes = entry.end - entry.begin;
    std::uint64_t bits = 0;
    const bool same =
        !__builtin_mul_overflow(*count, std::uint64_t{type->bits}, &bits) && bits % 8 == 0 && bits / 8 == bytes;
    checks_.require(same, "tensor ", name, " at byte ", entry.begin, " has ", bytes, " bytes; ", *count,
                    " elements of ", entry.type, ", shape ", shape_text(entry.shape), ", have another size");
  }

  // Every byte of the data belongs to one tensor.
  void require_cover(const std::vector<SafetensorsEntry>& entries) const {
    std::vector<const SafetensorsEntry*> order;
    order.reserve(entries.size());
    for (const SafetensorsEntry& entry : entries) order.push_back(&entry);
    std::sort(order.begin(), order.end(),
              [](const auto* a, const auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
    std::uint64_t covered = data_;
    const SafetensorsEntry* last = nullptr;
    for (const SafetensorsEntry* entry : order) {
      if (entry->begin < covered) {
        checks_.fail("tensor ", quoted(entry->name), " begins at byte ", entry->begin, ", within tensor ",
                     quoted(last->name), ", which ends at byte ", covered);
      }
      checks_.require(entry->begin == covered, "bytes ", covered, " to ", entry->begin,
                      " belong to no tensor; the next is ", quoted(entry->name));
      covered = entry->end;
      last = entry;
    }
    checks_.require(covered == file_.size(), "bytes ", covered, " to ", file_.size(), " belong to no tensor");
  }

  Bytes file_;
  const FileChecks& checks_;
  std::uint64_t data_ = 0;  // where the data starts
};

}  // namespace

struct SafetensorsFile::State {
  explicit State(const std::string& name) : checks("safetensors", name) {}

  void open(Bytes file) {
    bytes = file;
    HeaderReader(bytes, checks).read(entries, metadata);
    for (std::size_t i = 0; i < entries.size(); ++i) places.emplace(entries[i].name, i);
  }

  FileChecks checks;
  io::FileMap map;
  Bytes bytes;
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
  std::unordered_map<std::string_view, std::size_t> places;  // the names are stored in `entries`
  std::mutex mutex;                                          // guards `copies`
  std::unordered_map<std::size_t, Tensor> copies;
};

SafetensorsFile::SafetensorsFile(const std::string& path) : state_(std::make_unique<State>(path)) {
  state_->map = io::FileMap(path, state_->checks);
  state_->open(state_->map.bytes());
}

SafetensorsFile::SafetensorsFile(std::span<const std::byte> bytes, const std::string& name)
    : state_(std::make_unique<State>(name)) {
  state_->open(bytes);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

const std::vector<SafetensorsEntry>& SafetensorsFile::entries() const { return state_->entries; }
const std::map<std::string, std::string>& SafetensorsFile::metadata() const { return state_->metadata; }

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : state_->entries) names.push_back(entry.name);
  return names;
}

const SafetensorsEntry* SafetensorsFile::entry(std::string_view name) const {
  const auto found = state_->places.find(name);
  return found == state_->places.end() ? nullptr : &state_->entries[found->second];
}

std::optional<ConstTensorView> SafetensorsFile::find(std::string_view name) const {
  const auto found = state_->places.find(name);
  if (found == state_->places.end()) return std::nullopt;
  return view_of(found->second);
}

ConstTensorView SafetensorsFile::at(std::string_view name) const {
  if (const auto view = find(name)) return *view;
  state_->checks.fail("has no tensor ", quoted(name), "; it has ", io::list_of(names()));
}

ConstTensorView SafetensorsFile::view_of(std::size_t index) const {
  const SafetensorsEntry& entry = state_->entries[index];
  const FileChecks& checks = state_->checks;
  checks.require(entry.dtype.has_value(), "tensor ", quoted(entry.name), " holds ", quoted(entry.type),
                 ", which rapt does not support");
  checks.require(entry.shape.size() <= Dims::kMaxRank, "tensor ", quoted(entry.name), " has rank ", entry.shape.size(),
                 "; a view has at most ", int{Dims::kMaxRank});
  const Dims shape{std::span<const std::int64_t>(entry.shape)};
  const Bytes bytes =
      state_->bytes.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.end - entry.begin));
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(*entry.dtype) == 0;
  const bool plain = *entry.dtype != DType::boolean ||
                     std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte <= std::byte{1}; });
  if (bytes.empty() || (aligned && plain)) return {bytes.data(), *entry.dtype, shape};

  const std::lock_guard lock(state_->mutex);
  auto found = state_->copies.find(index);
  if (found == state_->copies.end()) {
    Tensor copy(shape, *entry.dtype);
    const auto memory = std::span(static_cast<std::byte*>(copy.view().data()), bytes.size());
    std::memcpy(memory.data(), bytes.data(), bytes.size());
    if (!plain) io::make_bools(memory);
    found = state_->copies.emplace(index, std::move(copy)).first;
  }
  return std::as_const(found->second).view();
}

}  // namespace rapt
