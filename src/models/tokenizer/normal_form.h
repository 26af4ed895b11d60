// Unicode's normalization forms: NFD, NFC, NFKD and NFKC.
#pragma once

#include <cstdint>

namespace rapt::models {

class AlignedText;

enum class NormalForm : std::uint8_t { nfd, nfc, nfkd, nfkc };

// Changes a text to a form. Origins are as in tokenizers: a composed character has the origin of its first part, and
// marks that change places have the origins of their new places.
void normalize(AlignedText& text, NormalForm form);

}  // namespace rapt::models
