#!/usr/bin/env bash
# Runs a CUDA compiler and keeps the remarks of ptxas on its kernels (-Xptxas=-v) in OBJECT.ptxas, for kernel_report.py.
# All other output of the compiler is printed. CMake runs it as a compiler launcher: scripts/keep-remarks.sh nvcc … -o
# OBJECT …
set -euo pipefail
object=
before=
for word in "$@"; do
  [ "$before" != -o ] || object=$word
  before=$word
done
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
"$@" 2>"$said" || status=$?
if [ -n "$object" ]; then
  grep -E '^ptxas (info|warning)|bytes stack frame' "$said" >"$object.ptxas" || true
fi
grep -v -E '^ptxas info|bytes stack frame|^$' "$said" >&2 || true
exit "$status"
