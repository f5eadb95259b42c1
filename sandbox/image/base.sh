#!/usr/bin/env bash
# Makes the base image autograder-base:bookworm (Debian with Python, nothing else) with debootstrap, for machines
# that cannot pull an image. Does nothing when the image is there.
set -euo pipefail

TAG="${AUTOGRADER_BASE_TAG:-autograder-base:bookworm}"

if docker image inspect "$TAG" >/dev/null 2>&1; then
    echo "base: $TAG is there already"
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
        as_root=(sudo -n)
    else
        echo "base: making $TAG needs root for debootstrap; run this script with sudo" >&2
        exit 1
    fi
fi

if ! "${as_root[@]}" sh -c 'command -v debootstrap' >/dev/null; then
    "$(dirname "${BASH_SOURCE[0]}")/packages.sh" debootstrap debian-archive-keyring
fi

tree="$(mktemp -d)"
remove_tree() { "${as_root[@]}" rm -rf --one-file-system "$tree"; }
trap remove_tree EXIT

# A mirror given by the user, or the one apt uses here, or debootstrap's own default.
mirror="${AUTOGRADER_DEBIAN_MIRROR:-}"
if [ -z "$mirror" ] && command -v apt-get >/dev/null; then
    mirror="$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 2>/dev/null \
        | awk '$2 == "bookworm" { print $1; exit }')"
fi

echo "base: making a Debian tree (about a minute)"
"${as_root[@]}" debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
    bookworm "$tree" ${mirror:+"$mirror"} >"$tree.log" 2>&1 || {
    echo "base: debootstrap failed; the end of its log ($tree.log):" >&2
    tail -n 20 "$tree.log" >&2
    exit 1
}
rm -f "$tree.log"

echo "base: importing it as $TAG"
"${as_root[@]}" tar -C "$tree" --numeric-owner --exclude=./var/cache/apt/archives/*.deb \
    --exclude=./var/lib/apt/lists/* -cf - . | docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' - "$TAG" >/dev/null
echo "base: $TAG is ready"
