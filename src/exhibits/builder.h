// Builds an exhibit block by block, in one language.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exhibits/exhibit.h"
#include "rapt/tensor.h"

namespace rapt::exhibits {

struct ChoiceWords {
  std::string_view value;
  Both label;
};
struct SwitchWords {
  std::string_view key;
  Both label;
  std::vector<ChoiceWords> choices;
};

class Builder;

// A question, and the function that builds its answer from the settings.
struct Question {
  Both question;
  Both answer;
  std::vector<SwitchWords> switches;
  void (*build)(Builder&);
};

using Texts = std::vector<std::string>;

// The number, rounded; "-inf", "inf" or "NaN" if it is not finite.
std::string fixed(double number, int decimals);
std::string whole(std::int64_t number);
std::string brief(double number, int digits = 2);  // significant digits: "3.1e-17"
// {0}, {1}, … become the values; other braces stay.
std::string fill(std::string text, const Texts& values);
Texts counted(std::int64_t count, std::string_view prefix = "");  // "k0", "k1", …

// Sentences with the same number of words and the same repetitions in both languages, so that both give the same
// numbers.
inline constexpr Both kThreeWords{"I love you", "我爱你"};
inline constexpr Both kFourWords{"I love you too", "我也爱你"};
inline constexpr Both kFiveWords{"the cat and the dog", "有猫也有狗"};

// What the rows and columns of a weight are, said alike wherever it matters.
inline constexpr Both kWeightAxes{
    "`nn.Linear` computes y = x Wᵀ + b, and W is (out, in): a row of W computes one number of y, a column of W belongs "
    "to one number of x.",
    "`nn.Linear` 计算 y = x Wᵀ + b，W 的形状是 (out, in)：W 的一行算出 y 的一个数，W 的一列对应 x 的一个数。"};

class Builder {
 public:
  Builder(Exhibit& exhibit, Lang lang) : exhibit_(exhibit), lang_(lang) {}

  const std::string& chosen(std::string_view key) const;
  bool is(std::string_view key, std::string_view value) const { return chosen(key) == value; }
  std::int64_t number(std::string_view key) const;  // of a switch with numeric choices

  std::string say(const Both& words, const Texts& values = {}) const { return fill(words.in(lang_), values); }
  Texts tokens(const Both& sentence) const;
  std::string head(std::int64_t h) const { return say({"head {0}", "头 {0}"}, {whole(h)}); }
  std::string yes_or_no(bool yes) const { return say(yes ? Both{"yes", "是"} : Both{"no", "否"}); }

  void prose(const Both& words, const Texts& values = {}, Mood mood = Mood::plain);
  void right(const Both& words, const Texts& values = {}) { prose(words, values, Mood::right); }
  void wrong(const Both& words, const Texts& values = {}) { prose(words, values, Mood::wrong); }
  void code(const std::string& text) { add(Code{text}); }
  void add(Block block) { exhibit_.blocks.push_back(std::move(block)); }

  // Common matrices. `values` is (rows, columns).
  Matrix numbers(std::string title, const ConstTensorView& values, Texts rows, Texts columns) const;
  Matrix scores(std::string title, const ConstTensorView& values, Texts rows, Texts columns) const;
  Matrix weights(std::string title, const ConstTensorView& values, Texts rows, Texts columns) const;
  // A memory layout: values are offsets, coloured by group.
  Matrix places(std::string title, const ConstTensorView& values, Texts rows, Texts columns, std::vector<int> groups,
                Texts legend) const;

 private:
  Exhibit& exhibit_;
  Lang lang_;
};

}  // namespace rapt::exhibits
