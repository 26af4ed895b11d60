#!/usr/bin/env bash
# Runs every fuzzer for a while, starting from its corpus, fuzz/corpus/<name>.
#   scripts/fuzz.sh [SECONDS [NAME…]]     each for SECONDS (60); inputs that reach new code: build/fuzz/corpus/<name>
#   scripts/fuzz.sh keep [NAME…]          copies those of them that are needed for coverage to fuzz/corpus/<name>
# An input that fails is stored in build/fuzz/findings; add it, minimized, to fuzz/corpus with the change that fixes it.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-60}
[ $# -gt 0 ] && shift
if [ $# -eq 0 ]; then set -- safetensors npy npz tokenizer; fi
mkdir -p build/fuzz/findings

for name in "$@"; do
  program=build/fuzz/fuzz/fuzz_$name kept=fuzz/corpus/$name found=build/fuzz/corpus/$name
  mkdir -p "$kept" "$found"
  if [ "$what" = keep ]; then
    "$program" -set_cover_merge=1 -use_counters=0 -max_len=2048 "$kept" "$found" 2>&1 | tail -1
  else
    echo "fuzz: $name, $what seconds"
    "$program" -max_total_time="$what" -dict="fuzz/$name.dict" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
      -artifact_prefix="build/fuzz/findings/$name-" -print_final_stats=1 "$found" "$kept" >"build/fuzz/$name.log" 2>&1 ||
      { tail -40 "build/fuzz/$name.log"; exit 1; }
    grep -E 'stat::number_of_executed_units|stat::new_units_added' "build/fuzz/$name.log"
  fi
done
