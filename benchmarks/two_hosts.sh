#!/usr/bin/env bash
# Two hosts made of network namespaces on one machine: one training over torchrun's rendezvous. Needs root and `ip`.
#   benchmarks/two_hosts.sh [folder]      (a converted graph; a small one is made without it)
set -euo pipefail
work=$(mktemp -d)
python=${PYTHON:-python}
a=spamA$$ b=spamB$$
clean() { ip netns del "$a" 2>/dev/null || true; ip netns del "$b" 2>/dev/null || true; rm -rf "$work"; }
trap clean EXIT
ip netns add "$a"; ip netns add "$b"
ip link add "va$$" netns "$a" type veth peer name "vb$$" netns "$b"
ip -n "$a" addr add 10.77.0.1/24 dev "va$$"; ip -n "$b" addr add 10.77.0.2/24 dev "vb$$"
ip -n "$a" link set lo up; ip -n "$a" link set "va$$" up
ip -n "$b" link set lo up; ip -n "$b" link set "vb$$" up
graph=${1:-$work/graph}
[ -d "$graph" ] || "$python" -m spam_gnn convert csbm --out "$graph" >/dev/null
host() { # namespace, interface, run folder, address, whether it keeps the rendezvous
  GLOO_SOCKET_IFNAME=$2 OMP_NUM_THREADS=1 ip netns exec "$1" "$python" -m torch.distributed.run --nnodes 2 --nproc-per-node 1 \
    --rdzv-backend c10d --rdzv-endpoint 10.77.0.1:29500 --rdzv-id spam --local-addr "$4" --rdzv-conf "is_host=$5" \
    -m spam_gnn train --graph "$graph" --batch-size 64 --together 2 --epochs 5 --out "$3"
}
host "$a" "va$$" "$work/run" 10.77.0.1 1 >"$work/a.txt" 2>&1 & first=$!
host "$b" "vb$$" "$work/other" 10.77.0.2 0 >"$work/b.txt" 2>&1 & second=$!
code=0; wait "$first" || code=$?; wait "$second" || code=$?
[ "$code" = 0 ] || { tail -n 40 "$work/a.txt" "$work/b.txt"; exit "$code"; }
run=$work/run; [ -e "$run/metrics.json" ] || run=$work/other # whichever host had process 0
OMP_NUM_THREADS=1 "$python" -m spam_gnn train --graph "$graph" --batch-size 64 --together 2 --epochs 5 --out "$work/alone" >/dev/null
"$python" - "$run" "$work/alone" <<'PY'
import sys
from pathlib import Path

from spam_gnn.checkpoint import read_tensors

two, one = (read_tensors(Path(folder) / "model.safetensors")[0] for folder in sys.argv[1:])
difference = max(float((two[name] - value).abs().max()) for name, value in one.items())
print(f"two hosts trained together; largest difference of a weight to one process: {difference:.1e}")
sys.exit(difference > 1e-4)
PY
