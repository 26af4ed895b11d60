// Splits a text into the tokens of a model, exactly as Hugging Face's tokenizers do: WordPiece (BERT, DistilBERT,
// MiniLM) and byte-level BPE (GPT-2, RoBERTa).
//
//   const Tokenizer tokenizer = Tokenizer::read(files);
//   for (const Token& token : tokenizer.encode("The animal didn't")) … token.id, token.text
//   tokenizer.decode(ids)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::models {

class ModelFiles;

struct Token {
  std::int32_t id = 0;
  // What a person reads: "animal", "##ing" for a continuation in WordPiece, " the" with its space in byte-level BPE,
  // "[CLS]". Always well-formed UTF-8: bytes that are no whole character are shown as U+FFFD.
  std::string text;
  // The bytes [begin, end) of the input that the token stands for; equal for a token that was added, such as [CLS].
  std::size_t begin = 0, end = 0;
  bool special = false;  // [CLS], [SEP], <s>, <|endoftext|>
};

class Tokenizer {
 public:
  // Reads tokenizer.json, or vocab.txt with tokenizer_config.json, or vocab.json with merges.txt. Throws FileError if
  // there is none, if one is damaged, or if it names a kind of tokenizer or step that rapt does not have.
  static Tokenizer read(const ModelFiles& files);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The tokens of a text. With `special`, the tokens that the model expects around it are added: [CLS] … [SEP] for
  // BERT, <s> … </s> for RoBERTa, none for GPT-2. `text` must be UTF-8.
  std::vector<Token> encode(std::string_view text, bool special = true) const;
  // The text of tokens, without special ones, as tokenizers' decode(…, skip_special_tokens=True) gives it.
  std::string decode(std::span<const std::int32_t> ids) const;

  std::int64_t size() const;           // the number of ids: the largest id + 1
  Token token(std::int32_t id) const;  // its text; begin and end are 0

 private:
  struct Kind;
  explicit Tokenizer(std::unique_ptr<Kind> kind);
  std::unique_ptr<Kind> kind_;
};

}  // namespace rapt::models
