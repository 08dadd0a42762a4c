#!/bin/sh
# Checks and measures aibox on a machine with an NVIDIA device. Fill bin/gpu-check with `make build-cuda`, copy it to
# that machine, and run ./check.sh there. ./check.sh --help lists the parts; docs/gpu.md has the requirements.
exec python3 "$(dirname "$0")/bench/device/check.py" "$@"
