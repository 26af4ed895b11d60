#include "train/dates.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "train/score.h"

namespace rapt::train {

namespace {

constexpr std::array<std::string_view, 12> kMonths{"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> kDays{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                "Thursday", "Friday", "Saturday"};
constexpr std::int64_t kLongest = 29;  // of "Wednesday, 30 September 2026="
constexpr std::int64_t kLength = kLongest + Dates::kAnswer - 1;
constexpr std::int64_t kEvaluated = 512;
constexpr std::int64_t kBatch = 64;

std::string two_digits(int number) {
  return {static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
}

std::chrono::sys_days days_of(const Date& date) {
  return std::chrono::year(date.year) / static_cast<int>(date.month) / date.day;
}

// Every character that a date format or an answer may contain.
Characters characters_of_dates() {
  std::set<char> all{' ', ',', '.', '-', Dates::kEquals};
  for (char digit = '0'; digit <= '9'; ++digit) all.insert(digit);
  for (const std::string_view name : kMonths) all.insert(name.begin(), name.end());
  for (const std::string_view name : kDays) all.insert(name.begin(), name.end());
  return Characters(std::string(all.begin(), all.end()));
}

struct Example {
  WrittenDate written;
  std::string answer;
};

std::vector<Example> examples(Draw draw, std::int64_t count, bool held_out) {
  std::vector<Example> list;
  for (std::int64_t n = 0; n < count; ++n) {
    const Date date = Dates::date(draw, held_out);
    list.push_back({Dates::written(date, static_cast<int>(draw.below(Dates::kForms))), Dates::iso(date)});
  }
  return list;
}

// Rows are padded with tokens that the causal mask hides.
Batch batch_of(const std::vector<Example>& list, const Characters& characters) {
  Batch batch{.tokens = {}, .targets = {}, .rows = std::ssize(list)};
  for (const Example& example : list) {
    const std::vector<std::int32_t> all = characters.encode(example.written.text + Dates::kEquals + example.answer);
    const std::size_t start = batch.tokens.size(), known = example.written.text.size();
    batch.tokens.insert(batch.tokens.end(), all.begin(), all.end() - 1);
    batch.tokens.resize(start + kLength, 0);
    batch.targets.resize(start + kLength, kNoTarget);
    std::copy(all.begin() + static_cast<std::ptrdiff_t>(known) + 1, all.end(),
              batch.targets.begin() + static_cast<std::ptrdiff_t>(start + known));
  }
  return batch;
}

}  // namespace

Dates::Dates()
    : Task(characters_of_dates(), {.model = {.context = kLength, .width = 64, .layers = 2, .heads = 4, .hidden = 128},
                                   .batch = kBatch,
                                   .steps = 3000}) {}

bool Dates::held_out(const Date& date) {
  const auto day = static_cast<std::uint32_t>(days_of(date).time_since_epoch().count());
  return philox4x32_10({day, 0, 0, 0}, philox_key(0x6461746573))[0] % 10 == 0;
}

Date Dates::date(Draw& draw, bool held_out) {
  using std::chrono::sys_days;
  static const sys_days first = days_of({kFirstYear, 1, 1});
  static const sys_days last = days_of({kLastYear, 12, 31});
  for (;;) {
    const std::chrono::year_month_day day(first + std::chrono::days(draw.below((last - first).count() + 1)));
    const Date date{static_cast<int>(day.year()), static_cast<int>(static_cast<unsigned>(day.month())),
                    static_cast<int>(static_cast<unsigned>(day.day()))};
    if (Dates::held_out(date) == held_out) return date;
  }
}

std::string Dates::iso(const Date& date) {
  std::string text = std::to_string(date.year);
  return text.append("-").append(two_digits(date.month)).append("-").append(two_digits(date.day));
}

WrittenDate Dates::written(const Date& date, int form) {
  WrittenDate result;
  std::string& text = result.text;
  const auto add = [&](std::string_view words) {
    const WrittenDate::Part part{std::ssize(text), std::ssize(text) + std::ssize(words)};
    text += words;
    return part;
  };
  const std::string_view month = kMonths[static_cast<std::size_t>(date.month - 1)];
  const std::string day = std::to_string(date.day), year = std::to_string(date.year);
  switch (form) {
    case 0:  // March 5, 1987
      result.month = add(month), add(" "), result.day = add(day), add(", ");
      break;
    case 1:  // 5 Mar 1987
      result.day = add(day), add(" "), result.month = add(month.substr(0, 3)), add(" ");
      break;
    case 2:  // 05.03.1987
      result.day = add(two_digits(date.day)), add("."), result.month = add(two_digits(date.month)), add(".");
      break;
    default:  // Thursday, 5 March 1987
      const std::chrono::weekday weekday(days_of(date));
      add(kDays[weekday.c_encoding()]), add(", ");
      result.day = add(day), add(" "), result.month = add(month), add(" ");
  }
  result.year = add(year);
  return result;
}

Batch Dates::batch(std::uint64_t seed, std::int64_t step) const {
  return batch_of(examples(Draw(seed, Stream::training, step), recipe().batch, /*held_out=*/false), characters());
}

Evaluation Dates::evaluate(const Transformer& model) const {
  const std::vector<Example> list = examples(Draw(0, Stream::evaluation, 0), kEvaluated, /*held_out=*/true);
  const Batch batch = batch_of(list, characters());
  std::vector<Tensor> weights;
  Score score;
  // Each target is scored given the correct targets before it (teacher forcing). So if a row has no errors, greedy
  // decoding would generate exactly its targets.
  score.add(batch, model.logits(batch.tokens, batch.rows, &weights));

  // For the answer characters in [first, last): the mean weight on the part of the input that they are copied from, in
  // the head in which this mean is largest.
  const auto aligned = [&](std::int64_t first, std::int64_t last, WrittenDate::Part WrittenDate::*part) {
    const std::int64_t heads = model.config().heads;
    double best = 0.0;
    for (const Tensor& layer : weights) {
      for (std::int64_t head = 0; head < heads; ++head) {
        double sum = 0.0;
        for (std::int64_t row = 0; row < batch.rows; ++row) {
          const WrittenDate& date = list[static_cast<std::size_t>(row)].written;
          for (std::int64_t n = first; n < last; ++n) {
            const std::int64_t query = std::ssize(date.text) + n;
            const std::int64_t start = ((row * heads + head) * kLength + query) * kLength;
            const auto keys = layer.values<float>().subspan(static_cast<std::size_t>(start), kLength);
            for (std::int64_t key = (date.*part).first; key < (date.*part).last; ++key) {
              sum += double{keys[static_cast<std::size_t>(key)]};
            }
          }
        }
        best = std::max(best, sum / static_cast<double>(batch.rows * (last - first)));
      }
    }
    return best;
  };
  return {score.mean_loss(),
          {{"accuracy", "accuracy on unseen dates (every character right)", score.row_accuracy(), 0.99},
           {"characters", "accuracy on the characters of these dates", score.accuracy()},
           {"year", "a head's weight on the year while it is written", aligned(0, 4, &WrittenDate::year)},
           {"month", "a head's weight on the month while it is written", aligned(5, 7, &WrittenDate::month)},
           {"day", "a head's weight on the day while it is written", aligned(8, 10, &WrittenDate::day)}}};
}

}  // namespace rapt::train
