#!/usr/bin/env bash
# Make autograder-postgres:15, the database that docker-compose.yml runs: the published image where it is here or can be
# pulled, else Debian's PostgreSQL.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(dirname "$(dirname "$here")")"
tag=autograder-postgres:15
published=postgres:15-bookworm

base="$("$root/sandbox/image/base.sh" "$published" autograder-base-postgres:15 postgresql-15)"
if [ "$base" = "$published" ]; then
    docker tag "$published" "$tag"
else
    echo "service-image: building $tag on $base"
    if ! log="$(docker build --force-rm --network none --build-arg "BASE=$base" --tag "$tag" "$here" 2>&1)"; then
        echo "service-image: the build failed; the end of its log:" >&2
        tail -n 30 <<<"$log" >&2
        exit 1
    fi
fi
echo "service-image: $tag is ready"
