#!/bin/sh
# Checks and measures aibox on a machine with an NVIDIA device: copy bin/gpu-check there, which `make build-cuda`
# fills, and run ./check.sh there. ./check.sh --help says what it does, docs/gpu.md what it needs.
exec python3 "$(dirname "$0")/bench/device/check.py" "$@"
