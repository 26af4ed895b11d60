// The normalizer of a tokenizer: steps that change a text before it is split.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/tokenizer/aligned_text.h"

namespace rapt::models {

struct NormalizerStep {
  enum class Kind : std::uint8_t {
    clean,             // BERT: removes control characters, makes all white space ' '
    spread_chinese,    // BERT: a space on each side of a Chinese character
    strip_nonspacing,  // BERT: removes nonspacing marks (after nfd)
    strip_marks,       // removes all marks
    lower,
    nfd,
    nfc,
    nfkd,
    nfkc,
    strip,    // white space at the start and at the end
    replace,  // each `pattern` by `content`
  };

  Kind kind = Kind::lower;
  bool left = true, right = true;          // strip
  std::string pattern = {}, content = {};  // replace
};

struct Normalizer {
  std::vector<NormalizerStep> steps;

  void apply(AlignedText& text) const;
};

}  // namespace rapt::models
