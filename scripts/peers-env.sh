#!/usr/bin/env bash
# Prints the environment variables that PyTorch needs on this machine, for eval.
#
#   eval "$(scripts/peers-env.sh VENV)"
#
# Some virtual machines report matrix instructions (AMX) that they do not have, so that PyTorch's bf16 products end the
# process with an illegal instruction. On such machines PyTorch's matrix library is told not to use them.
set -euo pipefail
venv=${1:?usage: scripts/peers-env.sh VENV}
try='
import torch
x = torch.ones(1, 1, 512, 64, dtype=torch.bfloat16)
torch.nn.functional.scaled_dot_product_attention(x, x, x)
torch.mm(x[0, 0], x[0, 0].T)'
if ! "$venv/bin/python" -B -c "$try" >/dev/null 2>&1; then
  echo "peers: bf16 ends PyTorch here; its library is told to do without AMX" >&2
  echo "export ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
fi
