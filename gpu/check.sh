#!/usr/bin/env bash
# Runs on a machine with an NVIDIA device, which needs the driver, cuBLAS, for several devices NCCL, and no
# Go: copy bin/gpu-check there, which `make build-cuda` fills, and run ./check.sh. It prints what
# docs/gpu.md is to say: date, devices, driver, and which tests passed. The exit status is 0 if all
# did and none was skipped.
set -uo pipefail
cd "$(dirname "$0")"

echo "date: $(date -u +%Y-%m-%d)"
if command -v nvidia-smi >/dev/null; then
	nvidia-smi --query-gpu=index,name,memory.total,driver_version,compute_mode,ecc.mode.current --format=csv,noheader
	nvidia-smi topo -m 2>/dev/null
else
	echo "nvidia-smi: not found"
fi
./aibox-cuda version || exit 1

status=0
for test in ./*.test; do
	echo "== ${test#./}"
	# Twice: errors of order do not show every time. TestFake is for machines without a device.
	output=$("$test" -test.v -test.skip='^TestFake$' -test.count=2 -test.timeout=20m 2>&1) || status=1
	grep -E '^ *(--- (PASS|FAIL|SKIP)|panic:|fatal error:|PASS$|FAIL$)' <<<"$output" | sed 's/ ([0-9.]*s)$//' | sort | uniq -c
	if grep -q -e '--- SKIP' <<<"$output"; then
		echo "skipped, so nothing is shown:"
		status=1
	fi
	if [ "$status" != 0 ]; then
		tail -n 200 <<<"$output"
	fi
done
exit "$status"
