# The CUDA engine as objects of the library (cuda_objects), and the libraries that these must be linked with
# (cuda_needs). Included by src/CMakeLists.txt.
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.h)
if(NOT RAPT_HAVE_CUDA)
  # Files that include no CUDA header are compiled and tested in every build.
  list(FILTER cuda_sources INCLUDE REGEX "/(absent|build_arguments|[a-z_]*plan|tensor_core)[.]cc$|[.]h$")
  add_library(rapt_cuda OBJECT EXCLUDE_FROM_ALL ${cuda_sources})
  rapt_includes(rapt_cuda src/cuda src/core)
  target_link_libraries(rapt_cuda PRIVATE rapt_options)
  set(cuda_objects $<TARGET_OBJECTS:rapt_cuda>)
  set(cuda_needs)
  return()
endif()

list(FILTER cuda_sources EXCLUDE REGEX "/absent[.]cc$")
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.cuh)
add_library(rapt_cuda OBJECT EXCLUDE_FROM_ALL ${cuda_sources} ${cuda_kernels})
rapt_includes(rapt_cuda src/cuda src/core)
target_link_libraries(rapt_cuda PRIVATE rapt_options)
target_include_directories(rapt_cuda SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
# Separate compilation stays off: it makes ptxas ignore setmaxnreg and serialize wgmma.
# Warning 554 is off: the read-only view type has a conversion operator to itself, which is never called.
target_compile_options(rapt_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--Werror;all-warnings;--diag-suppress=554;-Xcompiler=-Wall,-Wextra,-Wshadow,-ffp-contract=off,-Wno-unused-parameter,-Wno-unknown-pragmas>")
# The output of ptxas for each kernel is kept beside its object (for scripts/kernel_report.py).
target_compile_options(rapt_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
set(launcher ${PROJECT_SOURCE_DIR}/scripts/keep-remarks.sh ${CMAKE_CUDA_COMPILER_LAUNCHER})
set_target_properties(rapt_cuda PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}")

# The rows kernels, rows_setup.cu and the check of the tensor cores are compiled for Hopper alone. All other kernels run
# on every GPU from Turing on: as machine code on Hopper, and as PTX that the driver compiles elsewhere. These others
# use a fused multiply-add only where the source names one (--fmad=false), like host code with -ffp-contract=off.
foreach(kernel ${cuda_kernels})
  if(kernel MATCHES "/cuda/kernels/|/cuda/rows[a-z_]*[.]cu$")
    set(code --generate-code=arch=compute_90a,code=sm_90a)
  else()
    set(code --generate-code=arch=compute_90,code=sm_90 --generate-code=arch=compute_75,code=compute_75 --fmad=false)
  endif()
  set_source_files_properties(${kernel} PROPERTIES COMPILE_OPTIONS "${code}")
endforeach()

# All objects are linked into one that also contains the static CUDA runtime, so that programs link the library without
# CUDA.
set(cuda_objects ${CMAKE_CURRENT_BINARY_DIR}/rapt_cuda.o)
add_custom_command(OUTPUT ${cuda_objects}
  DEPENDS rapt_cuda $<TARGET_OBJECTS:rapt_cuda> ${PROJECT_SOURCE_DIR}/cmake/one_object.cmake
  COMMAND ${CMAKE_COMMAND} -D OUT=${cuda_objects} "-DOBJECTS=$<TARGET_OBJECTS:rapt_cuda>" -D ARCHIVE=${RAPT_CUDART}
          -D LINKER=${CMAKE_LINKER} -D NM=${CMAKE_NM} -D OBJCOPY=${CMAKE_OBJCOPY}
          -P ${PROJECT_SOURCE_DIR}/cmake/one_object.cmake VERBATIM)
set_source_files_properties(${cuda_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
# These parts of the C library are separate libraries in its old versions.
set(cuda_needs ${CMAKE_DL_LIBS} rt)
