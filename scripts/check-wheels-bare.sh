#!/usr/bin/env bash
# Installs the wheels of `make dist` in a minimal Debian 12 that has no compiler, and uses them there with three or more
# versions of Python: Debian's own, and copies of other Pythons of this machine.
#
#   scripts/check-wheels-bare.sh      as root, with debootstrap; PYTHONS names the Pythons to copy
#
# The minimal system is kept in build/bare-debian.tar, because making it takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(rapt VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
system=$PWD/build/bare-debian.tar

fail() {
  echo "check-wheels-bare: $*" >&2
  exit 1
}
[ "$(id -u)" -eq 0 ] || fail "requires root, for chroot"
command -v debootstrap >/dev/null || fail "requires debootstrap; on Debian: apt-get install debootstrap"

away=$(mktemp -d)
trap 'rm -rf --one-file-system "$away"' EXIT
if [ ! -f "$system" ]; then
  # The mirror that this machine uses, if it runs Debian; otherwise debootstrap's own.
  # shellcheck disable=SC2016  # apt-get's own variables
  mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null | awk '/debian\/? main$/ { print $1; exit }')
  debootstrap --variant=minbase --include=python3-venv bookworm "$away/system" ${mirror:+"$mirror"} >"$away/log" 2>&1 ||
    { tail -5 "$away/log" >&2; fail "debootstrap failed"; }
  tar -cf "$system.part" -C "$away/system" .
  mv "$system.part" "$system"
else
  mkdir "$away/system"
  tar -xf "$system" -C "$away/system"
fi

in_it=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$away/system")
for program in cc c++ gcc g++ clang cmake ld; do
  ! "${in_it[@]}" sh -c "command -v $program" >/dev/null || fail "$program is in the bare system"
done

# This machine's Pythons, each copied to the same path; a Python from the system's own packages is left out.
pythons=(/usr/bin/python3)
for python in ${PYTHONS:-python3.10 python3.11 python3.12 python3.13 python3.14}; do
  prefix=$("$python" -c 'import sys; print(sys.base_prefix)' 2>/dev/null) || continue
  [ "$prefix" != /usr ] || continue
  mkdir -p "$away/system$prefix"
  tar -c --exclude=__pycache__ --exclude='lib/python3*/test' --exclude='*.a' --exclude=site-packages -C "$prefix" . |
    tar -x -C "$away/system$prefix"
  pythons+=("$prefix/bin/python3")
done

mkdir "$away/system/wheels"
cp build/dist/rapt_attention-"$version"-*.whl tests/consumer/use_wheel.py "$away/system/wheels/"
tried=()
for python in "${pythons[@]}"; do
  number=$("${in_it[@]}" "$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "$python does not run in the bare system"
  [[ " ${tried[*]-} " != *" $number "* ]] || continue
  environment=/root/environment-$number
  "${in_it[@]}" "$python" -m venv "$environment"
  "${in_it[@]}" "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links /wheels "rapt-attention==$version"
  shown=$("${in_it[@]}" "$environment/bin/python" -m pip show --disable-pip-version-check rapt-attention)
  grep -qx "Version: $version" <<<"$shown" || fail "Python $number: pip shows $shown"
  "${in_it[@]}" "$environment/bin/python" /wheels/use_wheel.py "$version"
  [ "$("${in_it[@]}" "$environment/bin/rapt" --version)" = "rapt $version" ] || fail "Python $number: no command"
  [ -n "$("${in_it[@]}" "$environment/bin/rapt" explain --causal)" ] || fail "Python $number: the command explains nothing"
  tried+=("$number")
done
[ ${#tried[@]} -ge 3 ] || fail "only Python ${tried[*]} here; three versions are required"
echo "check-wheels-bare: the wheels work on Python ${tried[*]}, in a minimal Debian 12 without a compiler"
