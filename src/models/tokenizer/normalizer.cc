#include "models/tokenizer/normalizer.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "models/tokenizer/normal_form.h"
#include "models/tokenizer/unicode.h"

namespace rapt::models {
namespace {

// The blocks that BERT calls Chinese: ideographs, also in Japanese, but no kana and no Hangul.
bool is_chinese(char32_t point) {
  return (point >= 0x4E00 && point <= 0x9FFF) || (point >= 0x3400 && point <= 0x4DBF) ||
         (point >= 0x20000 && point <= 0x2A6DF) || (point >= 0x2A700 && point <= 0x2B73F) ||
         (point >= 0x2B740 && point <= 0x2B81F) || (point >= 0x2B920 && point <= 0x2CEAF) ||
         (point >= 0xF900 && point <= 0xFAFF) || (point >= 0x2F800 && point <= 0x2FA1F);
}

bool is_cleaned_away(char32_t point) {
  if (point == '\t' || point == '\n' || point == '\r') return false;
  return point == 0xFFFD || is_any(point, kOther);
}

// Calls each(rewriter, code point) for each character of a text.
template <class Each>
void rewrite(AlignedText& text, const Each& each) {
  Rewriter rewriter(text);
  for (std::string_view rest = text.text(); !rest.empty();) each(rewriter, take_code_point(rest));
  rewriter.finish();
}

void remove(AlignedText& text, unsigned classes) {
  rewrite(text, [&](Rewriter& to, char32_t point) { is_any(point, classes) ? to.skip() : to.replace(point); });
}

void clean(AlignedText& text) {
  rewrite(text, [](Rewriter& to, char32_t point) {
    if (is_cleaned_away(point)) {
      to.skip();
    } else {
      to.replace(is_any(point, kSpace) ? U' ' : point);
    }
  });
}

void spread_chinese(AlignedText& text) {
  rewrite(text, [](Rewriter& to, char32_t point) {
    if (is_chinese(point)) {
      to.replace(' ');
      to.add(point);
      to.add(' ');
    } else {
      to.replace(point);
    }
  });
}

void lower(AlignedText& text) {
  rewrite(text, [](Rewriter& to, char32_t point) {
    to.replace(lower_of(point));
    if (point == 0x130) to.add(0x307);
  });
}

void strip(AlignedText& text, bool left, bool right) {
  std::string_view kept = text.text();
  const auto is_space_at_start = [&] {
    std::string_view rest = kept;
    return is_any(take_code_point(rest), kSpace);
  };
  const auto is_space_at_end = [&] {
    std::string_view rest = kept;
    return is_any(take_last_code_point(rest), kSpace);
  };
  while (left && !kept.empty() && is_space_at_start()) (void)take_code_point(kept);
  while (right && !kept.empty() && is_space_at_end()) (void)take_last_code_point(kept);
  if (kept.size() == text.text().size()) return;
  const auto begin = static_cast<std::size_t>(kept.data() - text.text().data());
  text = text.slice(begin, begin + kept.size());
}

// As in tokenizers, all of the content comes from the last character that it replaces.
void replace(AlignedText& text, const std::string& pattern, const std::string& content) {
  const std::string& old = text.text();
  std::size_t found = old.find(pattern);
  if (found == std::string::npos) return;
  AlignedText result;
  for (std::size_t at = 0; at < old.size();) {
    if (at == found) {
      const std::size_t after = at + pattern.size();
      for (std::string_view rest = content; !rest.empty();) {
        result.append(take_code_point(rest), text.origin_at(after - 1));
      }
      at = after;
      found = old.find(pattern, at);
    } else {
      std::string_view rest = std::string_view(old).substr(at);
      const std::size_t before = rest.size();
      result.append(take_code_point(rest), text.origin_at(at));
      at += before - rest.size();
    }
  }
  text = std::move(result);
}

void apply_step(const NormalizerStep& step, AlignedText& text) {
  using Kind = NormalizerStep::Kind;
  switch (step.kind) {
    case Kind::clean: return clean(text);
    case Kind::spread_chinese: return spread_chinese(text);
    case Kind::strip_nonspacing: return remove(text, kNonspacing);
    case Kind::strip_marks: return remove(text, kMark);
    case Kind::lower: return lower(text);
    case Kind::nfd: return normalize(text, NormalForm::nfd);
    case Kind::nfc: return normalize(text, NormalForm::nfc);
    case Kind::nfkd: return normalize(text, NormalForm::nfkd);
    case Kind::nfkc: return normalize(text, NormalForm::nfkc);
    case Kind::strip: return strip(text, step.left, step.right);
    case Kind::replace: return replace(text, step.pattern, step.content);
  }
}

}  // namespace

void Normalizer::apply(AlignedText& text) const {
  for (const NormalizerStep& step : steps) apply_step(step, text);
}

}  // namespace rapt::models
