#!/usr/bin/env bash
# Tests the packages of `make dist` outside this tree, as their users would: the binary archive from the shell, CMake
# and pkg-config; the wheels in empty environments without a compiler; the sources by building a part of them.
#
#   scripts/check-dist.sh [source] [binary] [wheels]      all of them if none is named
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
version=$(sed -n 's/^project(rapt VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
dist=$root/build/dist
[ $# -gt 0 ] || set -- source binary wheels
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT

fail() {
  echo "check-dist: $*" >&2
  exit 1
}

# The newest version of glibc that a program or module requires must be 2.28 or older.
check_glibc() {
  local newest
  newest=$(objdump -T "$1" | grep -o 'GLIBC_[0-9][0-9.]*' | cut -d_ -f2 | sort -uV | tail -1)
  [ -n "$newest" ] || fail "$1 names no version of glibc"
  [ "$(printf '%s\n2.28\n' "$newest" | sort -V | tail -1)" = 2.28 ] || fail "$1 requires glibc $newest; it must run on 2.28"
}

# ---------------------------------------------------------------- sources

source_archive() {
  tar -xzf "$dist/rapt-$version.tar.gz" -C "$away"
  local sources=$away/rapt-$version
  [ "$(cd "$sources" && find . -type f -o -type l | wc -l)" = "$(git ls-tree -r --name-only HEAD | wc -l)" ] ||
    fail "the files of the source archive are not those of the commit"
  cmake -S "$sources" -B "$away/build" -G Ninja -DRAPT_BUILD_TESTS=OFF -DRAPT_BUILD_EXAMPLES=OFF >/dev/null
  cmake --build "$away/build" --target rapt_c >/dev/null
  echo "check-dist: the sources configure and compile"
}

# ---------------------------------------------------------------- the binary archive

binary_archive() {
  local archive
  archive=$dist/rapt-$version-linux-$(uname -m)
  tar -xzf "$archive.tar.gz" -C "$away"
  local prefix=$away/somewhere/else
  mkdir -p "$away/somewhere"
  mv "$away/$(basename "$archive")" "$prefix"

  # From the shell, with nothing but the C library.
  [ "$(env -i "$prefix/bin/rapt" --version)" = "rapt $version" ] || fail "the command does not know its version"
  env -i "$prefix/bin/rapt" explain --causal >"$away/explained"
  [ -s "$away/explained" ] || fail "the command explains nothing"
  env -i "$prefix/bin/rapt" run --html "$away/heads.html" >/dev/null 2>&1
  [ -s "$away/heads.html" ] || fail "the command does not find the explorer"
  # shellcheck disable=SC2016  # $1 is awk's
  strange=$(ldd "$prefix/bin/rapt" | awk '{ print $1 }' | grep -v -e '^linux-vdso' -e '^libm[.]' -e '^libc[.]' \
    -e '^libpthread[.]' -e '^libdl[.]' -e '^/lib.*/ld-linux' || true)
  [ -z "$strange" ] || fail "the command needs $strange"
  check_glibc "$prefix/bin/rapt"
  for file in share/man/man1/rapt.1 share/bash-completion/completions/rapt share/zsh/site-functions/_rapt \
    share/rapt/explorer.html share/doc/rapt/LICENSE include/rapt/attention.h include/rapt/rapt.h lib/librapt.a lib/librapt.so; do
    [ -s "$prefix/$file" ] || fail "$file is missing"
  done
  if grep -rIl -e "$root" "$prefix"; then fail "the files above contain the path of the build folder"; fi
  python3 -B tests/c/abi.py symbols include "$prefix/lib/librapt.so" >/dev/null || fail "the shared library exports other symbols than its headers declare"
  echo "check-dist: the command runs, and nothing is missing"

  # From CMake: C++ and C, with either kind of library.
  for language in . c; do
    for target in rapt::rapt rapt::shared; do
      rm -rf "$away/consumer"
      cmake -S "tests/consumer/$language" -B "$away/consumer" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_PREFIX_PATH="$prefix" -DRAPT_TARGET=$target >/dev/null
      cmake --build "$away/consumer" >/dev/null
      "$away/consumer/consumer" >/dev/null
    done
  done
  echo "check-dist: CMake finds it, from C++ and from C, static and shared"

  # And through pkg-config, which prefers the shared library; without the shared one, it uses the static one.
  tests/consumer/through_pkg_config.sh c++ cc "$prefix" lib "$away/pkg_config" >/dev/null
  rm "$prefix"/lib/librapt.so*
  PKG_CONFIG_FLAGS=--static tests/consumer/through_pkg_config.sh c++ cc "$prefix" lib "$away/pkg_config" >/dev/null
  echo "check-dist: pkg-config finds it, from C++ and from C, static and shared"
}

# ---------------------------------------------------------------- wheels

# Checks the tag that auditwheel derives from the symbols in each wheel, and the tag in the wheel's name.
audit_wheels() {
  local wheel found
  for wheel in "$dist"/rapt_attention-"$version"-*.whl; do
    [ -f "$wheel" ] || fail "there is no wheel of rapt_attention $version"
    found=$("$root/build/dist-venv/bin/auditwheel" show "$wheel" | tr '\n' ' ')
    found=$(sed -n 's/.*tag: *"\(manylinux_2_[0-9]*\)_.*/\1/p' <<<"$found")
    [[ $found =~ ^manylinux_2_([0-9]+)$ && ${BASH_REMATCH[1]} -le 28 ]] || fail "auditwheel finds '$found' in $wheel; it must be manylinux_2_28 or older"
    [[ $wheel == *-manylinux_2_*_"$(uname -m)".whl ]] || fail "$wheel has no manylinux tag"
    rm -rf "$away/wheel"
    python3 -m zipfile -e "$wheel" "$away/wheel"
    check_glibc "$away/wheel/rapt_attention-$version.data/scripts/rapt"
    echo "check-dist: $(basename "$wheel"): auditwheel finds $found"
  done
}

wheels() {
  audit_wheels
  local tried=() python number environment
  for python in ${PYTHONS:-python3 python3.10 python3.11 python3.12 python3.13 python3.14}; do
    number=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    [[ " ${tried[*]-} " == *" $number "* ]] && continue
    environment=$away/environment-$number
    "$python" -m venv "$environment"
    # Only this environment's own programs can be found: no compiler, no CMake.
    local in_it=(env -i "HOME=$away" "PATH=$environment/bin")
    if ! "${in_it[@]}" "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --only-binary=:all: \
      --find-links "$dist" "rapt-attention==$version" 2>"$away/pip"; then
      grep --quiet -e "No matching distribution" "$away/pip" || { cat "$away/pip" >&2; fail "the wheel does not install on Python $number"; }
      continue  # there is no wheel for it
    fi
    (cd "$away" && "${in_it[@]}" "$environment/bin/python" "$root/tests/consumer/use_wheel.py" "$version")
    [ "$("${in_it[@]}" "$environment/bin/rapt" --version)" = "rapt $version" ] || fail "Python $number: no command"
    tried+=("$number")
  done
  [ ${#tried[@]} -gt 0 ] || fail "no wheel fits any Python here"
  echo "check-dist: the wheel works on Python ${tried[*]}, without a compiler"
  [ ${#tried[@]} -gt 1 ] || echo "check-dist: only one version of Python was tried" >&2
}

for part in "$@"; do
  case "$part" in
    source) source_archive ;;
    binary) binary_archive ;;
    wheels) wheels ;;
    *) fail "there is no '$part'; say source, binary or wheels" ;;
  esac
done
