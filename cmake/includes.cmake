# rapt_includes(TARGET PATH…): what a target may include of the project besides the public headers, as folders or single
# headers: src/core, src/cpu/engine.h, cli. Its include path is a folder in the build tree with a link to each of them, so
# that an include of anything else does not compile (docs/architecture.md, "Who may include whom").
function(rapt_includes target)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..)
  set(links ${CMAKE_CURRENT_BINARY_DIR}/includes/${target})
  file(REMOVE_RECURSE ${links})  # removes the links that an earlier configuration made
  foreach(path ${ARGN})
    string(REGEX REPLACE "^src/" "" name ${path})
    cmake_path(GET name PARENT_PATH folder)
    file(MAKE_DIRECTORY ${links}/${folder})
    file(REAL_PATH ${source}/${path} real)
    file(CREATE_LINK ${real} ${links}/${name} SYMBOLIC)
  endforeach()
  target_include_directories(${target} PRIVATE ${links} ${source}/include)
endfunction()
