// Numbers about code points, as text, which unicode.cc reads. scripts/unicode_tables.py writes them, and says
// what they mean.
#pragma once

namespace rapt::models {

extern const char* const kClassRuns;
extern const char* const kCombiningRuns;
extern const char* const kLowerRuns;
extern const char* const kCanonicalDecompositions;
extern const char* const kCompatibleDecompositions;

}  // namespace rapt::models
