#!/usr/bin/env bash
# Packs rapt into build/dist: the sources, the library and the command, and a wheel for each Python.
#
#   scripts/dist.sh [source] [binary] [wheels]      all of them if none is named
#
#   rapt-VERSION.tar.gz                    the sources of the last commit
#   rapt-VERSION-linux-PROCESSOR.tar.gz    library (static and shared), headers, command, manual, completions, the
#                                          explorer, and what CMake and pkg-config read
#   rapt_attention-VERSION-….whl           for every Python in PYTHONS, with the command
#
# The version is that of CMakeLists.txt. PYTHONS are programs; one wheel serves 3.12 and all later versions. The library
# and the command are compiled once, by the preset `portable`; each wheel compiles only the module for its Python.
#
# The command and the modules run on glibc 2.28 and later. zig, which links them, and auditwheel, which checks them, are
# in build/dist-venv (`make build/dist-venv/installed.txt`).
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
dist=build/dist
version=$(sed -n 's/^project(rapt VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ $# -gt 0 ] || set -- source binary wheels
mkdir -p "$dist"
glibc=2.28
tools=$PWD/build/dist-venv
zig=$(echo "$tools"/lib/python3*/site-packages/ziglang/zig)
prefix=$PWD/build/portable/prefix
export ZIG_GLOBAL_CACHE_DIR=$PWD/build/zig-cache

# The time of the commit is the time of every file, so that the same sources give the same archive.
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

# Builds the library and the command and installs them in $prefix, for the archive and for the wheels.
built=
build_prefix() {
  [ -z "$built" ] || return 0
  [ -x "$zig" ] || { echo "dist: no zig in $tools; run: make build/dist-venv/installed.txt" >&2; exit 1; }
  cmake --preset portable -DRAPT_GLIBC=$glibc -DRAPT_ZIG="$zig"
  cmake --build --preset portable --parallel "$jobs"
  rm -rf "$prefix"
  cmake --install build/portable --prefix "$prefix" --strip >/dev/null
  built=1
}

binary_archive() {
  local folder
  folder=$dist/rapt-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
  build_prefix
  rm -rf "$folder"
  cp -r "$prefix" "$folder"
  notices "$folder/share/doc/rapt"
  pack "$folder"
  rm -rf "$folder"
}

# Parts of these projects are in the command, the library and the explorer, and their licences require notices.
notices() {
  local package
  for package in libcli11-dev libfmt-dev nlohmann-json3-dev zlib1g-dev libhwy-dev emscripten; do
    if ! cp "/usr/share/doc/$package/copyright" "$1/$package.copyright" 2>/dev/null; then
      echo "dist: no copyright file of $package on this machine; add it before you pass the archive on" >&2
    fi
  done
  cp "$(dirname "$zig")/LICENSE" "$1/zig.copyright"
}

# The installed Pythons to build for: the system's own, those before 3.12, and the first one with the stable interface.
pythons() {
  if [ -n "${PYTHONS:-}" ]; then
    tr ' ' '\n' <<<"$PYTHONS"
    return
  fi
  local seen=" " name tag
  for name in python3 python3.10 python3.11 python3.12 python3.13 python3.14; do
    tag=$("$name" -c 'import sys; print("cp%d%d" % min(sys.version_info[:2], (3, 12)))' 2>/dev/null) || continue
    [[ $seen == *" $tag "* ]] && continue
    seen+="$tag "
    echo "$name"
  done
}

wheels() {
  local python setting settings=()
  build_prefix
  # A separate build folder: `pip install .` uses build/{wheel_tag}, with the library inside.
  for setting in build-dir="build/portable-{wheel_tag}" build.targets=rapt_python cmake.define.RAPT_BUILD_CLI=OFF \
    cmake.define.RAPT_PREBUILT="$prefix" cmake.define.RAPT_GLIBC=$glibc cmake.define.RAPT_ZIG="$zig"; do
    settings+=(--config-settings "$setting")
  done
  rm -rf "$dist"/rapt*.whl "$dist/linux"
  for python in $(pythons); do
    "$python" -m venv --clear "$dist/venv"  # with its own pip, because the system's may be absent or refuse to run
    "$dist/venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps "${settings[@]}" --wheel-dir "$dist/linux" .
    rm -rf "$dist/venv"
  done
  # Adds nothing to the wheels except, in their names, the oldest glibc that they run on; a newer one than requested is
  # an error.
  PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair --only-plat --plat "manylinux_${glibc/./_}_$(uname -m)" --wheel-dir "$dist" "$dist"/linux/*.whl
  rm -rf "$dist/linux"
  printf 'dist: %s\n' "$dist"/*.whl
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
