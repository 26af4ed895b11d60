#!/usr/bin/env bash
# Compiles the consumers, in C++ and in C, with the flags that pkg-config gives, and runs them.
#   through_pkg_config.sh C++COMPILER CCOMPILER|none PREFIX LIBDIR SCRATCH [FLAG…]
# PKG_CONFIG_FLAGS may be --static.
set -euo pipefail
compiler=$1 c_compiler=$2 prefix=$3 libdir=$4 scratch=$5
shift 5
here=$(dirname "$0")

mkdir -p "$scratch"
# Sets PKG_CONFIG_LIBDIR, not PKG_CONFIG_PATH, so that no package installed on the machine is found.
export PKG_CONFIG_LIBDIR=$prefix/$libdir/pkgconfig
pkg-config --exists --print-errors 'rapt >= 0.1'
read -ra cflags <<<"$(pkg-config --cflags rapt)"
# shellcheck disable=SC2086  # none or one flag
read -ra libs <<<"$(pkg-config --libs ${PKG_CONFIG_FLAGS:-} rapt)"
# Common warnings: our headers, and calls written as in the README, must cause none of them.
"$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror "$@" "${cflags[@]}" "$here/consumer.cc" -o "$scratch/consumer" "${libs[@]}"
if [ "$c_compiler" != none ]; then
  "$c_compiler" -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror "$@" "${cflags[@]}" "$here/c/consumer.c" -o "$scratch/consumer_c" "${libs[@]}"
fi
export LD_LIBRARY_PATH=$prefix/$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
"$scratch/consumer"
if [ "$c_compiler" != none ]; then "$scratch/consumer_c"; fi
"$prefix/bin/rapt" --version
