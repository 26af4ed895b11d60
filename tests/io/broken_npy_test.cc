// Broken .npy files: each is rejected with an error that says what is wrong, without a crash and without allocating
// much memory.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/npy.h"
#include "support/broken_file.h"

namespace rapt::test {
namespace {

// A file of version 1.0 with this header and that many bytes of data.
std::string with(const std::string& header, std::size_t data = 0) {
  return "\x93NUMPY" + std::string("\1\0", 2) + little(static_cast<std::uint16_t>(header.size())) + header +
         std::string(data, '\0');
}

std::string array(const std::string& descr, const std::string& shape, std::size_t data = 8) {
  return with("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }\n", data);
}

// clang-format off
const std::vector<BrokenFile> kBroken = {
    {"Empty", [] { return std::string(); }, "has 0 bytes; a .npy header alone takes more"},
    {"NineBytes", [] { return "\x93NUMPY" + std::string("\1\0\0", 3); }, "has 9 bytes; a .npy header alone takes more"},
    {"AnotherFormat", [] { return std::string("PK\3\4 is a zip archive"); }, "is not a .npy file: it starts with other bytes"},
    {"Version0", [] { return "\x93NUMPY" + std::string("\0\0\0\0\0\0", 6); }, "has version 0.0; 1.0, 2.0 and 3.0 are supported"},
    {"Version4", [] { return "\x93NUMPY" + std::string("\4\0\0\0\0\0", 6); }, "has version 4.0; 1.0, 2.0 and 3.0 are supported"},
    {"Version1Point1", [] { return "\x93NUMPY" + std::string("\1\1\0\0\0\0", 6); }, "has version 1.1; 1.0, 2.0 and 3.0 are supported"},
    {"EndsInItsLength", [] { return "\x93NUMPY" + std::string("\2\0\0\0", 4); }, "is truncated in its header"},
    {"HeaderPastTheFile", [] { return "\x93NUMPY" + std::string("\1\0\x50\0{}", 6); }, "the header ends at byte 90, the file has 12 bytes"},
    {"HeaderOf4Gigabytes", [] { return "\x93NUMPY" + std::string("\2\0\xff\xff\xff\xff{}", 8); }, "the header has 4294967295 bytes; the limit is 65536"},
    {"NoHeader", [] { return with(""); }, "byte 10, in the header: expected '{', but the header ends"},
    {"HeaderIsAList", [] { return with("[]"); }, "byte 10, in the header: expected '{', found \"[\""},
    {"HeaderIsNotUtf8", [] { return with("{'\xff': 1}"); }, "the header is not UTF-8"},
    {"HeaderWithoutEnd", [] { return with("{'descr': '<f4', "); }, "byte 27, in the header: expected a string"},
    {"NothingInIt", [] { return with("{}"); }, "the header must have descr, fortran_order and shape"},
    {"NoShape", [] { return with("{'descr': '<f4', 'fortran_order': False}"); }, "the header must have descr, fortran_order and shape"},
    {"NoOrder", [] { return with("{'descr': '<f4', 'shape': (2,)}"); }, "the header must have descr, fortran_order and shape"},
    {"NoType", [] { return with("{'fortran_order': False, 'shape': (2,)}"); }, "the header must have descr, fortran_order and shape"},
    {"UnknownKey", [] { return with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}"); }, "byte 73, in the header: the key \"more\" is not one of descr, fortran_order and shape"},
    {"SameKeyTwice", [] { return with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}", 8); }, "byte 74, in the header: the key \"shape\" appears twice"},
    {"NoColon", [] { return with("{'descr' '<f4'}"); }, "byte 19, in the header: expected ':', found \"'\""},
    {"NoComma", [] { return with("{'descr': '<f4' 'shape': (2,)}"); }, "byte 26, in the header: expected '}', found \"'\""},
    {"KeyIsANumber", [] { return with("{1: 2}"); }, "byte 11, in the header: expected a string"},
    {"StringWithoutEnd", [] { return with("{'descr"); }, "byte 12, in the header: unterminated string"},
    {"StringWithEscape", [] { return with("{'desc\\x72': '<f4'}"); }, "byte 12, in the header: a string contains an escape sequence"},
    {"MoreAfterTheHeader", [] { return with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + {}", 8); }, "byte 66, in the header: unexpected data after the dictionary"},
    {"OrderIsANumber", [] { return with("{'fortran_order': 0}"); }, "byte 28, in the header: expected True or False"},
    {"TypeIsEmpty", [] { return array("''", "(2,)"); }, "the type \"\" is not a NumPy type"},
    {"TypeIsAWord", [] { return array("'float'", "(2,)"); }, "the type \"float\" is not a NumPy type"},
    {"TypeOfManyDigits", [] { return array("'<f99999999999999999999'", "(2,)"); }, "the type \"<f99999999999999999999\" is not a NumPy type"},
    {"TypeOf16Bytes", [] { return array("'<f16'", "(2,)", 32); }, "holds float128, which rapt does not support"},
    {"TypeOfNoBytes", [] { return array("'|V0'", "(2,)"); }, "holds |V0, which rapt does not support"},
    {"TypeIsANumber", [] { return array("4", "(2,)"); }, "byte 20, in the header: expected a string"},
    {"ShapeIsANumber", [] { return array("'<f4'", "2"); }, "byte 60, in the header: expected '(', found \"2\""},
    {"ShapeIsANumberInBrackets", [] { return array("'<f4'", "(2)"); }, "byte 63, in the header: (2) is a number, not a tuple"},
    {"ShapeIsAList", [] { return array("'<f4'", "[2]"); }, "byte 60, in the header: expected '(', found \"[\""},
    {"ShapeWithoutEnd", [] { return with("{'shape': (2, "); }, "byte 24, in the header: expected a size"},
    {"NegativeSize", [] { return array("'<f4'", "(-2,)"); }, "byte 61, in the header: a size is negative"},
    {"SizeWithFraction", [] { return array("'<f4'", "(2.0,)"); }, "byte 62, in the header: expected ')', found \".\""},
    {"SizeOf2To64", [] { return array("'<f4'", "(18446744073709551616,)"); }, "byte 80, in the header: a size overflows"},
    {"SizesOverflow", [] { return array("'<f4'", "(4294967296, 4294967296)"); }, "has shape (4294967296, 4294967296), more bytes than a 64-bit integer can count"},
    {"SizesOverflowBesideZero", [] { return array("'<f4'", "(0, 4294967296, 4294967296)", 0); }, "has shape (0, 4294967296, 4294967296), more bytes than a 64-bit integer can count"},
    {"BytesOverflow", [] { return array("'<f8'", "(4611686018427387904,)"); }, "has shape (4611686018427387904,), more bytes than a 64-bit integer can count"},
    {"NineDimensions", [] { return array("'<f4'", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"); }, "byte 85, in the header: the array has more than 8 dimensions"},
    {"ManyDimensions", [] { std::string shape = "("; for (int i = 0; i < 5000; ++i) shape += "1,"; return array("'<f4'", shape + ")"); }, "byte 77, in the header: the array has more than 8 dimensions"},
    {"ArrayOf100Gigabytes", [] { return array("'<f4'", "(25000000000,)"); }, "shape (25000000000,) of float32 takes 100000000000 bytes from byte 78, but only 8 remain"},
    {"IntegersOf100Gigabytes", [] { return array("'<i8'", "(12500000000,)"); }, "shape (12500000000,) of int64 takes 100000000000 bytes from byte 78, but only 8 remain"},
    {"CutShort", [] { return array("'<f4'", "(2,)", 7); }, "shape (2,) of float32 takes 8 bytes from byte 68, but only 7 remain"},
    {"MoreAfterTheArray", [] { return array("'<f4'", "(2,)", 9); }, "the array ends at byte 76, but there are 77 bytes"},
    {"ScalarWithoutData", [] { return array("'<f4'", "()", 0); }, "shape () of float32 takes 4 bytes from byte 66, but only 0 remain"},
    {"DataOfAnEmptyArray", [] { return array("'<f4'", "(0,)", 4); }, "the array ends at byte 68, but there are 72 bytes"},
};
// clang-format on

class BrokenNpy : public testing::TestWithParam<BrokenFile> {};
INSTANTIATE_TEST_SUITE_P(All, BrokenNpy, testing::ValuesIn(kBroken),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BrokenNpy, IsRefused) {
  expect_refusal("npy", GetParam(), [](const auto&... file) { (void)read_npy(file..., {.integers_as = DType::f32}); });
}

TEST(BrokenNpy, EveryCutAndEveryChangedByteIsSurvived) {
  const std::string good = read_raw(test_file("f32_fortran.npy"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::vector<std::byte> cut(bytes_of(good).begin(),
                                     bytes_of(good).begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(refusal_of([&] { (void)read_npy(cut, "cut"); }), "");
  }
  for (std::size_t place = 0; place < 128; ++place) {
    for (int c = 0; c < 256; c += 3) {
      std::string changed = good;
      changed[place] = static_cast<char>(c);
      (void)refusal_of([&] { (void)read_npy(bytes_of(changed), "changed", {.integers_as = DType::f32}); });
    }
  }
}

}  // namespace
}  // namespace rapt::test
