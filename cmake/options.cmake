# Flags that every target of this project shares. -ffp-contract=off: the arithmetic contract names each fused
# multiply-add, so the compiler must not make or break one by itself.
add_library(rapt_options INTERFACE)
set(host_options -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  -ffp-contract=off
  # With 32-bit addresses, sizes are checked in 64 bits before they are narrowed.
  $<$<BOOL:${EMSCRIPTEN}>:-Wno-shorten-64-to-32>
  $<$<BOOL:${RAPT_WERROR}>:-Werror>)
target_compile_options(rapt_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${host_options}>")

# For the tests and the command: what is tested is in the library.
set(RAPT_O0_UNDER_SANITIZERS)
if(RAPT_SANITIZE)
  set(RAPT_O0_UNDER_SANITIZERS -O0)
  # Of debug information only lines, which is all that a report shows: the rest takes a quarter of the compiler's time.
  target_compile_options(rapt_options INTERFACE
    -fsanitize=${RAPT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(rapt_options INTERFACE -fsanitize=${RAPT_SANITIZE})
  # Precompiled headers without a timestamp can be cached by ccache.
  target_compile_options(rapt_options INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

if(RAPT_PORTABLE)
  # Programs and modules bring the C++ library with them. A shared library must not: its exceptions and strings are
  # those of the program that uses it. What it does bring, zlib, stays inside.
  set(is_shared $<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>)
  set(static_runtime -static-libstdc++$<SEMICOLON>-static-libgcc)
  if(RAPT_GLIBC)
    set(static_runtime)  # cmake/old_glibc.cmake names it
  endif()
  target_link_options(rapt_options INTERFACE
    $<IF:${is_shared},-Wl$<COMMA>--exclude-libs$<COMMA>ALL,${static_runtime}>)
endif()
