# Every block of code in README.md and docs/guide runs: tests/guide/blocks.py describes the format of a page. The
# Python blocks run with the package's own tests (bindings/python/tests/test_guide.py).
set(guide ${CMAKE_CURRENT_LIST_DIR})
add_test(NAME GuidePages COMMAND Python3::Interpreter -B ${guide}/check_test.py ${PROJECT_SOURCE_DIR})

# The dependencies of the library, which a static library does not contain.
set(guide_links $<TARGET_FILE:rapt> -Wl,-rpath,$<TARGET_FILE_DIR:rapt> -pthread ${sanitizer_flags})
if(RAPT_ZLIB)
  list(APPEND guide_links ${ZLIB_LIBRARIES})
endif()
foreach(language Cpp C)
  string(TOLOWER ${language} name)
  add_test(NAME Guide${language}
    COMMAND Python3::Interpreter -B ${guide}/compiled_test.py ${PROJECT_SOURCE_DIR} ${name} ${CMAKE_CXX_COMPILER}
            ${sanitizer_flags} -- ${guide_links})
endforeach()

# The commands themselves run under sanitizers in their own tests; here they would take minutes. A shared library in
# ~/.local is found only if LD_LIBRARY_PATH is set; the pages are about the static one.
get_target_property(guide_library rapt TYPE)
if(TARGET rapt_cli AND RAPT_INSTALL AND NOT RAPT_SANITIZE AND guide_library STREQUAL "STATIC_LIBRARY")
  add_test(NAME GuideShell
    COMMAND Python3::Interpreter -B ${guide}/shell_test.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
            $<TARGET_FILE:rapt_cli>)
  # GuideShell and PackageInstalls install from the same build folder.
  set_tests_properties(GuideShell PROPERTIES RESOURCE_LOCK installing)
endif()
