#!/usr/bin/env bash
# Runs a CUDA compiler and keeps what ptxas says of its kernels (-Xptxas=-v) in OBJECT.ptxas, for kernel_report.py. What
# else the compiler says is printed. CMake puts it before the compiler: scripts/keep-remarks.sh nvcc … -o OBJECT …
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
