# Tests of the project rather than of attention: its includes, its headers, its examples and its installed package.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(sanitizer_flags)
if(RAPT_SANITIZE)
  set(sanitizer_flags -fsanitize=${RAPT_SANITIZE})  # a program that links a sanitized library must be sanitized too
endif()

add_test(NAME IncludeRules COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/include_rules.py ${PROJECT_SOURCE_DIR})
add_test(NAME IncludeRulesNoticeEveryBreach
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/include_rules.py --self-test)
if(TARGET rapt_cli)
  add_test(NAME IncludeBreachDoesNotCompile
    COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/breach_test.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
endif()
add_test(NAME ReferenceHasEveryDeclaration
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/reference_test.py ${PROJECT_SOURCE_DIR})
add_test(NAME FoldersAreSmall
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/folders_test.py ${PROJECT_SOURCE_DIR})
if(NOT RAPT_SANITIZE)  # no sanitizer sees it
  add_test(NAME CiWaitsForEveryStep
    COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/ci_test.py ${PROJECT_SOURCE_DIR})
endif()
add_test(NAME ReadmesSayTheSame
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/readme_test.py ${PROJECT_SOURCE_DIR})
add_test(NAME KernelReportReadsWhatPtxasSays
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/kernel_report_test.py ${PROJECT_SOURCE_DIR})
if(RAPT_HAVE_CUDA)
  add_test(NAME KernelsAreAsReported
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/scripts/kernel_report.py ${PROJECT_BINARY_DIR} --check)
endif()
set(rapt_command)  # without it, commands of rapt that the documents name are not checked
if(TARGET rapt_cli)
  set(rapt_command $<TARGET_FILE:rapt_cli>)
endif()
add_test(NAME DocsNameWhatExists
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/docs_test.py ${PROJECT_SOURCE_DIR} ${rapt_command})
add_test(NAME DocsNameWhatExistsNoticesEveryBreach
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/docs_test.py --self-test)
include(${CMAKE_CURRENT_SOURCE_DIR}/guide/guide_tests.cmake)

# Compiles each public header alone, included twice: it must include what it needs, and may be included again.
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/rapt/*.h)
foreach(header ${headers})
  get_filename_component(name ${header} NAME_WE)
  set(alone ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cc)
  file(CONFIGURE OUTPUT ${alone} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  add_test(NAME HeaderCompilesAlone.${name}
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only
            -I ${PROJECT_SOURCE_DIR}/include ${alone})
endforeach()

if(RAPT_BUILD_EXAMPLES)
  file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cc ${PROJECT_SOURCE_DIR}/examples/*.c)
  foreach(example ${examples})
    get_filename_component(name ${example} NAME_WE)
    add_test(NAME ExampleRuns.${name} COMMAND example_${name})
  endforeach()
endif()

# The installed package, used by an external project.
if(RAPT_INSTALL)
  include(GNUInstallDirs)
  set(installed ${CMAKE_CURRENT_BINARY_DIR}/installed)
  add_test(NAME PackageInstalls
    COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D CONFIG=$<CONFIG> -D PREFIX=${installed}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/install.cmake)
  add_test(NAME InstalledPackageServesAConsumer
    COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test
            ${CMAKE_CURRENT_SOURCE_DIR}/consumer ${CMAKE_CURRENT_BINARY_DIR}/consumer
            --build-generator ${CMAKE_GENERATOR} --build-noclean
            --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_CXX_FLAGS=${sanitizer_flags}
                            -DCMAKE_PREFIX_PATH=${installed}
            --test-command consumer)
  set(c_compiler ${CMAKE_C_COMPILER})
  if(RAPT_SANITIZE)
    set(c_compiler none)  # only a C++ compiler links a sanitizer's runtime for C++
  endif()
  add_test(NAME InstalledPackageServesAConsumerInC
    COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test
            ${CMAKE_CURRENT_SOURCE_DIR}/consumer/c ${CMAKE_CURRENT_BINARY_DIR}/consumer_in_c
            --build-generator ${CMAKE_GENERATOR} --build-noclean
            --build-options -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_C_FLAGS=${sanitizer_flags}
                            -DCMAKE_PREFIX_PATH=${installed}
            --test-command consumer)
  add_test(NAME InstalledPackageServesAConsumerThroughPkgConfig
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/consumer/through_pkg_config.sh ${CMAKE_CXX_COMPILER} ${c_compiler}
            ${installed} ${CMAKE_INSTALL_LIBDIR} ${CMAKE_CURRENT_BINARY_DIR}/consumer_pkg_config ${sanitizer_flags})
  set_tests_properties(PackageInstalls PROPERTIES FIXTURES_SETUP installed_package RESOURCE_LOCK installing)
  set_tests_properties(InstalledPackageServesAConsumer InstalledPackageServesAConsumerInC
    InstalledPackageServesAConsumerThroughPkgConfig PROPERTIES FIXTURES_REQUIRED installed_package)
  if(RAPT_SANITIZE)
    set_tests_properties(InstalledPackageServesAConsumerInC PROPERTIES DISABLED ON)
  endif()
endif()
