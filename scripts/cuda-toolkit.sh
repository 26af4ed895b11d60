#!/usr/bin/env bash
# Arranges PyPI's CUDA packages in a virtual environment so that CMake accepts them as a toolkit.
#
#   scripts/cuda-toolkit.sh VENV           writes VENV/nvcc, which runs the compiler
set -euo pipefail
venv=$(realpath "${1:?usage: cuda-toolkit.sh VENV}")
toolkit=$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13)
[ -x "$toolkit/bin/nvcc" ] || { echo "cuda-toolkit: no nvcc in $toolkit" >&2; exit 1; }
ln -sfn lib "$toolkit/lib64"  # where nvcc's own profile looks for the runtime
printf '#!/bin/sh\nexec "%s/bin/nvcc" "$@"\n' "$toolkit" >"$venv/nvcc"
chmod +x "$venv/nvcc"
