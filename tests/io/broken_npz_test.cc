// Broken .npz files: each is rejected with an error that says what is wrong, without a crash and without allocating
// much memory.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "io/compress.h"
#include "io/zip.h"
#include "rapt/npy.h"
#include "support/broken_file.h"

namespace rapt::test {
namespace {

const Tensor& ones() {
  static const Tensor tensor = Tensor::from<float>({4}, {1.0F, 1.0F, 1.0F, 1.0F});
  return tensor;
}

// Two members: "a.npy" with its local header at byte 0, and "b.npy".
std::string good(bool compress = false) {
  return string_of(npz_bytes({{"a", ones()}, {"b", ones()}}, {.compress = compress}));
}

// An archive with one member, "a.npy", and every number in zip64's long form.
std::string good_long() {
  io::MemorySink sink;
  io::ZipWriter zip(sink, true);
  const auto member = npy_bytes(ones());
  zip.begin("a.npy", io::kStored, member.size());
  sink.write(member);
  zip.end(io::crc32_of(0, member));
  zip.finish();
  return string_of(sink.take());
}

// An archive with one member of these bytes, stored or deflated, whose directory entry gives `full_size` as the
// uncompressed size.
std::string with_member(const std::string& bytes, std::uint16_t method, std::uint64_t full_size) {
  io::MemorySink sink;
  io::ZipWriter zip(sink);
  zip.begin("a.npy", method, full_size);
  if (method == io::kDeflated) {
    io::Deflater deflater(sink, io::FileChecks("test", "test"));
    deflater.write(bytes_of(bytes));
    deflater.finish();
  } else {
    sink.write(bytes_of(bytes));
  }
  zip.end(io::crc32_of(0, bytes_of(bytes)));
  zip.finish();
  return string_of(sink.take());
}

std::string npy_of_100_gigabytes() {
  std::string npy = string_of(npy_bytes(ones()));
  const std::string shape = "(4,), }", huge = "(25000000000,), }";
  npy.replace(npy.find(shape), huge.size(), huge);
  return npy;
}

// The offsets of the directory's entries and of the end record.
std::size_t entry(const std::string& file, int index) {
  std::size_t at = file.find("PK\1\2");
  for (int i = 0; i < index; ++i) at = file.find("PK\1\2", at + 4);
  return at;
}
std::size_t end_of(const std::string& file) { return file.rfind("PK\5\6"); }

template <class T>
std::string put(std::string file, std::size_t at, T number) {
  std::memcpy(file.data() + at, &number, sizeof number);
  return file;
}
template <class T>
std::string put_in_entry(const std::string& file, int index, std::size_t at, T number) {
  return put(file, entry(file, index) + at, number);
}
template <class T>
std::string put_in_end(const std::string& file, std::size_t at, T number) {
  return put(file, end_of(file) + at, number);
}

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

// clang-format off
const std::vector<BrokenFile> kBroken = {
    {"Empty", [] { return std::string(); }, "has 0 bytes; the smallest zip archive has 22"},
    {"NoArchive", [] { return std::string(1000, 'x'); }, "is not a zip archive, or is truncated: its end record is missing"},
    {"CutShort", [] { std::string file = good(); file.pop_back(); return file; }, "is not a zip archive, or is truncated: its end record is missing"},
    {"MoreAfterTheEnd", [] { return good() + "x"; }, "is not a zip archive, or is truncated: its end record is missing"},
    {"SomethingInFront", [] { return std::string(1, 'x').append(good()); }, "the directory has 102 bytes from byte 358 on, but what follows it is at byte 461"},
    {"SecondPart", [] { return put_in_end(good(), 4, U16{1}); }, "is one part of a multi-part zip archive"},
    {"PartOfTheMembers", [] { return put_in_end(good(), 8, U16{1}); }, "is one part of a multi-part zip archive"},
    {"FewerMembersThanEntries", [] { return put_in_end(put_in_end(good(), 8, U16{1}), 10, U16{1}); }, "the directory has 51 bytes after its last member"},
    {"MoreMembersThanEntries", [] { return put_in_end(put_in_end(good(), 8, U16{3}), 10, U16{3}); }, "the directory has 102 bytes, too few for 3 members"},
    {"DirectoryPastTheFile", [] { return put_in_end(good(), 16, U32{0xfffffff0}); }, "the directory has 102 bytes from byte 4294967280 on, but what follows it is at byte 460"},
    {"DirectoryTooLong", [] { return put_in_end(good(), 12, U32{0xfffffff0}); }, "the directory has 4294967280 bytes from byte 358 on, but what follows it is at byte 460"},
    {"DirectoryTooEarly", [] { const std::string file = good(); const auto at = static_cast<U32>(entry(file, 0)); return put_in_end(put_in_end(file, 16, at - 10), 12, static_cast<U32>(end_of(file)) - at + 10); }, "the directory is corrupt at byte 348"},
    {"EntryWithoutMark", [] { return put_in_entry(good(), 1, 0, U32{0}); }, "the directory is corrupt at byte 409"},
    {"NamePastTheDirectory", [] { return put_in_entry(good(), 1, 28, U16{60000}); }, "the directory is corrupt at byte 409"},
    {"CommentPastTheDirectory", [] { return put_in_entry(good(), 0, 32, U16{60000}); }, "the directory is corrupt at byte 358"},
    {"NameIsNotUtf8", [] { return put_in_entry(good(), 0, 46, U16{0xffff}); }, "the name of the member at byte 358 is not UTF-8"},
    {"SameNameTwice", [] { return put_in_entry(good(), 1, 46, 'a'); }, "member \"a.npy\" appears twice"},
    {"Encrypted", [] { return put_in_entry(good(), 0, 8, U16{1}); }, "member \"a.npy\": is encrypted"},
    {"Bzip2", [] { return put_in_entry(good(), 0, 10, U16{12}); }, "member \"a.npy\": is compressed by method 12; stored and deflated members are read"},
    {"MemberInAnotherPart", [] { return put_in_entry(good(), 0, 34, U16{1}); }, "member \"a.npy\": is in another part of the archive"},
    {"MemberPastTheDirectory", [] { return put_in_entry(good(), 1, 42, U32{0x7fffffff}); }, "member \"b.npy\": has 144 bytes from byte 2147483647 on, past the directory at byte 358"},
    {"MemberTooLong", [] { return put_in_entry(put_in_entry(good(), 1, 20, U32{100000}), 1, 24, U32{100000}); }, "member \"b.npy\": has 100000 bytes from byte 179 on, past the directory at byte 358"},
    {"StoredWithTwoSizes", [] { return put_in_entry(good(), 0, 24, U32{100}); }, "member \"a.npy\": is stored, but its two sizes differ: 144 and 100"},
    {"MembersOverlap", [] { return put_in_entry(good(), 1, 42, U32{10}); }, "member \"a.npy\" at byte 0 overlaps what begins at byte 10"},
    {"MembersAreTheSame", [] { return put_in_entry(good(), 1, 42, U32{0}); }, "member \"a.npy\" at byte 0 overlaps what begins at byte 0"},
    {"LongSizesMissing", [] { return put_in_entry(good(), 0, 20, U32{0xffffffff}); }, "member \"a.npy\": its zip64 sizes are missing"},
    {"LongEndElsewhere", [] { const std::string file = good_long(); return put(file, file.rfind("PK\6\7") + 8, U64{3}); }, "the zip64 end record is not at byte 3"},
    {"LongEndFarAway", [] { const std::string file = good_long(); return put(file, file.rfind("PK\6\7") + 8, ~U64{0}); }, "the zip64 end record is not at byte 18446744073709551615"},
    {"LongCount", [] { const std::string file = good_long(); const auto at = file.rfind("PK\6\6"); return put(put(file, at + 24, U64{1} << 60), at + 32, U64{1} << 60); }, "the directory has 79 bytes, too few for 1152921504606846976 members"},
    {"LongDirectory", [] { const std::string file = good_long(); return put(file, file.rfind("PK\6\6") + 40, ~U64{0}); }, "the directory has 18446744073709551615 bytes from byte 199 on, but what follows it is at byte 278"},
    {"LongMemberOf100Gigabytes", [] { const std::string file = good_long(); const auto at = entry(file, 0) + 46 + 5 + 4; return put(put(file, at, U64{100'000'000'000}), at + 8, U64{100'000'000'000}); }, "member \"a.npy\": has 100000000000 bytes from byte 0 on, past the directory at byte 199"},
    {"LongMemberFarAway", [] { const std::string file = good_long(); return put(file, entry(file, 0) + 46 + 5 + 4 + 16, ~U64{0} - 5); }, "member \"a.npy\": has 144 bytes from byte 18446744073709551610 on, past the directory at byte 199"},
    {"LongFieldCutShort", [] { const std::string file = good_long(); return put(file, entry(file, 0) + 46 + 5 + 2, U16{8}); }, "member \"a.npy\": its zip64 sizes are missing"},
    {"LongFieldTooLong", [] { const std::string file = good_long(); return put(file, entry(file, 0) + 46 + 5 + 2, U16{999}); }, "member \"a.npy\": its extra field is corrupt"},
    {"NoLocalHeader", [] { return put(good(), 0, U32{0}); }, "member \"a.npy\": its local header is not at byte 0"},
    {"LocalNameDiffers", [] { return put(good(), 30, 'x'); }, "member \"a.npy\": its local header at byte 0 disagrees with the directory"},
    {"LocalMethodDiffers", [] { return put(good(), 8, U16{8}); }, "member \"a.npy\": its local header at byte 0 disagrees with the directory"},
    {"LocalExtraTooLong", [] { return put(good(), 28, U16{60000}); }, "member \"a.npy\": ends at byte 60179, past what begins at byte 179"},
    {"StoredByteChanged", [] { return put(good(), 35 + 128 + 3, '\x40'); }, "member \"a.npy\": its checksum does not match: the archive is damaged"},
    {"ChecksumChanged", [] { return put_in_entry(good(true), 0, 16, U32{1}); }, "member \"a.npy\": its checksum does not match: the archive is damaged"},
    {"DeflatedByteChanged", [] { return put(good(true), 35, '\x07'); }, "member \"a.npy\": its compressed data is corrupt: invalid block type"},
    {"DeflatedCutShort", [] { const std::string file = good(true); return put_in_entry(file, 0, 20, U32{40}); }, "member \"a.npy\": its compressed data is truncated"},
    {"BombOf100Gigabytes", [] { return with_member(npy_of_100_gigabytes(), io::kDeflated, 100'000'000'128); }, "member \"a.npy\": claims to expand to 100000000128 bytes, more than deflate can produce from 77 bytes"},
    {"DeflatedHeaderOf100Gigabytes", [] { const std::string npy = npy_of_100_gigabytes(); return with_member(npy, io::kDeflated, npy.size()); }, "member \"a.npy\": shape (25000000000,) of float32 takes 100000000000 bytes from byte 128, but only 16 remain"},
    {"DeflatedToMoreThanItSays", [] { return with_member(string_of(npy_bytes(ones())) + "more", io::kDeflated, 144); }, "member \"a.npy\": its compressed data continues after its array"},
    {"DeflatedToLessThanItSays", [] { const std::string npy = string_of(npy_bytes(ones())); return with_member(npy.substr(0, 140), io::kDeflated, 144); }, "member \"a.npy\": its compressed data ends before its array does"},
    {"BytesAfterTheArray", [] { const std::string npy = string_of(npy_bytes(ones())) + "more"; return with_member(npy, io::kDeflated, npy.size()); }, "member \"a.npy\": the array ends at byte 144, but there are 148 bytes"},
    {"MemberTooShort", [] { return with_member("\x93NUMPY", io::kStored, 6); }, "member \"a.npy\": has 6 bytes; a .npy header alone takes more"},
    {"MemberIsNoArray", [] { return with_member("hello, this is text", io::kStored, 19); }, "member \"a.npy\": is not a .npy file: it starts with other bytes"},
};
// clang-format on

class BrokenNpz : public testing::TestWithParam<BrokenFile> {};
INSTANTIATE_TEST_SUITE_P(All, BrokenNpz, testing::ValuesIn(kBroken),
                         [](const auto& instance) { return std::string(instance.param.name); });

void read_all(const NpzFile& file) {
  for (const std::string& name : file.names()) (void)file.at(name);
}

TEST_P(BrokenNpz, IsRefused) {
  expect_refusal("npz", GetParam(), [](const auto&... file) { read_all(NpzFile(file...)); });
}

TEST(BrokenNpz, EveryCutAndEveryChangedByteIsSurvived) {
  for (const std::string& whole : {good(), good(true), good_long()}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<std::byte> cut(bytes_of(whole).begin(),
                                       bytes_of(whole).begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NE(refusal_of([&] { read_all(NpzFile(cut, "cut")); }), "");
    }
    for (std::size_t place = 0; place < whole.size(); ++place) {
      for (const char c : {'\0', '\1', '\x7f', '\xff'}) {
        std::string changed = whole;
        changed[place] = c;
        (void)refusal_of([&] { read_all(NpzFile(bytes_of(changed), "changed")); });
      }
    }
  }
}

}  // namespace
}  // namespace rapt::test
