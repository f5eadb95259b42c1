#!/usr/bin/env bash
# base.sh IMAGE [TAG PACKAGE...]
# Prints the image to build on: IMAGE, if it is here or can be pulled. Otherwise it is TAG (autograder-base:bookworm,
# Debian with Python and nothing else), which is made with debootstrap out of these packages if it is not there yet.
set -euo pipefail

wanted="$1"
TAG="${2:-autograder-base:bookworm}"
packages="${*:3}"
packages="${packages:-python3 python3-venv ca-certificates}"
exec 3>&1 1>&2 # what is being done goes to standard error

is_here() { docker image inspect "$1" >/dev/null 2>&1; }

if is_here "$wanted" || docker pull --quiet "$wanted" >/dev/null 2>&1; then
    echo "$wanted" >&3
    exit 0
fi
echo "base: $wanted cannot be pulled; building on $TAG"
if is_here "$TAG"; then
    echo "$TAG" >&3
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
"${as_root[@]}" debootstrap --variant=minbase --include="${packages// /,}" \
    bookworm "$tree" ${mirror:+"$mirror"} >"$tree.log" 2>&1 || {
    echo "base: debootstrap failed; the end of its log ($tree.log):" >&2
    tail -n 20 "$tree.log" >&2
    exit 1
}
rm -f "$tree.log"

echo "base: importing it as $TAG"
"${as_root[@]}" tar -C "$tree" --numeric-owner --exclude=./var/cache/apt/archives/*.deb \
    --exclude=./var/lib/apt/lists/* -cf - . | docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' - "$TAG" >/dev/null
echo "$TAG" >&3
