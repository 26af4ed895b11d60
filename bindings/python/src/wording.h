// Rewords the library's errors for Python: Mask.add for Mask::add, float32 for f32, embed_dim for embed_size.
#pragma once

#include <string>
#include <string_view>

namespace rapt::python {

// Text in double quotes comes from the user (a name, a path) and is not changed.
std::string in_python(std::string_view text);

// The same for a text about a file. Its path is not in quotes, so only words that cannot occur in a path are changed.
std::string file_error_in_python(std::string_view text);

}  // namespace rapt::python
