#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "io/atomic_file.h"
#include "io/compress.h"
#include "io/file_map.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/tensor_bytes.h"
#include "io/zip.h"
#include "rapt/npy.h"

namespace rapt {
namespace {

using io::Bytes;
using io::FileChecks;
using io::quoted;

constexpr std::string_view kEnding = ".npy";

// Reads the bytes of a member in order, inflated if needed, and computes their checksum.
class MemberReader {
 public:
  MemberReader(Bytes bytes, const io::ZipMember& member, const FileChecks& checks)
      : bytes_(bytes), member_(member), checks_(checks) {
    if (member.method == io::kDeflated) inflater_.emplace(bytes, checks);
  }

  void read(std::span<std::byte> to) {
    if (inflater_) {
      inflater_->read(to);
    } else {
      checks_.require(to.size() <= bytes_.size(), "ends before its array does");
      std::memcpy(to.data(), bytes_.data(), to.size());
      bytes_ = bytes_.subspan(to.size());
    }
    crc_ = io::crc32_of(crc_, to);
  }
  void finish() {
    if (inflater_) inflater_->finish();
    checks_.require(crc_ == member_.crc, "its checksum does not match: the archive is damaged");
  }

 private:
  Bytes bytes_;
  const io::ZipMember& member_;
  const FileChecks& checks_;
  std::optional<io::Inflater> inflater_;
  std::uint32_t crc_ = 0;
};

}  // namespace

struct NpzFile::State {
  explicit State(const std::string& name) : checks("npz", name) {}

  void open(Bytes file) {
    bytes = file;
    members = io::read_zip_directory(file, checks);
    std::erase_if(members, [](const io::ZipMember& member) { return !member.name.ends_with(kEnding); });
    for (std::size_t i = 0; i < members.size(); ++i) {
      std::string_view name = members[i].name;
      name.remove_suffix(kEnding.size());
      places.emplace(name, i);
    }
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const io::ZipMember& member : members) {
      list.push_back(member.name.substr(0, member.name.size() - kEnding.size()));
    }
    return list;
  }
  const io::ZipMember& member(std::string_view name) const {
    const auto found = places.find(name);
    if (found == places.end()) checks.fail("has no array ", quoted(name), "; it has ", io::list_of(names()));
    return members[found->second];
  }

  FileChecks checks;
  io::FileMap map;
  Bytes bytes;
  std::vector<io::ZipMember> members;
  std::unordered_map<std::string_view, std::size_t> places;  // the names are stored in `members`
};

NpzFile::NpzFile(const std::string& path) : state_(std::make_unique<State>(path)) {
  state_->map = io::FileMap(path, state_->checks);
  state_->open(state_->map.bytes());
}

NpzFile::NpzFile(std::span<const std::byte> bytes, const std::string& name) : state_(std::make_unique<State>(name)) {
  state_->open(bytes);
}

NpzFile::NpzFile(NpzFile&&) noexcept = default;
NpzFile& NpzFile::operator=(NpzFile&&) noexcept = default;
NpzFile::~NpzFile() = default;

std::vector<std::string> NpzFile::names() const { return state_->names(); }
bool NpzFile::contains(std::string_view name) const { return state_->places.contains(name); }

namespace {

// Reads the header through `reader`. The first bytes of the header give its length.
std::vector<std::byte> read_header(MemberReader& reader, std::uint64_t full_size, const FileChecks& checks) {
  constexpr std::size_t kFixed = 12;  // enough to know the length of the rest, in any version
  checks.require(full_size >= kFixed, "has ", full_size, " bytes; a .npy header alone takes more");
  std::vector<std::byte> header(kFixed);
  reader.read(header);
  const bool first = header[6] == std::byte{1};
  const std::uint64_t length = first ? 10 + std::uint64_t{io::read_number<std::uint16_t>(header, 8)}
                                     : 12 + std::uint64_t{io::read_number<std::uint32_t>(header, 8)};
  const std::uint64_t wanted = std::min<std::uint64_t>({length, full_size, io::kMaxNpyHeader});
  if (wanted > kFixed) {
    header.resize(static_cast<std::size_t>(wanted));
    reader.read(std::span(header).subspan(kFixed));
  }
  return header;
}

}  // namespace

