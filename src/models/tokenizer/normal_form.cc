#include "models/tokenizer/normal_form.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/aligned_text.h"
#include "models/tokenizer/unicode.h"

namespace rapt::models {
namespace {

// A character on its way to the new text. It replaces this many characters of the old one; 0 for the second and later
// parts of a decomposition.
struct Part {
  char32_t point = 0;
  std::uint8_t combining = 0;
  std::uint32_t replaced = 0;
};

void write(Rewriter& to, const Part& part) {
  if (part.replaced == 0) {
    to.add(part.point);
  } else {
    to.replace(part.point);
    to.skip(part.replaced - 1);
  }
}

// Composes characters with those before them, unless a mark of the same or a higher combining class is between them.
class Composer {
 public:
  explicit Composer(Rewriter& to) : to_(to) {}

  void put(const Part& part) {
    if (!has_base_) {
      if (part.combining != 0) return write(to_, part);
      return start(part);
    }
    const bool blocked = !marks_.empty() && marks_.back().combining >= part.combining;
    if (!blocked) {
      if (const char32_t composed = compose(base_.point, part.point); composed != 0) {
        base_.point = composed;
        base_.replaced += part.replaced;
        return;
      }
    }
    if (part.combining != 0) return marks_.push_back(part);
    finish();
    start(part);
  }

  void finish() {
    if (has_base_) write(to_, base_);
    for (const Part& mark : marks_) write(to_, mark);
    marks_.clear();
    has_base_ = false;
  }

 private:
  void start(const Part& part) {
    base_ = part;
    has_base_ = true;
  }

  Rewriter& to_;
  Part base_;
  bool has_base_ = false;
  std::vector<Part> marks_;  // after the base, not composed with it
};

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

void normalize(AlignedText& text, NormalForm form) {
  if (is_ascii(text.text())) return;
  const bool compatible = form == NormalForm::nfkd || form == NormalForm::nfkc;
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  Rewriter rewriter(text);
  Composer composer(rewriter);
  // From a character of combining class 0 on. The marks after it are sorted by their class before they are written.
  std::vector<Part> pending;
  const auto flush = [&] {
    std::stable_sort(pending.begin(), pending.end(),
                     [](const Part& a, const Part& b) { return a.combining < b.combining; });
    for (const Part& part : pending) {
      if (composes) {
        composer.put(part);
      } else {
        write(rewriter, part);
      }
    }
    pending.clear();
  };
  std::u32string parts;
  for (std::string_view rest = text.text(); !rest.empty();) {
    parts.clear();
    decompose(take_code_point(rest), compatible, parts);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part part{parts[i], combining_class(parts[i]), i == 0 ? 1U : 0U};
      if (part.combining == 0) flush();
      pending.push_back(part);
    }
  }
  flush();
  composer.finish();
  rewriter.finish();
}

}  // namespace rapt::models
