#include "models/tokenizer/aligned_text.h"

#include <algorithm>
#include <utility>

#include "core/utf8.h"

namespace rapt::models {

AlignedText::AlignedText(std::string_view input, std::size_t begin, std::size_t end)
    : text_(input.substr(begin, end - begin)) {
  origins_.reserve(text_.size());
  for (std::size_t at = begin; at < end;) {
    const std::size_t bytes = std::max<std::size_t>(first_code_point(input.substr(at)).bytes, 1);
    const Origin origin{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + bytes)};
    origins_.insert(origins_.end(), bytes, origin);
    at += bytes;
  }
}

AlignedText AlignedText::slice(std::size_t begin, std::size_t end) const {
  AlignedText result;
  result.text_ = text_.substr(begin, end - begin);
  const auto first = origins_.begin();
  result.origins_.assign(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end));
  return result;
}

Origin AlignedText::origin_of(std::size_t begin, std::size_t end) const {
  return {origins_[begin].begin, origins_[end - 1].end};
}

void AlignedText::clear() {
  text_.clear();
  origins_.clear();
}

void AlignedText::append(char32_t point, Origin origin) {
  if (point < 0x80) {
    text_ += static_cast<char>(point);
    origins_.push_back(origin);
    return;
  }
  const std::string bytes = to_utf8(point);
  text_ += bytes;
  origins_.insert(origins_.end(), bytes.size(), origin);
}

void AlignedText::prepend(char c) {
  text_.insert(text_.begin(), c);
  origins_.insert(origins_.begin(), origins_.front());
}

void Rewriter::replace(char32_t point) {
  new_.append(point, old_.origins_[at_]);
  skip();
}

void Rewriter::add(char32_t point) { new_.append(point, at_ == 0 ? Origin{} : old_.origins_[at_ - 1]); }

void Rewriter::skip(std::size_t characters) {
  for (; characters > 0; --characters) {
    at_ += first_code_point(std::string_view(old_.text_).substr(at_)).bytes;
  }
}

void Rewriter::finish() { old_ = std::move(new_); }

}  // namespace rapt::models
