// Philox 4x32-10 as in rapt/random.h, for device code, and the weights that dropout keeps.
#pragma once

#include <cstdint>

#include "cuda/arguments.h"

namespace rapt::cuda {

struct PhiloxWords {
  std::uint32_t words[4];
};

RAPT_HOST_DEVICE PhiloxWords philox4x32_10(PhiloxWords counter, std::uint32_t key0, std::uint32_t key1) {
  std::uint32_t(&c)[4] = counter.words;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * c[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * c[2];
    c[0] = static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ key0;
    c[1] = static_cast<std::uint32_t>(product1);
    c[2] = static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ key1;
    c[3] = static_cast<std::uint32_t>(product0);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

// The random words of keys j, j + 1, j + 2 and j + 3, j a multiple of 4. `index` is Sequence::index; i and j count
// within the sequence.
RAPT_HOST_DEVICE PhiloxWords dropout_words(const DropoutTerm& dropout, std::int32_t index, std::int32_t head,
                                           std::int32_t i, std::int32_t j) {
  const PhiloxWords counter = {
      {dropout.batch_start + static_cast<std::uint32_t>(index), dropout.head_start + static_cast<std::uint32_t>(head),
       dropout.query_start + static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j) / 4U}};
  return philox4x32_10(counter, dropout.key[0], dropout.key[1]);
}

// The factor of a weight in step 7 (rapt/attention.h), given its random word: 1 / (1 − rate), or 0 if it is dropped.
RAPT_HOST_DEVICE float dropout_factor(const DropoutTerm& dropout, std::uint32_t word) {
  return word >= dropout.threshold ? dropout.keep_scale : 0.0F;
}

// The factor for key j alone, without sharing the words of four keys; 1 without dropout.
RAPT_HOST_DEVICE float dropout_factor(const DropoutTerm& dropout, std::int32_t index, std::int32_t head, std::int32_t i,
                                      std::int32_t j) {
  if (!dropout.on) return 1.0F;
  const PhiloxWords four = dropout_words(dropout, index, head, i, j);
  const std::uint32_t place = static_cast<std::uint32_t>(j) % 4U;  // not an index, so that words stay in registers
  const std::uint32_t word =
      place < 2 ? (place == 0 ? four.words[0] : four.words[1]) : (place == 2 ? four.words[2] : four.words[3]);
  return dropout_factor(dropout, word);
}

}  // namespace rapt::cuda
