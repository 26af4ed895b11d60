#!/usr/bin/env bash
# Creates build/peers-venv, the environment with the libraries that rapt is compared with and used from, and prints its
# path. It is created again when the versions change.
#
#   venv=$(scripts/peers.sh)
#
# RAPT_PEERS_VENV names an environment that has bench/peers/requirements.txt installed; then none is created.
set -euo pipefail
cd "$(dirname "$0")/.."
wanted=bench/peers/requirements.txt
venv=${RAPT_PEERS_VENV:-}
if [ -z "$venv" ]; then
  venv=build/peers-venv
  if ! cmp -s "$wanted" "$venv/installed.txt"; then
    echo "peers: installing into $venv" >&2
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$wanted"
    cp "$wanted" "$venv/installed.txt"
  fi
fi
echo "$venv"
