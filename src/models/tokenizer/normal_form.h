// Unicode's normalization forms: NFD, NFC, NFKD and NFKC.
#pragma once

#include <cstdint>

namespace rapt::models {

class AlignedText;

enum class NormalForm : std::uint8_t { nfd, nfc, nfkd, nfkc };

// Changes a text to a form. Characters keep their origins as they do in tokenizers: a composed character has the origin
// of its first part.
void normalize(AlignedText& text, NormalForm form);

}  // namespace rapt::models
