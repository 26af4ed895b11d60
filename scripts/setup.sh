#!/usr/bin/env bash
# Installs what building and testing rapt requires and this machine lacks, from the distribution's own packages.
#
#   scripts/setup.sh [group…]      groups: build (the default), test, python, wasm, explorer, lint, cross, bench, fresh, ci
#
# Idempotent. Prints every package it installs, and does not use the network when none is missing.
set -euo pipefail

packages_of() {
  case "$1" in
    build) echo "g++ cmake ninja-build pkg-config libhwy-dev zlib1g-dev libgtest-dev libgmock-dev libfmt-dev libcli11-dev nlohmann-json3-dev python3" ;;
    # Needed by a few tests, which are skipped without these packages.
    test) echo "valgrind libdlpack-dev" ;;
    python) echo "python3-dev python3-venv" ;;
    wasm) echo "emscripten nodejs" ;;
    # For building the page, and for its tests in a browser with Chinese fonts.
    explorer) echo "emscripten nodejs esbuild chromium fonts-noto-cjk python3-venv" ;;
    lint) echo "clang libclang-rt-14-dev clang-format shellcheck python3-venv" ;;
    # Two BLAS libraries; which is faster depends on the CPU, and rapt is compared with the faster one.
    bench) echo "libopenblas0-pthread libdnnl2 python3-venv" ;;
    cross) echo "g++-aarch64-linux-gnu qemu-user" ;;
    # A bare Debian in a folder, for make test-fresh.
    fresh) echo "debootstrap" ;;
    # .ci/run compiles the same sources for several builds; the cache compiles each once.
    ci) echo "ccache" ;;
    *)
      echo "setup: unknown group '$1'; the groups are build, test, python, wasm, explorer, lint, cross, bench, fresh and ci" >&2
      return 1
      ;;
  esac
}

if [ $# -eq 0 ]; then set -- build; fi
wanted=()
for group in "$@"; do
  list=$(packages_of "$group")
  read -ra names <<<"$list"
  wanted+=("${names[@]}")
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  # On another system packages have other names, so only the programs can be checked.
  missing=()
  for group in "$@"; do
    case "$group" in
      build) programs="c++ cmake ninja pkg-config python3" ;;
      test) programs="" ;;
      python) programs="python3" ;;
      wasm) programs="emcmake node" ;;
      explorer) programs="emcmake node esbuild chromium python3" ;;
      lint) programs="clang++ clang-format python3" ;;
      bench) programs="python3" ;;
      cross) programs="aarch64-linux-gnu-g++ qemu-aarch64" ;;
      fresh) programs="debootstrap" ;;
      ci) programs="ccache" ;;
    esac
    for program in $programs; do
      command -v "$program" >/dev/null || missing+=("$program")
    done
  done
  [ ${#missing[@]} -eq 0 ] && exit 0
  cat >&2 <<TEXT
setup: this is not a Debian-like system, so nothing was installed. Not found here: ${missing[*]}
rapt needs:
  to build  a C++20 compiler (g++ 12 or clang 14, or later), CMake 3.25 or later, Ninja, pkg-config, Python 3,
            and the development files of Highway, zlib, GoogleTest with GoogleMock, {fmt}, CLI11 and nlohmann-json 3
  to test   valgrind and the header of DLPack, without which some tests are skipped
  to build the Python package   Python's headers and its venv
  to build for browsers         Emscripten 3.1.6 or later, and Node 18 or later
  to build and test the explorer  these, esbuild, and Chromium (make test needs them; make test-release does not)
  to lint   clang, clang-format 14, and Python's venv
  to bench  OpenBLAS or oneDNN, as a library to load, and Python's venv
  to run the long tests   a g++ that builds for aarch64, and qemu's user-mode emulator of it
(on Debian: ${wanted[*]})
TEXT
  exit 1
fi

missing=()
for name in "${wanted[@]}"; do
  # Virtual packages have no status, so every name above must be a real package.
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$name")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing: ${missing[*]}" >&2
    echo "setup: installing them needs root or sudo; as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
# Uses env because sudo drops the caller's variables.
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
echo "setup: installed ${missing[*]}"
