// The steps of a normalizer, and where each byte of their result came from.
#include "models/tokenizer/normalizer.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/text.h"
#include "core/utf8.h"
#include "models/tokenizer/aligned_text.h"
#include "models/tokenizer/normal_form.h"
#include "models/tokenizer/unicode.h"

namespace rapt::test {
namespace {

using models::AlignedText;
using models::NormalForm;
using models::Normalizer;
using models::NormalizerStep;
using Kind = NormalizerStep::Kind;

// "a0-1 é1-3": the characters and the bytes that they came from.
std::string shown(const AlignedText& aligned) {
  std::string all;
  for (std::size_t at = 0; at < aligned.text().size();) {
    const std::size_t bytes = first_code_point(aligned.text().substr(at)).bytes;
    const models::Origin origin = aligned.origin_of(at, at + bytes);
    all += text(all.empty() ? "" : " ", aligned.part(at, at + bytes), origin.begin, '-', origin.end);
    at += bytes;
  }
  return all;
}

std::string after(NormalizerStep step, std::string_view input) {
  AlignedText aligned(input, 0, input.size());
  Normalizer{{std::move(step)}}.apply(aligned);
  return shown(aligned);
}

std::string in_form(NormalForm form, std::string_view input) {
  AlignedText aligned(input, 0, input.size());
  models::normalize(aligned, form);
  return shown(aligned);
}

TEST(Normalizer, EachStepKeepsOrigins) {
  EXPECT_EQ(after({.kind = Kind::clean},
                  "a\u00ad\x01"
                  "b\t\uFFFD c"),
            "a0-1 b4-5  5-6  9-10 c10-11");
  EXPECT_EQ(after({.kind = Kind::spread_chinese}, "a中"), "a0-1  1-4 中1-4  1-4");
  EXPECT_EQ(after({.kind = Kind::lower}, "A\u0130ẞΣ"),
            "a0-1 i1-3 \u0307"
            "1-3 ß3-6 σ6-8");
  EXPECT_EQ(after({.kind = Kind::strip_nonspacing}, "e\u0301\u0903"),
            "e0-1 \u0903"
            "3-6");
  EXPECT_EQ(after({.kind = Kind::strip_marks}, "e\u0301\u0903"), "e0-1");
  EXPECT_EQ(after({.kind = Kind::strip}, " \u3000 a b\n"), "a5-6  6-7 b7-8");
  EXPECT_EQ(after({.kind = Kind::strip, .right = false}, " a "), "a1-2  2-3");
  EXPECT_EQ(after({.kind = Kind::strip}, " \u2003"), "");
  EXPECT_EQ(after({.kind = Kind::replace, .pattern = "ab", .content = "xéz"}, "1abab2"),
            "10-1 x2-3 é2-3 z2-3 x4-5 é4-5 z4-5 25-6");
  EXPECT_EQ(after({.kind = Kind::replace, .pattern = "b", .content = ""}, "abc"), "a0-1 c2-3");
}

TEST(Normalizer, NormalFormsComposeAndDecompose) {
  EXPECT_EQ(in_form(NormalForm::nfd, "é"),
            "e0-2 \u0301"
            "0-2");
  EXPECT_EQ(in_form(NormalForm::nfc, "e\u0301x"), "é0-1 x3-4");
  EXPECT_EQ(in_form(NormalForm::nfc, "\u212B"),
            "\u00C5"
            "0-3");  // Ångström
  EXPECT_EQ(in_form(NormalForm::nfkc, "ﬁ①"), "f0-3 i0-3 13-6");
  EXPECT_EQ(in_form(NormalForm::nfkd, "Ａ"), "A0-3");
  EXPECT_EQ(in_form(NormalForm::nfd, "한"),
            "\u1112"
            "0-3 \u1161"
            "0-3 \u11AB"
            "0-3");
  EXPECT_EQ(in_form(NormalForm::nfc, "\u1112\u1161\u11AB"), "한0-3");
  EXPECT_EQ(in_form(NormalForm::nfc, "\u0958"),
            "\u0915"
            "0-3 \u093C"
            "0-3");  // never composed
}

TEST(Normalizer, MarksAreSortedAndTakeTheOriginsOfTheirPlaces) {
  // A dot below (class 220) goes before an acute (230) and composes past it.
  EXPECT_EQ(in_form(NormalForm::nfd, "e\u0301\u0323"),
            "e0-1 \u0323"
            "1-3 \u0301"
            "3-5");
  EXPECT_EQ(in_form(NormalForm::nfc, "e\u0301\u0323"),
            "\u1EB9"
            "0-1 \u0301"
            "3-5");
  // Marks of one class keep their order, and the second one is blocked.
  EXPECT_EQ(in_form(NormalForm::nfc, "x\u0300\u0301"),
            "x0-1 \u0300"
            "1-3 \u0301"
            "3-5");
  EXPECT_EQ(in_form(NormalForm::nfc, "\u0301e\u0301"),
            "\u0301"
            "0-2 é2-3");
}

TEST(Normalizer, NormalizingTwiceChangesNothing) {
  std::string all;
  for (char32_t point = 0x20; point <= 0x10FFFF; point += point < 0x3400 ? 1 : 7) {
    if (point < 0xD800 || point > 0xDFFF) all += to_utf8(point);
  }
  for (const NormalForm form : {NormalForm::nfd, NormalForm::nfc, NormalForm::nfkd, NormalForm::nfkc}) {
    AlignedText once(all, 0, all.size());
    models::normalize(once, form);
    AlignedText twice(once.text(), 0, once.text().size());
    models::normalize(twice, form);
    EXPECT_EQ(once.text() == twice.text(), true) << static_cast<int>(form);
  }
}

TEST(Unicode, ClassesAreThoseOfKnownCharacters) {
  const auto in = [](char32_t point) { return int{models::classes_of(point)}; };
  EXPECT_EQ(in('a'), models::kLetter | models::kWordCharacter);
  EXPECT_EQ(in('7'), models::kNumber | models::kWordCharacter);
  EXPECT_EQ(in('_'), models::kPunctuation | models::kWordCharacter);
  EXPECT_EQ(in('$'), models::kPunctuation);
  EXPECT_EQ(in(U'€'), 0);
  EXPECT_EQ(in('\t'), models::kSpace | models::kOther);
  EXPECT_EQ(in(0xA0), models::kSpace);
  EXPECT_EQ(in(0x200B), models::kOther);
  EXPECT_EQ(in(0x301), models::kNonspacing | models::kMark | models::kWordCharacter);
  EXPECT_EQ(in(U'中'), models::kLetter | models::kWordCharacter);
  EXPECT_EQ(in(U'。'), models::kPunctuation);
  EXPECT_EQ(in(0x10FFFF), 0);
  EXPECT_EQ(in(0x10FFFD), models::kOther);
}

TEST(Unicode, LowerCaseOfKnownCharacters) {
  EXPECT_EQ(models::lower_of(U'Ä'), U'ä');
  EXPECT_EQ(models::lower_of(U'ÿ'), U'ÿ');
  EXPECT_EQ(models::lower_of(U'Ÿ'), U'ÿ');
  EXPECT_EQ(models::lower_of(U'Ā'), U'ā');
  EXPECT_EQ(models::lower_of(U'ā'), U'ā');
  EXPECT_EQ(models::lower_of(U'Я'), U'я');
  EXPECT_EQ(models::lower_of(0x2126), U'ω');  // Ohm
  EXPECT_EQ(models::lower_of(0x10400), char32_t{0x10428});
  EXPECT_EQ(models::lower_of('['), U'[');
}

}  // namespace
}  // namespace rapt::test
