#!/usr/bin/env bash
# Prints every C++ and C file of the project, or those whose name matches a pattern: scripts/cxx-files.sh '*.cc'
set -euo pipefail
cd "$(dirname "$0")/.."
folders=()
for folder in include src cli bindings examples tests bench fuzz; do
  [ -d "$folder" ] && folders+=("$folder")
done
if [ $# -gt 0 ]; then
  find "${folders[@]}" -type f -name "$1" | sort
else
  find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) | sort
fi
