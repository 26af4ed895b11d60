// The list of questions, and the validation of requests.
#include "exhibits/exhibit.h"

#include <algorithm>
#include <array>

#include "exhibits/questions.h"
#include "rapt/error.h"

namespace rapt::exhibits {
namespace {

// From easy to hard: prerequisites come first. A question's place is its number, in the command and on the page.
constexpr std::array<Question (*)(), kQuestions> kAll{
    question_axis,         question_qkv,      question_several_heads, question_projection,    question_divisible,
    question_mask_meaning, question_hiding,   question_scale,         question_all_positions, question_alignment,
    question_view,         question_segments, question_need_weights,  question_batch_first,   question_permute,
    question_cache,        question_buffer,   question_parallel,
};

// `a`, `a or b`, `a, b or c`, each in quotation marks.
std::string listed(const Texts& names, const char* last) {
  std::string list;
  for (std::size_t n = 0; n < names.size(); ++n) {
    if (n > 0) list += n + 1 == names.size() ? std::string(" ") + last + " " : ", ";
    list += "\"" + names[n] + "\"";
  }
  return list;
}

Exhibit without_blocks(int number, const Question& question, Lang lang) {
  Exhibit exhibit;
  exhibit.number = number;
  exhibit.question = question.question.in(lang);
  exhibit.answer = question.answer.in(lang);
  for (const SwitchWords& words : question.switches) {
    Switch each{std::string(words.key), words.label.in(lang), {}, std::string(words.choices[0].value)};
    for (const ChoiceWords& choice : words.choices) {
      each.choices.push_back({std::string(choice.value), choice.label.in(lang)});
    }
    exhibit.switches.push_back(std::move(each));
  }
  return exhibit;
}

void set(Exhibit& exhibit, const std::string& key, const std::string& value) {
  const std::string name = "question " + whole(exhibit.number) + ": ";
  Texts keys, values;
  for (Switch& each : exhibit.switches) {
    keys.push_back(each.key);
    if (each.key != key) continue;
    for (const Choice& choice : each.choices) values.push_back(choice.value);
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      throw Error(name + "\"" + key + "\" is " + listed(values, "or") + ", not \"" + value + "\"");
    }
    each.chosen = value;
    return;
  }
  throw Error(name + "unknown setting \"" + key + "\"; it has " + (keys.empty() ? "none" : listed(keys, "and")));
}

}  // namespace

std::vector<Exhibit> questions(Lang lang) {
  std::vector<Exhibit> all;
  for (const auto& question : kAll) all.push_back(without_blocks(static_cast<int>(all.size()) + 1, question(), lang));
  return all;
}

Exhibit exhibit(int number, Lang lang, const Settings& settings) {
  if (number < 1 || number > kQuestions) {
    throw Error("question " + whole(number) + ": there are questions 1 to " + whole(kQuestions));
  }
  const Question question = kAll[static_cast<std::size_t>(number - 1)]();
  Exhibit result = without_blocks(number, question, lang);
  for (const auto& [key, value] : settings) set(result, key, value);
  Builder builder(result, lang);
  question.build(builder);
  return result;
}

}  // namespace rapt::exhibits
