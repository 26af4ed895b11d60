# cmake --install: headers, library, command, and what find_package(rapt) and pkg-config read. The installed tree can be
# moved: every path in it is relative.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rapt)

set(installed rapt)
if(RAPT_SHARED_TOO AND TARGET rapt_shared)
  list(APPEND installed rapt_shared)
endif()
install(TARGETS ${installed} EXPORT raptTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/rapt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT raptTargets NAMESPACE rapt:: DESTINATION ${package_dir})

if(TARGET rapt_cli)
  if(BUILD_SHARED_LIBS)
    # The command finds the library by a path relative to its own folder.
    file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(rapt_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  endif()
  install(TARGETS rapt_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(NOT CMAKE_CROSSCOMPILING)
    set(written ${PROJECT_BINARY_DIR}/written)  # cli/CMakeLists.txt writes it
    install(FILES ${written}/rapt.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${written}/rapt DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${written}/_rapt DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  endif()
endif()

# The explorer's page, which another compiler builds (make explorer), is installed if it was built, so that the command
# finds it.
install(FILES ${PROJECT_SOURCE_DIR}/build/explorer/rapt.html DESTINATION ${CMAKE_INSTALL_DATADIR}/rapt
  RENAME explorer.html OPTIONAL)

get_target_property(library_type rapt TYPE)
set(RAPT_IS_STATIC OFF)
set(RAPT_PC_LIBS "-L\${libdir} -lrapt")
set(RAPT_PC_LIBS_PRIVATE "")
if(library_type STREQUAL "STATIC_LIBRARY")
  # A static library has no list of its dependencies, so its users link threads, zlib, and, for programs in C, the C++
  # library's own dependencies.
  set(RAPT_IS_STATIC ON)
  set(RAPT_CXX_RUNTIME stdc++ m)
  if("c++" IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    set(RAPT_CXX_RUNTIME c++ m)
  endif()
  set(needed "-pthread")
  if(RAPT_ZLIB)
    string(APPEND needed " -lz")
  endif()
  if(RAPT_HAVE_CUDA)  # dependencies of the CUDA runtime inside
    set(cuda_needs ${CMAKE_DL_LIBS} rt)
  endif()
  foreach(name ${cuda_needs} ${RAPT_CXX_RUNTIME})
    string(APPEND needed " -l${name}")
  endforeach()
  if(RAPT_SHARED_TOO)
    set(RAPT_PC_LIBS_PRIVATE ${needed})  # -lrapt finds the shared library, which lists its own dependencies
  else()
    string(APPEND RAPT_PC_LIBS " ${needed}")
  endif()
endif()

configure_package_config_file(cmake/raptConfig.cmake.in ${PROJECT_BINARY_DIR}/raptConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break compatibility.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/raptConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/raptConfig.cmake ${PROJECT_BINARY_DIR}/raptConfigVersion.cmake
  DESTINATION ${package_dir})

file(RELATIVE_PATH RAPT_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" RAPT_PC_TO_PREFIX "${RAPT_PC_TO_PREFIX}")
file(RELATIVE_PATH RAPT_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH RAPT_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/rapt.pc.in ${PROJECT_BINARY_DIR}/rapt.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rapt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
