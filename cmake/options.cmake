# Flags that every target of this project shares. -ffp-contract=off: the arithmetic contract names each fused
# multiply-add, so the compiler must not make or break one by itself.
add_library(rapt_options INTERFACE)
target_compile_options(rapt_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -ffp-contract=off
  $<$<BOOL:${RAPT_WERROR}>:-Werror>)

if(RAPT_SANITIZE)
  target_compile_options(rapt_options INTERFACE
    -fsanitize=${RAPT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(rapt_options INTERFACE -fsanitize=${RAPT_SANITIZE})
endif()