NpyInfo NpzFile::info(std::string_view name) const {
  const io::ZipMember& member = state_->member(name);
  const FileChecks checks = state_->checks.of(text("member ", quoted(member.name)));
  MemberReader reader(io::zip_member_bytes(state_->bytes, member, checks), member, checks);
  return io::parse_npy_header(read_header(reader, member.full_size, checks), checks).info;
}

NpyArray NpzFile::at(std::string_view name, const NpyOptions& options) const {
  const io::ZipMember& member = state_->member(name);
  const FileChecks checks = state_->checks.of(text("member ", quoted(member.name)));
  MemberReader reader(io::zip_member_bytes(state_->bytes, member, checks), member, checks);
  const std::vector<std::byte> start = read_header(reader, member.full_size, checks);
  const io::NpyHeader header = io::parse_npy_header(start, checks);
  // A header of less than 12 bytes would leave part of the array in `start`; no valid header is so short.
  checks.require(header.data_begin == start.size(), "its header is too short to describe an array");
  NpyArray array = io::read_array(header, member.full_size - header.data_begin, options, checks,
                                  [&](std::span<std::byte> to) { reader.read(to); });
  reader.finish();
  return array;
}

std::optional<NpyArray> NpzFile::find(std::string_view name, const NpyOptions& options) const {
  if (!contains(name)) return std::nullopt;
  return at(name, options);
}

// ---------------------------------------------------------------- writing

namespace {

void require_tensors(const std::vector<NamedTensor>& tensors, const FileChecks& checks) {
  std::set<std::string_view> seen;
  for (const NamedTensor& tensor : tensors) {
    const FileChecks own = checks.of(text("tensor ", quoted(tensor.name)));
    own.require(io::is_utf8(tensor.name) && tensor.name.find('\0') == std::string::npos, "its name is not UTF-8 text");
    own.require(tensor.name.size() + kEnding.size() <= 0xffff, "its name is too long for a zip archive");
    own.require(seen.insert(tensor.name).second, "is given twice");
    io::require_writable(tensor.value, own);
  }
}

void write_to(io::Sink& sink, const std::vector<NamedTensor>& tensors, const NpzWriteOptions& options,
              const FileChecks& checks) {
  io::ZipWriter zip(sink);
  for (const NamedTensor& tensor : tensors) {
    const std::string header = io::npy_header_for(tensor.value);
    zip.begin(tensor.name + std::string(kEnding), options.compress ? io::kDeflated : io::kStored,
              header.size() + io::byte_count(tensor.value));
    std::optional<io::Deflater> deflater;
    if (options.compress) deflater.emplace(sink, checks);
    std::uint32_t crc = 0;
    const auto add = [&](Bytes bytes) {
      crc = io::crc32_of(crc, bytes);
      if (deflater) {
        deflater->write(bytes);
      } else {
        sink.write(bytes);
      }
    };
    add(io::as_bytes(header));
    io::for_each_block(tensor.value, add);
    if (deflater) deflater->finish();
    zip.end(crc);
  }
  zip.finish();
}

}  // namespace

void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors, const NpzWriteOptions& options) {
  const FileChecks checks("npz", path);
  require_tensors(tensors, checks);
  io::AtomicFile file(path, checks);
  write_to(file, tensors, options, checks);
  file.commit();
}

std::vector<std::byte> npz_bytes(const std::vector<NamedTensor>& tensors, const NpzWriteOptions& options) {
  const FileChecks checks("npz", "(in memory)");
  require_tensors(tensors, checks);
  io::MemorySink sink;
  write_to(sink, tensors, options, checks);
  return sink.take();
}

}  // namespace rapt
