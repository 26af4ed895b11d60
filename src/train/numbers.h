// Numbers and curves as text for a file's metadata, without loss of bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace rapt::train {

// Errors name the file.
double real_of(const std::string& words, const std::string& path);
std::int64_t whole_of(const std::string& words, const std::string& path);

// One line per point: step, training loss, loss, measures.
std::string curve_words(const std::vector<Point>& curve);
std::vector<Point> curve_of(const std::string& words, const std::string& path);

}  // namespace rapt::train
