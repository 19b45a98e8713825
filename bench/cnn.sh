#!/bin/bash
# bench/cnn.sh [ROUNDS [SECONDS]]: images/s of training the MNIST CNN (bench/cnn.c, bench/peer_cnn.py), batch 64,
# 2 threads, ours and PyTorch's in turn; medians. PyTorch at its best: OpenBLAS is told the CPU (it falls back on
# slow kernels where it does not know it) and is the build that shares PyTorch's threads, both memory layouts are
# run in every round and the faster one counts. JSON on standard output, each round on standard error.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${DET_BUILD:-$here/../build}
[ "${1:-}" = --json ] && shift
rounds=${1:-5} seconds=${2:-3} threads=2 batch=64
ours=$build/bench/bench-cnn
[ -x "$ours" ] || { echo "cnn: $ours is missing: ninja -C $build bench/bench-cnn" >&2; exit 1; }

if grep -qw avx512f /proc/cpuinfo; then core=SkylakeX; else core=Haswell; fi
blas=$(ls -d /usr/lib/*/openblas-openmp 2>/dev/null | head -n 1 || true)
export OMP_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads

median() { sort -n | awk '{v[NR] = $1} END {if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }
peer() {
    LD_LIBRARY_PATH=$blas OPENBLAS_CORETYPE=$core \
        /usr/bin/python3 "$here/peer_cnn.py" $threads $batch "$seconds" "$1"
}
have_torch=1
/usr/bin/python3 -c 'import torch' 2>/dev/null || have_torch=0

o=() c=() l=()
for ((i = 1; i <= rounds; i++)); do
    o+=("$("$ours" $threads $batch "$seconds")")
    if [ $have_torch = 1 ]; then
        c+=("$(peer contiguous)")
        l+=("$(peer channels_last)")
        echo "round $i: ours ${o[-1]}, PyTorch ${c[-1]} contiguous, ${l[-1]} channels_last images/s" >&2
    else
        echo "round $i: ours ${o[-1]} images/s (no PyTorch to compare with)" >&2
    fi
done

value=$(printf '%s\n' "${o[@]}" | median)
if [ $have_torch = 0 ]; then
    echo "{\"bench\":\"cnn\",\"figure\":\"images_per_s\",\"value\":$value,\"unit\":\"images/s\",\"peer\":null,\"peer_value\":null,\"ratio\":null}"
    exit 0
fi
a=$(printf '%s\n' "${c[@]}" | median) b=$(printf '%s\n' "${l[@]}" | median)
awk -v v="$value" -v a="$a" -v b="$b" 'BEGIN {
    best = a > b ? a : b; layout = a > b ? "contiguous" : "channels_last"
    printf "{\"bench\":\"cnn\",\"figure\":\"images_per_s\",\"value\":%.1f,\"unit\":\"images/s\",", v
    printf "\"peer\":\"PyTorch 1.13 (%s)\",\"peer_value\":%.1f,\"ratio\":%.3f}\n", layout, best, v / best }'
