#!/usr/bin/env bash
# Start the service in the background, submit the sample with curl, print the report, and leave the service running.
# `demo.sh stop` stops it again. Settings: PORT, DATA (where its data lie), BIN (where `autograder` is).
set -euo pipefail

PORT=${PORT:-8000}
DATA=${DATA:-data/demo}
BIN=${BIN:-.venv/bin}
TOKEN=demo-token-of-this-machine-only
SAMPLE=tests/samples/correct_plain
URL=http://127.0.0.1:$PORT
PID_FILE=$DATA/serve.pid
LOG=$DATA/serve.log

running() { # the process that this demo started, if it still lives
    [ -f "$PID_FILE" ] && kill -0 "$(cat "$PID_FILE")" 2>/dev/null &&
        tr '\0' ' ' <"/proc/$(cat "$PID_FILE")/cmdline" 2>/dev/null | grep -q "autograder serve"
}

if [ "${1:-}" = stop ]; then
    if running; then
        kill "$(cat "$PID_FILE")"
        for _ in $(seq 100); do running || break; sleep 0.1; done
        echo "demo: stopped the service on $URL/"
    else
        echo "demo: no service of a demo is running"
    fi
    rm -f "$PID_FILE"
    exit 0
fi

ready() { curl -sf -o /dev/null "$URL/readyz"; }

if running && ready; then
    echo "demo: the service is running already on $URL/"
else
    running && kill "$(cat "$PID_FILE")" && sleep 1
    if curl -s -o /dev/null "$URL/"; then
        echo "demo: something else answers on port $PORT. Choose another: make demo PORT=8001" >&2
        exit 1
    fi
    mkdir -p "$DATA"
    echo "demo: starting the service on $URL/ (log: $LOG)"
    setsid nohup "$BIN/autograder" serve --host 127.0.0.1 --port "$PORT" --data "$DATA" --dev-token "$TOKEN" \
        >"$LOG" 2>&1 </dev/null &
    echo $! >"$PID_FILE"
    for _ in $(seq 300); do
        ready && break
        if ! running; then
            echo "demo: the service did not start. Its log ends:" >&2
            tail -n 20 "$LOG" >&2
            exit 1
        fi
        sleep 0.2
    done
    ready || { echo "demo: the service is not ready: $(curl -s "$URL/readyz")" >&2; exit 1; }
fi

PACKED=$DATA/tests.tar.gz
tar -C "$SAMPLE" -czf "$PACKED" tests

echo "demo: submitting $SAMPLE:"
cat <<TEXT

    curl -sS -H "Authorization: Bearer $TOKEN" \\
        -F mha=@$SAMPLE/mha.py -F tests=@$PACKED \\
        '$URL/v1/units/L5.3/submissions?wait=60'

TEXT
curl -sS --fail-with-body -D "$DATA/headers" -o "$DATA/report.json" -H "Authorization: Bearer $TOKEN" \
    -F "mha=@$SAMPLE/mha.py" -F "tests=@$PACKED" "$URL/v1/units/L5.3/submissions?wait=60" || {
    cat "$DATA/report.json" >&2
    exit 1
}
cat "$DATA/report.json"
ID=$("$BIN/python" -c 'import json, sys; answer = json.load(open(sys.argv[1]))
print(answer["submission"]["id"] if "submission" in answer else answer["id"])' "$DATA/report.json")
echo
echo "demo: the same as text:"
echo
curl -sS --fail-with-body -H "Authorization: Bearer $TOKEN" "$URL/v1/submissions/$ID/report?format=text"
echo
echo "demo: the service stays up on $URL/ (token: $TOKEN; stop it with make stop)"
LINK=$(grep -o "$URL/set-password?code=[A-Za-z0-9_-]*" "$LOG" | tail -n 1 || true)
[ -z "$LINK" ] || echo "demo: its pages are for people who sign in. Set a password for the login 'admin', once: $LINK"
"$BIN/python" -c 'import json, sys; sys.exit(json.load(open(sys.argv[1])).get("verdict") != "pass")' "$DATA/report.json"
