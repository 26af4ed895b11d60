#!/usr/bin/env bash
# Checks formatting, shell scripts, wording, Python and JavaScript, runs clang-tidy, and stops at the first kind of
# check that has a finding.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}

echo "lint: clang-format"
scripts/cxx-files.sh | xargs --no-run-if-empty clang-format --dry-run -Werror

echo "lint: shell"
# Scripts without a suffix are recognized by their first line.
mapfile -t shell < <(grep --recursive --files-with-matches --max-count=1 --include='*.sh' --include=run '^#!/usr/bin/env bash' scripts .ci tests bench)
for script in "${shell[@]}"; do bash -n "$script"; done
if command -v shellcheck >/dev/null; then shellcheck "${shell[@]}"; fi

echo "lint: words"
# Phrases that readers stumbled over, each with what to write instead. Case does not matter.
phrases=(
  'asked for ahead=>prefetched'
  'where (it|they) lies?\b=>in place'
  '\blies? side by side=>contiguous, adjacent'
  '\blies on (the |a )?(cpu|gpu|device)=>is on'
  'in(to)? the (first|second) cache=>L1, L2'
  'something behind it=>requires a value'
  'its ending says=>unknown file extension'
  '\bno (whole )?number any more=>is not finite'
  'who computes=>engine'
  "of the caller's\b=>the caller's …"
  '\bwhoever\b=>the caller, the reader, the owner …'
  'refused in words=>refused with a message'
  'cut into (two )?calls=>split into calls'
  'taken as zeros=>zeros are used instead'
  '(numbers|options) alone, not\b=>depends only on …'
)
# Historical records are not rewritten.
records=(':!docs/adr' ':!docs/benchmarks' ':!docs/perf-log.md' ':!CHANGELOG.md' ':!bench/peers' ':!fuzz/corpus' ':!tests/data')
found=0
for phrase in "${phrases[@]}"; do
  if git grep --line-number --ignore-case --extended-regexp -I -e "${phrase%%=>*}" -- . "${records[@]}" ':!scripts/lint.sh'; then
    echo "lint: the lines above say \"${phrase%%=>*}\"; write: ${phrase##*=>}" >&2
    found=1
  fi
done
[ "$found" -eq 0 ]

echo "lint: python"
folders=()
for folder in scripts tests bench bindings examples docs explorer fuzz; do [ -d "$folder" ] && folders+=("$folder"); done
find "${folders[@]}" \( -name '*.py' -o -name '*.pyi' \) -print0 | xargs -0 --no-run-if-empty python3 -c '
import ast, sys
for path in sys.argv[1:]:
    ast.parse(open(path, encoding="utf-8").read(), path)'  # parsed only: compiling would leave files in the tree

if command -v node >/dev/null; then
  echo "lint: javascript"
  find explorer bindings/wasm -name '*.mjs' -print0 | xargs -0 -n 1 node --check
fi

echo "lint: clang-tidy"
[ -f build/dev/build.ninja ] || cmake --preset dev >/dev/null
cmake --build build/dev --target build.ninja >/dev/null  # so that compile_commands.json includes new files

if [ ! -x build/lint-venv/bin/clang-tidy ]; then
  echo "lint: no build/lint-venv; make lint installs it" >&2
  exit 1
fi

# A clean file is not checked again until it, a header or the rules change.
stamps=build/lint
mkdir -p "$stamps"
common=$({ cat .clang-tidy scripts/lint.sh scripts/lint-requirements.txt; scripts/cxx-files.sh '*.h' | xargs cat; } | sha256sum)
# The Python package has its own build, which needs only a few flags.
python=build/venv/bin/python
python_flags=
if [ -x "$python" ]; then
  python_flags="-std=c++20 -DRAPT_VERSION=0 -Iinclude -Ibindings/python/src -isystem $("$python" -m nanobind --include_dir)"
  python_flags+=" -isystem $("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')"
else
  echo "lint: no build/venv (make build/venv/installed.txt): bindings/python is left out" >&2
fi
# The module for web pages has its own build, too.
sysroot=/usr/share/emscripten/cache/sysroot
wasm_flags=
if [ -d "$sysroot" ]; then
  wasm_flags="-std=c++20 -DRAPT_VERSION=\"0\" -Iinclude -Isrc -Ibindings/wasm -include bindings/wasm/missing_std.h"
  mkdir -p "$stamps/include"
  ln -sfn /usr/include/nlohmann "$stamps/include/nlohmann"  # /usr/include also has the headers of another C library
  wasm_flags+=" -isystem $stamps/include -isystem $sysroot/include/compat --target=wasm32-unknown-emscripten --sysroot=$sysroot -D__EMSCRIPTEN__"
else
  echo "lint: no Emscripten (make wasm): bindings/wasm is left out" >&2
fi
# The CUDA engine is compiled only if there is nvcc, whose headers it includes.
cuda_flags=
if nvcc=$(command -v nvcc); then
  cuda_flags="-std=c++20 -Iinclude -Isrc -isystem $(dirname "$nvcc")/../include"
else
  echo "lint: no nvcc: src/cuda is left out" >&2
fi
tidy() {
  local stamp
  local build=(-p build/dev "$1")
  if [[ $1 == bindings/python/* ]]; then
    [ -n "$python_flags" ] || return 0
    read -ra build <<<"$1 -- $python_flags"
  elif [[ $1 == bindings/wasm/* ]]; then
    [ -n "$wasm_flags" ] || return 0
    # Two checks are off: on this single-threaded target, constants in headers seem to be initialized at run time; and
    # missing_std.h adds to std what Emscripten's C++ library lacks.
    read -ra build <<<"--checks=-bugprone-dynamic-static-initializers,-bugprone-std-namespace-modification $1 -- $wasm_flags"
  elif [[ $1 == src/cuda/* && $1 != src/cuda/absent.cc ]]; then
    [ -n "$cuda_flags" ] || return 0
    read -ra build <<<"$1 -- $cuda_flags"
  fi
  stamp=$stamps/$({ echo "$common $1"; cat "$1"; } | sha256sum | cut -c1-32)
  [ -f "$stamp" ] && return
  # clang-tidy writes the number of suppressed warnings in foreign headers to stderr, and findings to stdout.
  if ! build/lint-venv/bin/clang-tidy --quiet "${build[@]}" 2>"$stamp.log"; then
    grep -v 'warnings generated' "$stamp.log" >&2 || true
    rm -f "$stamp.log"
    return 1
  fi
  rm -f "$stamp.log"
  touch "$stamp"
}
export -f tidy
export stamps common python_flags wasm_flags cuda_flags
# Only files that this build compiles: tests/consumer, tests/long and the fuzzers have their own builds.
# shellcheck disable=SC2016  # $1 is for the inner shell
scripts/cxx-files.sh '*.cc' | grep -v -e '^tests/consumer/' -e '^tests/long/' -e '^fuzz/entry.cc' -e '^fuzz/no_engines.cc' |
  xargs --no-run-if-empty -P "$jobs" -I{} bash -c 'tidy "$1"' tidy {}

echo "lint: clean"
