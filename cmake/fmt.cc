// {fmt} 9, compiled from its headers. Debian has it as a shared library only. With this file, a portable command does
// not need that library, and its other objects are the same as in any other build. If every file included {fmt}'s
// source instead, each would take twice as long to compile.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// Declared in fmt/format.h, defined in fmt/format-inl.h.
template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref);
template FMT_API char decimal_point_impl(locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
