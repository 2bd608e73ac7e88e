#!/bin/bash
# Builds qdc, compiles one kernel for every target and runs it on this machine's processor.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export QDC_BUILD=${QDC_BUILD:-build}
tools/build.sh qdc qdc-run qdcompiler

out=$QDC_BUILD/demo
kernel=docs/examples/sum32.qir
mkdir -p "$out"
show() {
  echo "\$ $*"
  "$@"
}
PATH=$PWD/$QDC_BUILD/bin:$PATH

echo
echo "== $kernel: the sums of each 32 elements"
grep -v '^//' "$kernel"
echo "== compiled for every target"
show qdc "$kernel" -target=nvptx:sm_90 -o "$out/sum32.ptx"
show qdc "$kernel" -target=amdgcn:gfx942 -o "$out/sum32.gfx942.hsaco"
show qdc "$kernel" -target=amdgcn:gfx1100 -o "$out/sum32.gfx1100.hsaco"
show qdc "$kernel" -target=spirv -o "$out/sum32.spv"
show qdc "$kernel" -target=cpu -o "$out/sum32.s"
show qdc "$kernel" -target=nvptx:sm_80,amdgcn:gfx942,amdgcn:gfx1100,spirv -o "$out/sum32.qdb"
ls -l "$out" | awk 'NR > 1 { printf "%8d bytes  %s\n", $5, $9 }'
echo
echo "== what it costs there; subgroups of 8 lanes add through shared memory"
show qdc "$kernel" -target=nvptx:sm_90,amdgcn:gfx942,amdgcn:gfx1100,spirv@32,spirv@8 --emit=stats
echo
echo "== run on the processor, 128 elements 0, 1, 2, ..."
show qdc-run "$kernel" -device=cpu -grid=1 src=iota:f32:128 dst=zeros:f32:4 --time
show qdc-run "$kernel" -device=cpu --subgroup-size=8 -grid=1 src=iota:f32:128 dst=zeros:f32:4
