#include "io/zip.h"

#include <algorithm>
#include <set>

#include "io/compress.h"
#include "io/json.h"

namespace rapt::io {
namespace {

constexpr std::uint32_t kLocalMark = 0x04034b50, kDirectoryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr std::uint32_t kLongEndMark = 0x06064b50, kLocatorMark = 0x07064b50;
constexpr std::size_t kLocalSize = 30, kEntrySize = 46, kEndSize = 22, kLongEndSize = 56, kLocatorSize = 20;
constexpr std::uint16_t kEncrypted = 1;
constexpr std::uint16_t kLongField = 1;  // the extra field with zip64's numbers
constexpr std::uint32_t kInLongField = 0xffffffff;

struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  std::uint64_t after = 0;  // where the data after the directory begins
};

std::uint16_t u16(Bytes bytes, std::uint64_t at) { return read_number<std::uint16_t>(bytes, at); }
std::uint32_t u32(Bytes bytes, std::uint64_t at) { return read_number<std::uint32_t>(bytes, at); }
std::uint64_t u64(Bytes bytes, std::uint64_t at) { return read_number<std::uint64_t>(bytes, at); }

// Finds the end record. Its comment extends to the end of the file, so this searches backwards through the maximum
// length of a comment.
std::uint64_t find_end(Bytes file, const FileChecks& checks) {
  checks.require(file.size() >= kEndSize, "has ", file.size(), " bytes; the smallest zip archive has 22");
  const std::uint64_t last = file.size() - kEndSize;
  const std::uint64_t first = last > 0xffff ? last - 0xffff : 0;
  for (std::uint64_t at = last + 1; at-- > first;) {
    if (u32(file, at) == kEndMark && at + kEndSize + u16(file, at + 20) == file.size()) return at;
  }
  checks.fail("is not a zip archive, or is truncated: its end record is missing");
}

Directory find_directory(Bytes file, const FileChecks& checks) {
  const std::uint64_t end = find_end(file, checks);
  Directory directory{u32(file, end + 16), u32(file, end + 12), u16(file, end + 10), end};
  bool one_disk = u16(file, end + 4) == 0 && u16(file, end + 6) == 0 && u16(file, end + 8) == directory.count;
  const bool is_long = end >= kLocatorSize && u32(file, end - kLocatorSize) == kLocatorMark;
  if (is_long) {
    const std::uint64_t locator = end - kLocatorSize;
    const std::uint64_t at = u64(file, locator + 8);
    checks.require(at <= locator && locator - at >= kLongEndSize && u32(file, at) == kLongEndMark,
                   "the zip64 end record is not at byte ", at);
    const std::uint64_t count = u64(file, at + 32);
    one_disk = u32(file, locator + 4) == 0 && u32(file, at + 16) == 0 && u32(file, at + 20) == 0 &&
               u64(file, at + 24) == count;
    directory = {u64(file, at + 48), u64(file, at + 40), count, at};
  }
  checks.require(one_disk, "is one part of a multi-part zip archive");
  const auto stop = checked_add(directory.begin, directory.size);
  checks.require(stop && *stop == directory.after, "the directory has ", directory.size, " bytes from byte ",
                 directory.begin, " on, but what follows it is at byte ", directory.after);
  checks.require(directory.count <= directory.size / kEntrySize, "the directory has ", directory.size,
                 " bytes, too few for ", directory.count, " members");
  return directory;
}

// zip64: each number that does not fit into 32 bits is stored in the extra field instead, in the order of the loop
// below.
void read_long_numbers(Bytes extra, ZipMember& member, const FileChecks& checks) {
  const bool any =
      member.full_size == kInLongField || member.size == kInLongField || member.local_begin == kInLongField;
  while (extra.size() >= 4) {
    const std::uint16_t kind = u16(extra, 0), size = u16(extra, 2);
    checks.require(size <= extra.size() - 4, "its extra field is corrupt");
    if (kind == kLongField && any) {
      Bytes numbers = extra.subspan(4, size);
      for (std::uint64_t* number : {&member.full_size, &member.size, &member.local_begin}) {
        if (*number != kInLongField) continue;
        checks.require(numbers.size() >= 8, "its zip64 sizes are missing");
        *number = u64(numbers, 0);
        numbers = numbers.subspan(8);
      }
      return;
    }
    extra = extra.subspan(4U + size);
  }
  checks.require(!any, "its zip64 sizes are missing");
}

void require_member(const ZipMember& member, const Directory& directory, const FileChecks& checks) {
  checks.require((member.flags & kEncrypted) == 0, "is encrypted");
  checks.require(member.method == kStored || member.method == kDeflated, "is compressed by method ", member.method,
                 "; stored and deflated members are read");
  const auto end = checked_add(member.local_begin, kLocalSize);
  const auto stop = end ? checked_add(*end, member.size) : std::nullopt;
  checks.require(stop && *stop <= directory.begin, "has ", member.size, " bytes from byte ", member.local_begin,
                 " on, past the directory at byte ", directory.begin);
  checks.require(member.method != kStored || member.size == member.full_size,
                 "is stored, but its two sizes differ: ", member.size, " and ", member.full_size);
  checks.require(member.full_size / kMaxDeflateRatio <= member.size, "claims to expand to ", member.full_size,
                 " bytes, more than deflate can produce from ", member.size, " bytes");
}

void require_apart(std::vector<ZipMember>& members, const Directory& directory, const FileChecks& checks) {
  std::vector<ZipMember*> order;
  for (ZipMember& member : members) order.push_back(&member);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->local_begin < b->local_begin; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    ZipMember& member = *order[i];
    member.limit = i + 1 < order.size() ? order[i + 1]->local_begin : directory.begin;
    // The sum does not overflow, because require_member has compared it with the position of the directory.
    checks.require(member.local_begin + kLocalSize + member.size <= member.limit, "member ", quoted(member.name),
                   " at byte ", member.local_begin, " overlaps what begins at byte ", member.limit);
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(Bytes file, const FileChecks& checks) {
  const Directory directory = find_directory(file, checks);
  Bytes rest = file.subspan(directory.begin, directory.size);
  std::vector<ZipMember> members;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const std::uint64_t at = directory.after - rest.size();
    checks.require(rest.size() >= kEntrySize && u32(rest, 0) == kDirectoryMark, "the directory is corrupt at byte ",
                   at);
    ZipMember member;
    member.flags = u16(rest, 8), member.method = u16(rest, 10), member.crc = u32(rest, 16);
    member.size = u32(rest, 20), member.full_size = u32(rest, 24), member.local_begin = u32(rest, 42);
    const std::size_t name = u16(rest, 28), extra = u16(rest, 30), comment = u16(rest, 32);
    checks.require(name + extra + comment <= rest.size() - kEntrySize, "the directory is corrupt at byte ", at);
    member.name = as_text(rest.subspan(kEntrySize, name));
    checks.require(is_utf8(member.name), "the name of the member at byte ", at, " is not UTF-8");
    const FileChecks own = checks.of(text("member ", quoted(member.name)));
    own.require(u16(rest, 34) == 0, "is in another part of the archive");
    read_long_numbers(rest.subspan(kEntrySize + name, extra), member, own);
    require_member(member, directory, own);
    rest = rest.subspan(kEntrySize + name + extra + comment);
    members.push_back(std::move(member));
  }
  checks.require(rest.empty(), "the directory has ", rest.size(), " bytes after its last member");
  require_apart(members, directory, checks);
  std::set<std::string_view> seen;
  for (const ZipMember& member : members) {
    checks.require(seen.insert(member.name).second, "member ", quoted(member.name), " appears twice");
  }
  return members;
}

Bytes zip_member_bytes(Bytes file, const ZipMember& member, const FileChecks& checks) {
  const std::uint64_t at = member.local_begin;
  checks.require(u32(file, at) == kLocalMark, "its local header is not at byte ", at);
  const std::size_t name = u16(file, at + 26), extra = u16(file, at + 28);
  const std::uint64_t begin = at + kLocalSize + name + extra;
  checks.require(begin + member.size <= member.limit, "ends at byte ", begin + member.size,
                 ", past what begins at byte ", member.limit);
  const bool same = u16(file, at + 8) == member.method && (u16(file, at + 6) & kEncrypted) == 0 &&
                    as_text(file.subspan(at + kLocalSize, name)) == member.name;
  checks.require(same, "its local header at byte ", at, " disagrees with the directory");
  return file.subspan(begin, member.size);
}

// ---------------------------------------------------------------- writing

namespace {

constexpr std::uint16_t kUtf8Name = 1 << 11;
constexpr std::uint16_t kOldVersion = 20, kLongVersion = 45;
constexpr std::uint16_t kUnix = 3 << 8;
constexpr std::uint32_t kPlainFile = 0100644U << 16;
constexpr std::uint16_t kDate = (0 << 9) | (1 << 5) | 1;  // 1 January 1980, the earliest date of the format

template <class... Numbers>
std::string packed(Numbers... numbers) {
  std::string result;
  const auto add = [&](auto number) {
    for (std::size_t i = 0; i < sizeof number; ++i) {
      result += static_cast<char>(static_cast<unsigned char>(std::uint64_t{number} >> (8 * i)));
    }
  };
  (add(numbers), ...);
  return result;
}

std::uint16_t length_of(const std::string& text) { return static_cast<std::uint16_t>(text.size()); }
std::uint32_t short_form(std::uint64_t number, bool is_long) {
  return is_long ? kInLongField : static_cast<std::uint32_t>(number);
}

}  // namespace

std::string ZipWriter::local_header(const ZipMember& member) const {
  const std::string extra = long_member_ ? packed(kLongField, std::uint16_t{16}, member.full_size, member.size) : "";
  return packed(kLocalMark, long_member_ ? kLongVersion : kOldVersion, member.flags, member.method, std::uint16_t{0},
                kDate, member.crc, short_form(member.size, long_member_), short_form(member.full_size, long_member_),
                length_of(member.name), length_of(extra)) +
         member.name + extra;
}

void ZipWriter::begin(const std::string& name, std::uint16_t method, std::uint64_t full_size) {
  // Deflate makes incompressible data larger by a few bytes per 16 kB, so the limit is below 4 GB.
  long_member_ = always_long_ || full_size >= 0xf0000000;
  ZipMember member{.name = name, .method = method, .full_size = full_size, .local_begin = sink_.size()};
  member.flags = kUtf8Name;
  sink_.write(as_bytes(local_header(member)));
  members_.push_back(std::move(member));
}

void ZipWriter::end(std::uint32_t crc) {
  ZipMember& member = members_.back();
  member.crc = crc;
  member.size = sink_.size() - member.local_begin - local_header(member).size();
  sink_.overwrite(member.local_begin, as_bytes(local_header(member)));
}

void ZipWriter::finish() {
  const std::uint64_t begin = sink_.size();
  for (const ZipMember& member : members_) {
    const bool sizes = always_long_ || member.size >= kInLongField || member.full_size >= kInLongField;
    const bool place = always_long_ || member.local_begin >= kInLongField;
    std::string numbers = sizes ? packed(member.full_size, member.size) : "";
    if (place) numbers += packed(member.local_begin);
    const std::string extra = numbers.empty() ? "" : packed(kLongField, length_of(numbers)) + numbers;
    const std::uint16_t version = sizes || place ? kLongVersion : kOldVersion;
    sink_.write(
        as_bytes(packed(kDirectoryMark, static_cast<std::uint16_t>(kUnix | version), version, member.flags,
                        member.method, std::uint16_t{0}, kDate, member.crc, short_form(member.size, sizes),
                        short_form(member.full_size, sizes), length_of(member.name), length_of(extra), std::uint16_t{0},
                        std::uint16_t{0}, std::uint16_t{0}, kPlainFile, short_form(member.local_begin, place)) +
                 member.name + extra));
  }
  const std::uint64_t after = sink_.size(), size = after - begin, count = members_.size();
  const bool is_long = always_long_ || count >= 0xffff || after >= kInLongField;
  if (is_long) {
    sink_.write(as_bytes(packed(kLongEndMark, std::uint64_t{kLongEndSize - 12}, kLongVersion, kLongVersion,
                                std::uint32_t{0}, std::uint32_t{0}, count, count, size, begin) +
                         packed(kLocatorMark, std::uint32_t{0}, after, std::uint32_t{1})));
  }
  const auto short_count = is_long ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(count);
  sink_.write(as_bytes(packed(kEndMark, std::uint16_t{0}, std::uint16_t{0}, short_count, short_count,
                              short_form(size, is_long), short_form(begin, is_long), std::uint16_t{0})));
}

}  // namespace rapt::io
