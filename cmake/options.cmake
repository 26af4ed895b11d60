# Flags that every target of this project shares. -ffp-contract=off: the arithmetic contract specifies each fused
# multiply-add, so the compiler must not introduce any.
add_library(rapt_options INTERFACE)
set(host_options -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  -ffp-contract=off
  # With 32-bit addresses, sizes are checked in 64 bits before they are narrowed.
  $<$<BOOL:${EMSCRIPTEN}>:-Wno-shorten-64-to-32>
  $<$<BOOL:${RAPT_WERROR}>:-Werror>)
target_compile_options(rapt_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${host_options}>")

# The optimization flag of the tests and the command under sanitizers. Only the library, the code under test, is
# optimized.
set(RAPT_O0_UNDER_SANITIZERS)
if(RAPT_SANITIZE)
  set(RAPT_O0_UNDER_SANITIZERS -O0)
  # The debug information has only line numbers, which is all that a report shows; the rest would take a quarter of the
  # compile time.
  target_compile_options(rapt_options INTERFACE
    -fsanitize=${RAPT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(rapt_options INTERFACE -fsanitize=${RAPT_SANITIZE})
  # Precompiled headers without a timestamp can be cached by ccache.
  target_compile_options(rapt_options INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

if(RAPT_PORTABLE)
  # Programs and modules contain the C++ library. A shared library must not, because it shares exceptions and strings
  # with the program that uses it. It does contain zlib, whose symbols it does not export.
  set(is_shared $<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>)
  set(static_runtime -static-libstdc++$<SEMICOLON>-static-libgcc)
  if(RAPT_GLIBC)
    set(static_runtime)  # cmake/old_glibc.cmake links it
  endif()
  target_link_options(rapt_options INTERFACE
    $<IF:${is_shared},-Wl$<COMMA>--exclude-libs$<COMMA>ALL,${static_runtime}>)
endif()
