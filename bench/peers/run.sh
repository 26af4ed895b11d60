#!/usr/bin/env bash
# Times rapt and, for comparison, the machine's matrix product, PyTorch and ONNX Runtime. Writes this machine's page in
# docs/benchmarks and the tables in README.md and README.zh-CN.md.
#
#   bench/peers/run.sh BUILD [--quick]     BUILD: where rapt was built with RAPT_BUILD_BENCH=ON
#
# With --quick the cases are small, to try the scripts, and the page is written beside the results instead.
# scripts/peers.sh makes the Python environment with the peers.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=bench/peers
build=${1:?usage: bench/peers/run.sh BUILD [--quick]}
quick=${2:-}
if [ -n "$quick" ] && [ "$quick" != --quick ]; then
  echo "run.sh: '$quick' is not --quick" >&2
  exit 2
fi
results=build/bench
mkdir -p "$results"

venv=$(scripts/peers.sh)
eval "$(scripts/peers-env.sh "$venv")"

# Other load does not slow all contestants equally: a peer whose threads spin at a barrier waits for the thread that has
# no core.
read -r load _ </proc/loadavg
if [ "${load%.*}" -ge 1 ]; then echo "peers: this machine is busy (load $load); wait, or do not trust the ratios" >&2; fi

sizes=(--queries "512,1024,2048,4096" --dim "64,128")
backward_sizes=(--queries "1024,2048,4096" --dim "64,128")
backward_rounds=7  # a call takes up to two seconds
layer=()
cached=8192
rounds=11
layer_rounds=5  # a call takes half a second
page=(.)
if [ -n "$quick" ]; then
  sizes=(--queries "64,128" --dim 32)
  backward_sizes=("${sizes[@]}")
  backward_rounds=3
  layer=(--batch 2 --tokens 64 --embed 64 --heads 4)
  cached=256
  rounds=3
  layer_rounds=3
  page=(--page "$results/quick.md")
fi
threads=1
if [ "$(nproc)" -gt 1 ]; then threads=1,2; fi
rm -f "$results"/{own,decode,prefill,backward,product,mha,layer_decode,peers}.json  # a page must not show an older run
bench=("$build/rapt" bench attention --threads "$threads" --reps "$rounds" --baseline --json)
"${bench[@]}" "${sizes[@]}" --causal both >"$results/own.json"
"${bench[@]}" --decode --keys $((4 * cached)) >"$results/decode.json"
"${bench[@]}" --decode --dtype f32 --queries 64 --keys "$cached" --causal both >"$results/prefill.json"
"$build/rapt" bench backward --threads "$threads" --reps "$backward_rounds" --baseline --json \
  "${backward_sizes[@]}" --causal both >"$results/backward.json"
"$build/rapt" bench gemm --rows 1,32,512 --threads "$threads" --reps "$rounds" --json >"$results/product.json"
"$build/rapt" bench mha "${layer[@]}" --reps "$layer_rounds" --json >"$results/mha.json"
"$build/rapt" bench decode --cached "$cached" --threads "$threads" --reps "$rounds" --json >"$results/layer_decode.json"

compare=("$build/bench/librapt_peer_api.so" "$results/peers.json" --rounds "$rounds")
if [ -n "$quick" ]; then compare+=(--quick); fi
# -B: Python writes no compiled files into the tree.
"$venv/bin/python" -B "$here/compare.py" "${compare[@]}"
"$venv/bin/python" -B "$here/report.py" "$results" "${page[@]}"
