#!/usr/bin/env bash
# Downloads the wheels of a lock file into a folder, for Python 3.11 on Linux whatever Python runs here:
# wheels.sh LOCK FOLDER
# A lock without hashes (torch's) leaves the build to the machine, and with it what that build needs besides.
set -euo pipefail

strict=()
if grep -q -- --hash "$1"; then strict=(--no-deps --require-hashes); fi

machine="$(uname -m)"
"${PYTHON:-python3}" -m pip download -qq --disable-pip-version-check --only-binary=:all: ${strict[@]+"${strict[@]}"} \
    --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_27_$machine" \
    --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    --requirement "$1" --dest "$2"
