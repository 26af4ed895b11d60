// The dates task: a date in one of four formats, and the same date in ISO 8601.
//
//   March 5, 1987=1987-03-05      05.03.1987=1987-03-05
//   5 Mar 1987=1987-03-05         Thursday, 5 March 1987=1987-03-05
//
// One date in ten is held out for evaluation.
#pragma once

#include <cstdint>
#include <string>

#include "train/draw.h"
#include "train/task.h"

namespace rapt::train {

struct Date {
  int year = 0, month = 0, day = 0;
};

// A written date, and the character ranges [first, last) of its parts.
struct WrittenDate {
  struct Part {
    std::int64_t first = 0, last = 0;
  };
  std::string text;
  Part year, month, day;
};

class Dates final : public Task {
 public:
  static constexpr int kForms = 4;
  static constexpr int kFirstYear = 1900, kLastYear = 2099;
  static constexpr std::int64_t kAnswer = 10;  // characters of 1987-03-05
  static constexpr char kEquals = '=';

  Dates();
  std::string name() const override { return "dates"; }
  Batch batch(std::uint64_t seed, std::int64_t step) const override;
  Evaluation evaluate(const Transformer& model) const override;

  static WrittenDate written(const Date& date, int form);
  static std::string iso(const Date& date);
  static bool held_out(const Date& date);
  // A date from the held-out set, or from the training set.
  static Date date(Draw& draw, bool held_out);
};

}  // namespace rapt::train
