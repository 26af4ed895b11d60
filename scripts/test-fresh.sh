#!/usr/bin/env bash
# shellcheck disable=SC2317  # the functions of each kind of machine are called by name
# Runs the README's two commands, `make run` and `make test`, from the last commit, on a bare Debian 12 that has only
# git and make. On a machine in use, a package that no script installs may happen to be installed; on a bare one, it is
# missing.
#
#   scripts/test-fresh.sh [FOLDER]
#
# As root, the script builds the bare system in FOLDER (build/fresh) with debootstrap and enters it with chroot;
# FOLDER.tar keeps the bare system for the next run. Otherwise the script uses docker or podman. It prints each command's exit code and seconds, and
# leaves the output in FOLDER.run.log and FOLDER.test.log.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/fresh}")
release=bookworm
mkdir -p "$(dirname "$folder")"

fail() {
  echo "test-fresh: $*" >&2
  exit 2
}

# ---------------------------------------------------------------- a folder and chroot

# The mirror that this machine's apt uses.
mirror() {
  { grep -rhoE '^(URIs:|deb)( \[[^]]*\])? +[^ ]*/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null || true; } |
    awk 'NR == 1 { print $NF }'
}

unmount() {
  local at
  for at in dev/shm dev/pts dev sys proc; do
    if mountpoint -q "$folder/$at"; then umount --lazy "$folder/$at"; fi
  done
}

chroot_begin() {
  local from at
  trap unmount EXIT
  unmount
  if [ -e "$folder" ] && [ ! -f "$folder/.rapt-fresh" ]; then fail "$folder exists and was not made by this script"; fi
  rm -rf --one-file-system "$folder"
  mkdir -p "$folder"
  touch "$folder/.rapt-fresh"
  if [ ! -f "$folder.tar" ]; then
    command -v debootstrap >/dev/null || scripts/setup.sh fresh
    from=$(mirror)
    [ -n "$from" ] || fail "apt's sources name no Debian mirror"
    echo "test-fresh: building a bare Debian ($release) in $folder"
    debootstrap --variant=minbase --include=git,make,ca-certificates "$release" "$folder" "$from" >"$folder.log" 2>&1 ||
      { tail -5 "$folder.log" >&2; fail "debootstrap failed; $folder.log has its output"; }
    tar -cf "$folder.tar.part" -C "$folder" .
    mv "$folder.tar.part" "$folder.tar"
  else
    tar -xf "$folder.tar" -C "$folder"
  fi
  cp /etc/resolv.conf /etc/hosts "$folder/etc/"
  cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/"  # a proxy's certificate may be among them
  for at in proc sys dev dev/pts dev/shm; do
    if [ -d "/$at" ]; then
      mkdir -p "$folder/$at"
      mount --bind "/$at" "$folder/$at"
    fi
  done
  git clone --quiet . "$folder/root/rapt"
}

chroot_make() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    chroot "$folder" make -C /root/rapt "$1" </dev/null
}

# ---------------------------------------------------------------- a container

container_begin() {
  git bundle create --quiet "$folder.bundle" HEAD
  container=$("$engine" run --detach --volume "$folder.bundle:/rapt.bundle:ro" "debian:$release" sleep infinity)
  trap '"$engine" rm --force "$container" >/dev/null' EXIT
  "$engine" exec "$container" sh -c 'apt-get update -qq && apt-get install -y -qq git make ca-certificates &&
    git clone --quiet /rapt.bundle /root/rapt' >"$folder.log" 2>&1 || fail "the container lacks a network; $folder.log has its output"
}

container_make() { "$engine" exec "$container" make -C /root/rapt "$1" </dev/null; }

# ---------------------------------------------------------------- both commands

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  kind=chroot
else
  for engine in docker podman; do
    if "$engine" info >/dev/null 2>&1; then kind=container; break; fi
  done
  [ -n "${kind:-}" ] || fail "this needs root on a Debian-like system, or a working docker or podman"
fi

"${kind}_begin"
bad=0
for command in run test; do
  began=$SECONDS code=0
  "${kind}_make" "$command" >"$folder.$command.log" 2>&1 || code=$?
  echo "test-fresh: make $command: exit $code after $((SECONDS - began)) s"
  if [ $code -ne 0 ]; then
    bad=1
    tail -25 "$folder.$command.log"
  fi
done
exit $bad
