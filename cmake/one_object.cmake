# cmake -D OUT=FILE.o -D OBJECTS=A.o;B.o -D ARCHIVE=libcudart_static.a -D LINKER=ld -D NM=nm -D OBJCOPY=objcopy
#       -P one_object.cmake
# Links objects, and what they need from an archive, into one object, and makes the archive's names local. A static
# library with this object no longer needs the archive, and may be linked beside another copy of it.
execute_process(COMMAND ${LINKER} -r -o ${OUT} ${OBJECTS} ${ARCHIVE} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${NM} --defined-only --extern-only --format=posix ${ARCHIVE}
  OUTPUT_VARIABLE lines ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+ [TDBR] [^\n]*" lines "${lines}")  # except weak names, which many files define
list(TRANSFORM lines REPLACE " .*" "")
list(JOIN lines "\n" lines)
file(WRITE ${OUT}.local "${lines}\n")
execute_process(COMMAND ${OBJCOPY} --localize-symbols=${OUT}.local ${OUT} COMMAND_ERROR_IS_FATAL ANY)
