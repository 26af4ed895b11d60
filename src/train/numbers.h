// Numbers and curves as the text of a file's metadata, with all their bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace rapt::train {

// Errors name the file they come from.
double real_of(const std::string& words, const std::string& path);
std::int64_t whole_of(const std::string& words, const std::string& path);

// A line for each point: step, training loss, loss, measures.
std::string curve_words(const std::vector<Point>& curve);
std::vector<Point> curve_of(const std::string& words, const std::string& path);

}  // namespace rapt::train
