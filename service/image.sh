#!/usr/bin/env bash
# Build autograder-service:latest, the image that docker-compose.yml runs. BASE names another base image.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(dirname "$here")"
base="${BASE:-python:3.11-slim-bookworm}"
python="${PYTHON:-python3}"
machine="$(uname -m)"

context="$(mktemp -d)"
trap 'rm -rf "$context"' EXIT

echo "service-image: fetching wheels"
"$python" -m pip download -qq --disable-pip-version-check --only-binary=:all: --no-deps --require-hashes \
    --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_27_$machine" \
    --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    --dest "$context/wheels" --requirement "$here/requirements.lock"

echo "service-image: laying out the build context"
cp "$here/Dockerfile" "$here/requirements.lock" "$context/"
mkdir "$context/app"
(cd "$root" && git ls-files service grader sandbox tinyllm course pyproject.toml README.md LICENSE | tar -cf - -T -) |
    tar -C "$context/app" -xf -

if ! docker image inspect "$base" >/dev/null 2>&1 && ! docker pull --quiet "$base" >/dev/null 2>&1; then
    echo "service-image: $base cannot be pulled; making a base instead"
    base=autograder-base:bookworm
    AUTOGRADER_BASE_TAG=$base "$root/sandbox/image/base.sh"
fi

echo "service-image: building on $base"
if ! docker build --network none --build-arg "BASE=$base" --tag autograder-service:latest "$context" \
    >"$context/build.log" 2>&1; then
    echo "service-image: the build failed; the end of its log:" >&2
    tail -n 30 "$context/build.log" >&2
    exit 1
fi
echo "service-image: autograder-service:latest is ready"
