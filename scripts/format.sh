#!/usr/bin/env bash
# Formats every C++ file in place, as .clang-format says.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/cxx-files.sh | xargs --no-run-if-empty clang-format -i
