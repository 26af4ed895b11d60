#!/usr/bin/env bash
# Runs a program under valgrind: no invalid access, no use of uninitialized memory, no leak. Exit code 77: no valgrind.
#   under_valgrind.sh PROGRAM [ARGUMENT…]
set -euo pipefail
command -v valgrind >/dev/null || exit 77
# Valgrind does not know the newest instructions; other tests cover every instruction set.
if grep --quiet avx512 /proc/cpuinfo; then export RAPT_ISA=avx2; fi
exec valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all "$@"
