# cmake -D IN=FILE -D OUT=FILE.cc -D NAMESPACE=a::b -D NAME=function -P embed.cmake
# Writes a source file with the bytes of IN, and a function that returns them.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")  # 16 bytes a line
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "#include <cstddef>
#include <span>

namespace ${NAMESPACE} {
namespace {
alignas(64) constexpr unsigned char kBytes[] = {
${bytes}
};
}  // namespace
std::span<const std::byte> ${NAME}() { return std::as_bytes(std::span(kBytes)); }
}  // namespace ${NAMESPACE}
")
