#!/usr/bin/env bash
# Packs rapt into build/dist: the sources, the library and the command, and a wheel for each Python.
#
#   scripts/dist.sh [source] [binary] [wheels]      all of them when none is named
#
#   rapt-VERSION.tar.gz                    the sources of the last commit
#   rapt-VERSION-linux-PROCESSOR.tar.gz    library (static and shared), headers, command, manual, completions, the
#                                          explorer, and what CMake and pkg-config read
#   rapt-VERSION-….whl                     for every Python in PYTHONS, the command inside
#
# The version is that of CMakeLists.txt. PYTHONS are programs; one wheel serves 3.12 and all that follow.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
dist=build/dist
version=$(sed -n 's/^project(rapt VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ $# -gt 0 ] || set -- source binary wheels
mkdir -p "$dist"

# The time of the commit, so that the same sources make the same archive.
time=$(git log -1 --format=%ct 2>/dev/null || date +%s)

pack() {  # pack FOLDER: FOLDER.tar.gz beside it
  tar --create --directory "$(dirname "$1")" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" \
    "$(basename "$1")" | gzip --no-name --best >"$1.tar.gz"
  echo "dist: $1.tar.gz"
}

source_archive() {
  git rev-parse --git-dir >/dev/null 2>&1 || { echo "dist: a source archive is made of a commit; this is no repository" >&2; exit 1; }
  if [ -n "$(git status --porcelain)" ]; then
    echo "dist: what is not committed is not in the source archive" >&2
  fi
  git archive --prefix="rapt-$version/" HEAD | gzip --no-name --best >"$dist/rapt-$version.tar.gz"
  echo "dist: $dist/rapt-$version.tar.gz"
}

binary_archive() {
  local folder
  folder=$dist/rapt-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
  cmake --preset portable
  cmake --build --preset portable --parallel "$jobs"
  rm -rf "$folder"
  cmake --install build/portable --prefix "$PWD/$folder" --strip >/dev/null
  notices "$folder/share/doc/rapt"
  pack "$folder"
  rm -rf "$folder"
}

# Parts of these are in the command, the library and the explorer, and want their names said.
notices() {
  local package
  for package in libcli11-dev libfmt-dev nlohmann-json3-dev zlib1g-dev libhwy-dev emscripten; do
    if ! cp "/usr/share/doc/$package/copyright" "$1/$package.copyright" 2>/dev/null; then
      echo "dist: no copyright file of $package on this machine; add it before you pass the archive on" >&2
    fi
  done
}

# Of the Pythons at hand: this machine's own, and the first that has the stable interface.
pythons() {
  if [ -n "${PYTHONS:-}" ]; then
    tr ' ' '\n' <<<"$PYTHONS"
    return
  fi
  local seen=" " name tag
  for name in python3 python3.12 python3.13 python3.14; do
    tag=$("$name" -c 'import sys; print("cp%d%d" % min(sys.version_info[:2], (3, 12)))' 2>/dev/null) || continue
    [[ $seen == *" $tag "* ]] && continue
    seen+="$tag "
    echo "$name"
  done
}

wheels() {
  local python
  rm -f "$dist"/rapt-*.whl
  for python in $(pythons); do
    "$python" -m venv --clear "$dist/venv"  # a pip of its own: the system's may refuse, or be absent
    "$dist/venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$dist" .
    rm -rf "$dist/venv"
  done
  printf 'dist: %s\n' "$dist"/rapt-*.whl
}

for part in "$@"; do
  case "$part" in
    source) source_archive ;;
    binary) binary_archive ;;
    wheels) wheels ;;
    *)
      echo "dist: there is no '$part'; say source, binary or wheels" >&2
      exit 1
      ;;
  esac
done
