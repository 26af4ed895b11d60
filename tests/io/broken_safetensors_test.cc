// Broken safetensors files: each is rejected with an error that says what is wrong, without a crash and without
// allocating much memory.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/text.h"
#include "rapt/safetensors.h"
#include "support/broken_file.h"

namespace rapt::test {
namespace {

// A file with this header and that many bytes of data.
std::string with(const std::string& header, std::size_t data = 0) {
  return little(std::uint64_t{header.size()}) + header + std::string(data, '\0');
}

// One tensor "w" of four bytes of data, with these fields.
std::string tensor(const std::string& fields) { return with(R"({"w":{)" + fields + "}}", 4); }

// Two bool tensors "a" and "b" at these offsets, in that many bytes of data.
std::string two(std::uint64_t a, std::uint64_t a_end, std::uint64_t b, std::uint64_t b_end, std::size_t data) {
  const auto entry = [](const char* name, std::uint64_t begin, std::uint64_t end) {
    return text('"', name, R"(":{"dtype":"BOOL","shape":[)", end - begin, R"(],"data_offsets":[)", begin, ',', end,
                "]}");
  };
  return with(text('{', entry("a", a, a_end), ',', entry("b", b, b_end), '}'), data);
}

// clang-format off
const std::vector<BrokenFile> kBroken = {
    {"Empty", [] { return std::string(); }, "has 0 bytes; a header's size alone takes 8"},
    {"SevenBytes", [] { return std::string(7, '\0'); }, "has 7 bytes; a header's size alone takes 8"},
    {"HeaderPastTheFile", [] { return little(std::uint64_t{100}) + "{}"; }, "the header ends at byte 108, the file has 10 bytes"},
    {"HeaderOf100Gigabytes", [] { return little(std::uint64_t{100'000'000'000}) + "{}"; }, "the header ends at byte 100000000008, the file has 10 bytes"},
    {"HeaderOfAllThereIs", [] { return little(~std::uint64_t{0}) + "{}"; }, "the header ends at byte 2^64 or later, the file has 10 bytes"},
    {"NoHeader", [] { return with(""); }, "byte 8, in the header: it ends where an object should be"},
    {"HeaderIsAnArray", [] { return with("[]"); }, "byte 8, in the header: expected an object, found \"[\""},
    {"HeaderIsNull", [] { return with("null"); }, "byte 8, in the header: expected an object, found \"n\""},
    {"TwoHeaders", [] { return with("{}{}"); }, "byte 10, in the header: expected the end, found \"{\""},
    {"HeaderWithoutEnd", [] { return with("{"); }, "byte 9, in the header: it ends where a string should be"},
    {"HeaderCutInAKey", [] { return with("{\"w"); }, "byte 11, in the header: it ends where the end of a string should be"},
    {"HeaderCutAfterAKey", [] { return with("{\"w\""); }, "byte 12, in the header: it ends where ':' should be"},
    {"HeaderCutBeforeAValue", [] { return with("{\"w\":"); }, "byte 13, in the header: it ends where an object should be"},
    {"NoColon", [] { return with(R"({"w" {}})"); }, "byte 13, in the header: expected ':', found \"{\""},
    {"NoComma", [] { return with(R"({"__metadata__":{"a":"b" "c":"d"}})"); }, "byte 33, in the header: expected ',' or '}', found \"\"\""},
    {"CommaTooMany", [] { return with(R"({"__metadata__":{"a":"b",}})"); }, "byte 33, in the header: expected a string, found \"}\""},
    {"CommaFirst", [] { return with(R"({,"__metadata__":{}})"); }, "byte 9, in the header: expected a string, found \",\""},
    {"KeyIsANumber", [] { return with("{1:2}"); }, "byte 9, in the header: expected a string, found \"1\""},
    {"ByteOrderMark", [] { return with("\xef\xbb\xbf{}"); }, "byte 8, in the header: expected an object, found \"\\xef\""},
    {"ZeroByteAfterTheHeader", [] { return with(std::string("{}\0", 3)); }, "byte 10, in the header: expected the end, found \"\\x00\""},
    {"SameTensorTwice", [] { return with(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{}})", 4); }, "byte 62, in the header: the key \"w\" appears twice"},
    {"SameTensorTwiceByEscape", [] { return with(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"\u0077":{}})", 4); }, "byte 62, in the header: the key \"w\" appears twice"},
    {"SameFieldTwice", [] { return tensor(R"("dtype":"F32","dtype":"F32")"); }, "byte 28, in the header: the key \"dtype\" appears twice"},
    {"SameMetadataTwice", [] { return with(R"({"__metadata__":{"a":"b","a":"c"}})"); }, "byte 33, in the header: the key \"a\" appears twice"},
    {"MetadataTwice", [] { return with(R"({"__metadata__":{},"__metadata__":{}})"); }, "byte 27, in the header: the key \"__metadata__\" appears twice"},
    {"MetadataIsAString", [] { return with(R"({"__metadata__":"a"})"); }, "byte 24, in the header: expected an object, found \"\"\""},
    {"MetadataHoldsANumber", [] { return with(R"({"__metadata__":{"a":1}})"); }, "byte 29, in the header: expected a string, found \"1\""},
    {"NameIsNotUtf8", [] { return with("{\"\xff\":{}}"); }, "byte 10, in the header: a string is not UTF-8"},
    {"NameIsOverlong", [] { return with("{\"\xc0\xaf\":{}}"); }, "byte 10, in the header: a string is not UTF-8"},
    {"NameIsCutUtf8", [] { return with("{\"\xe2\x82\":{}}"); }, "byte 10, in the header: a string is not UTF-8"},
    {"NameIsASurrogate", [] { return with("{\"\xed\xa0\x80\":{}}"); }, "byte 10, in the header: a string is not UTF-8"},
    {"NameIsPastUnicode", [] { return with("{\"\xf4\x90\x80\x80\":{}}"); }, "byte 10, in the header: a string is not UTF-8"},
    {"HalfAPair", [] { return with(R"({"\ud800":{}})"); }, "byte 16, in the header: unpaired surrogate"},
    {"HalfAPairBeforeAnother", [] { return with(R"({"\ud800\u0041":{}})"); }, "byte 22, in the header: unpaired surrogate"},
    {"LowHalfAlone", [] { return with(R"({"\udc00":{}})"); }, "byte 16, in the header: unpaired surrogate"},
    {"UnknownEscape", [] { return with(R"({"\x41":{}})"); }, "byte 11, in the header: expected an escape, found \"x\""},
    {"EscapeWithoutDigits", [] { return with(R"({"\u00g0":{}})"); }, "byte 14, in the header: expected a hexadecimal digit of \\u, found \"g\""},
    {"EscapeAtTheEnd", [] { return with("{\"\\"); }, "byte 11, in the header: it ends where an escape should be"},
    {"LineBreakInAName", [] { return with("{\"a\nb\":{}}"); }, "byte 11, in the header: a string contains the control character \"\\x0a\""},
    {"TooDeep", [] { return tensor(R"("more":)" + std::string(40, '[') + std::string(40, ']')); }, "byte 52, in the header: values are nested more than 32 levels deep"},
    {"FarTooDeep", [] { return with(R"({"w":{"more":)" + std::string(200'000, '[')); }, "byte 52, in the header: values are nested more than 32 levels deep"},
    {"LeadingZero", [] { return tensor(R"("more":01)"); }, "byte 22, in the header: a number starts with 0"},
    {"NumberWithoutFraction", [] { return tensor(R"("more":1.)"); }, "byte 23, in the header: expected a digit, found \"}\""},
    {"NumberWithoutExponent", [] { return tensor(R"("more":1e+)"); }, "byte 24, in the header: expected a digit, found \"}\""},
    {"MinusAlone", [] { return tensor(R"("more":-)"); }, "byte 22, in the header: expected a digit, found \"}\""},
    {"NotANumber", [] { return tensor(R"("more":NaN)"); }, "byte 21, in the header: expected a value, found \"N\""},
    {"WordCutShort", [] { return tensor(R"("more":tru)"); }, "byte 21, in the header: expected a value, found \"t\""},
    {"EntryIsANumber", [] { return with(R"({"w":1})"); }, "byte 13, in the header: expected an object, found \"1\""},
    {"NoType", [] { return tensor(R"("shape":[1],"data_offsets":[0,4])"); }, "tensor \"w\": has no dtype"},
    {"NoShape", [] { return tensor(R"("dtype":"F32","data_offsets":[0,4])"); }, "tensor \"w\": has no shape"},
    {"NoOffsets", [] { return tensor(R"("dtype":"F32","shape":[1])"); }, "tensor \"w\": has no data_offsets"},
    {"TypeIsANumber", [] { return tensor(R"("dtype":32)"); }, "byte 22, in the header: expected a string, found \"3\""},
    {"ShapeIsANumber", [] { return tensor(R"("dtype":"F32","shape":1)"); }, "byte 36, in the header: expected an array, found \"1\""},
    {"NegativeSize", [] { return tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"); }, "byte 37, in the header: expected a non-negative integer, found \"-\""},
    {"SizeWithFraction", [] { return tensor(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"); }, "byte 37, in the header: 1.0 is not an integer"},
    {"SizeWithExponent", [] { return tensor(R"("dtype":"F32","shape":[1e400],"data_offsets":[0,4])"); }, "byte 37, in the header: 1e400 is not an integer"},
    {"SizeOf2To64", [] { return tensor(R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4])"); }, "byte 37, in the header: 18446744073709551616 overflows"},
    {"SizesOverflow", [] { return tensor(R"("dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,4])"); }, "tensor \"w\" has shape [4294967296, 4294967296, 4], more elements than a 64-bit integer can count"},
    {"SizesOverflowBesideZero", [] { return tensor(R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"); }, "tensor \"w\" has shape [0, 4294967296, 4294967296], more elements than a 64-bit integer can count"},
    {"BytesOverflow", [] { return tensor(R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])"); }, "tensor \"w\" at byte 80 has 4 bytes; 4611686018427387905 elements of F32, shape [4611686018427387905], have another size"},
    {"OneOffset", [] { return tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4])"); }, "tensor \"w\": data_offsets must be two numbers"},
    {"ThreeOffsets", [] { return tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,2,4])"); }, "tensor \"w\": data_offsets must be two numbers"},
    {"NegativeOffset", [] { return tensor(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])"); }, "byte 56, in the header: expected a non-negative integer, found \"-\""},
    {"EndBeforeBegin", [] { return tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"); }, "tensor \"w\" begins at byte 66 and ends before it, at byte 62"},
    {"PastTheFile", [] { return tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"); }, "tensor \"w\" ends at byte 70, the file has 66 bytes: it may have been cut short; copy or download it again"},
    {"TensorOf100Gigabytes", [] { return tensor(R"("dtype":"F32","shape":[25000000000],"data_offsets":[0,100000000000])"); }, "tensor \"w\" ends at byte 100000000083, the file has 87 bytes: it may have been cut short; copy or download it again"},
    {"OffsetOf2To63", [] { return tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,9223372036854775807])"); }, "tensor \"w\" ends at byte 9223372036854775887, the file has 84 bytes: it may have been cut short; copy or download it again"},
    {"OffsetPast2To63", [] { return tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,9223372036854775808])"); }, "byte 58, in the header: 9223372036854775808 overflows"},
    {"FewerBytesThanTheShape", [] { return tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"); }, "tensor \"w\" at byte 62 has 4 bytes; 2 elements of F32, shape [2], have another size"},
    {"MoreBytesThanTheShape", [] { return tensor(R"("dtype":"I16","shape":[1],"data_offsets":[0,4])"); }, "tensor \"w\" at byte 62 has 4 bytes; 1 elements of I16, shape [1], have another size"},
    {"HalfAByte", [] { return tensor(R"("dtype":"F4","shape":[7],"data_offsets":[0,4])"); }, "tensor \"w\" at byte 61 has 4 bytes; 7 elements of F4, shape [7], have another size"},
    {"Overlap", [] { return two(0, 6, 4, 10, 10); }, "tensor \"b\" begins at byte 122, within tensor \"a\", which ends at byte 124"},
    {"SameBytesTwice", [] { return two(0, 4, 0, 4, 4); }, "tensor \"b\" begins at byte 117, within tensor \"a\", which ends at byte 121"},
    {"OneWithinAnother", [] { return two(0, 10, 4, 6, 10); }, "tensor \"b\" begins at byte 123, within tensor \"a\", which ends at byte 129"},
    {"HoleBetween", [] { return two(0, 4, 6, 10, 10); }, "bytes 122 to 124 belong to no tensor; the next is \"b\""},
    {"HoleInFront", [] { return two(2, 4, 4, 10, 10); }, "bytes 118 to 120 belong to no tensor; the next is \"a\""},
    {"BytesAfterTheLast", [] { return two(0, 4, 4, 8, 10); }, "bytes 125 to 127 belong to no tensor"},
    {"BytesOfNobody", [] { return with("{}", 3); }, "bytes 10 to 13 belong to no tensor"},
    {"CutShort", [] { std::string file = two(0, 4, 4, 8, 8); file.pop_back(); return file; }, "tensor \"b\" ends at byte 125, the file has 124 bytes: it may have been cut short; copy or download it again"},
    {"LongName", [] { return with("{\"" + std::string(5000, 'x') + R"(":{"dtype":"F32"}})"); }, "tensor \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…\": has no shape"},
};
// clang-format on

class BrokenSafetensors : public testing::TestWithParam<BrokenFile> {};
INSTANTIATE_TEST_SUITE_P(All, BrokenSafetensors, testing::ValuesIn(kBroken),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BrokenSafetensors, IsRefused) {
  expect_refusal("safetensors", GetParam(), [](const auto&... file) { (void)SafetensorsFile(file...); });
}

// A file that is cut anywhere is rejected. A file with a changed byte is either rejected or read completely.
TEST(BrokenSafetensors, EveryCutAndEveryChangedByteIsSurvived) {
  const std::string good = read_raw(test_file("types.safetensors"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::vector<std::byte> cut(bytes_of(good).begin(),
                                     bytes_of(good).begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(refusal_of([&] { (void)SafetensorsFile(cut, "cut"); }), "");
  }
  for (std::size_t place = 0; place < good.size(); place += 3) {
    for (const char c : {'\0', '"', '9', '}', '\xff'}) {
      std::string changed = good;
      changed[place] = c;
      (void)refusal_of([&] {
        const SafetensorsFile file(bytes_of(changed), "changed");
        for (const std::string& name : file.names()) {
          if (file.entry(name)->dtype) (void)file.find(name);
        }
      });
    }
  }
}

}  // namespace
}  // namespace rapt::test
