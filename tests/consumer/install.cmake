# Installs BUILD into an empty PREFIX, so that a file of an earlier install cannot hide a missing one.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${PREFIX}
  COMMAND_ERROR_IS_FATAL ANY)
