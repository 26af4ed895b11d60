#!/usr/bin/env bash
# Compiles the consumer with what pkg-config says, and runs it.
#   through_pkg_config.sh COMPILER PREFIX LIBDIR SCRATCH [FLAG…]
set -euo pipefail
compiler=$1 prefix=$2 libdir=$3 scratch=$4
shift 4
here=$(dirname "$0")

mkdir -p "$scratch"
# LIBDIR, not PATH: only this package is looked at, never one that the machine has.
export PKG_CONFIG_LIBDIR=$prefix/$libdir/pkgconfig
pkg-config --exists --print-errors 'rapt >= 0.1'
read -ra cflags <<<"$(pkg-config --cflags rapt)"
read -ra libs <<<"$(pkg-config --libs rapt)"
# The warnings people commonly turn on: our headers, and calls written as the README writes them, must raise none.
"$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror "$@" "${cflags[@]}" "$here/consumer.cc" -o "$scratch/consumer" "${libs[@]}"
LD_LIBRARY_PATH=$prefix/$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$scratch/consumer"
"$prefix/bin/rapt" --version
