// The library's error texts in the words of Python: Mask.add for Mask::add, float32 for f32, embed_dim for embed_size.
#pragma once

#include <string>
#include <string_view>

namespace rapt::python {

// What is in double quotes is somebody's own word (a name, a path) and stays.
std::string in_python(std::string_view text);

// The same for a text about a file, whose path is not in quotes: only what no path would hold is changed.
std::string file_error_in_python(std::string_view text);

}  // namespace rapt::python
