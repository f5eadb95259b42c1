#!/usr/bin/env bash
# Build autograder-service:latest, the image that docker-compose.yml runs. BASE names another base image.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(dirname "$here")"
base="${BASE:-python:3.11-slim-bookworm}"

context="$(mktemp -d)"
trap 'rm -rf "$context"' EXIT

echo "service-image: fetching wheels"
"$root/sandbox/image/wheels.sh" "$here/requirements.lock" "$context/wheels"
"$root/sandbox/image/wheels.sh" "$root/requirements-torch.lock" "$context/wheels"

echo "service-image: laying out the build context"
cp "$here/Dockerfile" "$here/requirements.lock" "$root/requirements-torch.lock" "$context/"
mkdir "$context/app"
(cd "$root" && git ls-files service grader sandbox tinyllm course pyproject.toml README.md LICENSE | tar -cf - -T -) |
    tar -C "$context/app" -xf -

base="$("$root/sandbox/image/base.sh" "$base")"
echo "service-image: building on $base"
if ! docker build --force-rm --network none --build-arg "BASE=$base" --tag autograder-service:latest "$context" \
    >"$context/build.log" 2>&1; then
    echo "service-image: the build failed; the end of its log:" >&2
    tail -n 30 "$context/build.log" >&2
    exit 1
fi
echo "service-image: autograder-service:latest is ready"
