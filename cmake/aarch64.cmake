# Cross-compiles for 64-bit Arm with Debian's g++-aarch64-linux-gnu; the programs run under qemu-aarch64 (package
# qemu-user).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

# Highway's headers are the same for every processor, but are in one folder with the host's C library headers, which are
# not. A separate folder keeps the latter out.
set(headers ${CMAKE_BINARY_DIR}/headers)
if(NOT EXISTS ${headers}/hwy)
  file(MAKE_DIRECTORY ${headers})
  file(CREATE_LINK /usr/include/hwy ${headers}/hwy SYMBOLIC)
endif()
include_directories(SYSTEM ${headers})
