#!/usr/bin/env bash
# Makes sure that a Docker Engine answers: starts one that is installed and not running, installs one with apt where
# that is missing and allowed (packages.sh says when).
set -euo pipefail

log=/var/log/autograder-dockerd.log
pid_file=/var/run/docker.pid
wait_seconds=60

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

if answers; then
    echo "engine: Docker Engine $(docker version --format '{{.Server.Version}}') answers"
    exit 0
fi

how_to() {
    cat >&2 <<'TEXT'
engine: no Docker Engine answers. Ways to get one:
  - install Docker Engine for this system (package docker.io on Debian and Ubuntu), start it, and try again
  - set DOCKER_HOST to an engine elsewhere
  - if one runs, let this user use it: add it to the group "docker" and log in again
TEXT
    exit 1
}

if [ -n "${DOCKER_HOST:-}" ]; then
    echo "engine: DOCKER_HOST is set to $DOCKER_HOST, and nothing answers there" >&2
    how_to
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=(sudo -n)
    else
        how_to
    fi
fi

has() { "${as_root[@]}" sh -c "command -v $1" >/dev/null 2>&1; }

if ! has dockerd; then
    "$(dirname "${BASH_SOURCE[0]}")/packages.sh" docker.io iptables || how_to
fi

start_detached() {
    # A pid file that outlived its engine stops the next one. A zombie counts as gone.
    if [ -e "$pid_file" ]; then
        pid="$(cat "$pid_file")"
        state="$(sed -n 's/^State:[[:space:]]*\([A-Z]\).*/\1/p' "/proc/$pid/status" 2>/dev/null || true)"
        name="$(cat "/proc/$pid/comm" 2>/dev/null || true)"
        if [ -z "$state" ] || [ "$state" = Z ] || [ "$name" != dockerd ]; then
            echo "engine: removing a stale pid file"
            "${as_root[@]}" rm -f "$pid_file"
        fi
    fi
    "${as_root[@]}" sh -c "setsid dockerd >>$log 2>&1 </dev/null &"
}

if [ -d /run/systemd/system ] && has systemctl; then
    echo "engine: starting the docker service"
    "${as_root[@]}" systemctl start docker || start_detached
else
    echo "engine: starting dockerd; its log is $log"
    start_detached
fi

for _ in $(seq "$wait_seconds"); do
    if answers; then
        echo "engine: Docker Engine $(docker version --format '{{.Server.Version}}') answers"
        exit 0
    fi
    sleep 1
done

echo "engine: dockerd did not answer within $wait_seconds s; the end of its log ($log):" >&2
"${as_root[@]}" tail -n 20 "$log" >&2 2>/dev/null || true
how_to
