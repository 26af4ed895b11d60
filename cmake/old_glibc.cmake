# RAPT_GLIBC: the command and the Python module run on this version of glibc and on every newer one (docs/adr/0024).
#
# The compiler stays the same. Only these two are linked by zig, which has the start-up code and the symbol versions of
# every glibc. The C++ library is the compiler's own static one.
set(RAPT_GLIBC "" CACHE STRING "Oldest glibc that the command and the Python module run on; empty: this machine's")
set(RAPT_ZIG "" CACHE FILEPATH "The program zig, which links for RAPT_GLIBC")
if(NOT RAPT_GLIBC)
  return()
endif()
if(NOT RAPT_PORTABLE)
  message(FATAL_ERROR "rapt: RAPT_GLIBC is ${RAPT_GLIBC}; it requires RAPT_PORTABLE=ON")
endif()
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "rapt: RAPT_GLIBC is ${RAPT_GLIBC} and the compiler ${CMAKE_CXX_COMPILER_ID}; it requires g++")
endif()
if(NOT EXISTS "${RAPT_ZIG}")
  message(FATAL_ERROR "rapt: RAPT_GLIBC is ${RAPT_GLIBC} and RAPT_ZIG \"${RAPT_ZIG}\"; it must be the path of zig")
endif()

# libgcc.a has the data that __builtin_cpu_supports reads, in the compiler's own layout.
set(runtime)
foreach(name libstdc++.a libgcc.a)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${name}
    OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND runtime " \"${path}\"")
endforeach()
string(APPEND runtime " -lunwind -lm")

# Symbols that the compiler's C++ library expects of this machine's glibc, and that the older one lacks.
add_library(rapt_old_glibc OBJECT ${CMAKE_CURRENT_LIST_DIR}/old_glibc.cc)

set(zig "\"${RAPT_ZIG}\" cc -target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.${RAPT_GLIBC} -O2")
set(CMAKE_CXX_LINK_EXECUTABLE "${zig} -pie <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>${runtime}")
set(CMAKE_CXX_CREATE_SHARED_MODULE "${zig} -shared <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>${runtime}")
