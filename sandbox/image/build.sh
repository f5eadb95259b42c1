#!/usr/bin/env bash
# Builds the sandbox image of a runtime: build.sh [plain|torch]. It is tagged autograder-sandbox:<digest of its inputs>
# and, for those that look for it, :<digest of the sources in it>, with -RUNTIME behind it but for plain. Does nothing
# when the image of these inputs is there. BASE names another base image.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
package="$(dirname "$here")"
base="${BASE:-python:3.11-slim-bookworm}"
runtime="${1:-plain}"
suffix="" libraries="" lock=""
if [ "$runtime" != plain ]; then
    suffix="-$runtime" libraries="$runtime" lock="$(dirname "$package")/requirements-$runtime.lock"
    [ -f "$lock" ] || { echo "image: there is no runtime $runtime: $lock is missing" >&2; exit 1; }
fi

inputs() {
    echo "$here/Dockerfile"
    echo "$here/requirements.lock"
    if [ -n "$lock" ]; then echo "$lock"; fi
    echo "$package/__init__.py"
    echo "$package/arrays.py"
    echo "$package/wire.py"
    find "$package/inside" -name '*.py' | LC_ALL=C sort
}

digest() {
    {
        echo "$base$suffix"
        inputs | while read -r file; do
            echo "${file#"$package"/}"
            sha256sum <"$file"
        done
    } | sha256sum | cut -c1-12
}

tag="autograder-sandbox:$(digest)$suffix"
sources="$(cd "$(dirname "$package")" && "${PYTHON:-python3}" -B -c '
from pathlib import Path
from sandbox.wire import source_digest
print(source_digest(Path("sandbox")))')$suffix"

if docker image inspect "$tag" >/dev/null 2>&1; then
    docker tag "$tag" "autograder-sandbox:$sources"
    echo "image: $tag is there already"
    exit 0
fi

context="$(mktemp -d)"
trap 'rm -rf "$context"' EXIT

echo "image: fetching wheels"
"$here/wheels.sh" "$here/requirements.lock" "$context/wheels"
mkdir -p "$context/libraries"
if [ -n "$lock" ]; then
    echo "image: fetching $libraries"
    "$here/wheels.sh" "$lock" "$context/libraries"
    cp "$lock" "$context/libraries/libraries.lock"
fi

echo "image: laying out the build context"
cp "$here/Dockerfile" "$here/requirements.lock" "$context/"
mkdir -p "$context/sandbox"
cp "$package/__init__.py" "$package/arrays.py" "$package/wire.py" "$context/sandbox/"
(cd "$package" && find inside -name '*.py' | tar -cf - -T -) | tar -C "$context/sandbox" -xf -

base="$("$here/base.sh" "$base")"
echo "image: building on $base"
if ! docker build --force-rm --network none --build-arg "BASE=$base" --build-arg "LIBRARIES=$libraries" --tag "$tag" "$context" >"$context/build.log" 2>&1; then
    echo "image: the build failed; the end of its log:" >&2
    tail -n 30 "$context/build.log" >&2
    exit 1
fi
docker tag "$tag" "autograder-sandbox:$sources"
echo "image: $tag is ready"
