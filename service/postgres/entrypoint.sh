#!/bin/sh
# Make the cluster at the first start, with POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB; then run the server.
set -eu

PATH="$(echo /usr/lib/postgresql/*/bin):$PATH"
user="${POSTGRES_USER:-postgres}"
database="${POSTGRES_DB:-$user}"

# What a start that was cut short left behind is made again.
if [ ! -e "$PGDATA/ready" ]; then
    : "${POSTGRES_PASSWORD:?must be set}"
    find "$PGDATA" -mindepth 1 -delete
    secret="$(mktemp)"
    printf '%s' "$POSTGRES_PASSWORD" >"$secret"
    initdb --username="$user" --pwfile="$secret" --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 >/dev/null
    rm "$secret"
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    if [ "$database" != postgres ]; then
        printf 'CREATE DATABASE "%s";\n' "$database" | postgres --single -D "$PGDATA" postgres >/dev/null
    fi
    touch "$PGDATA/ready"
fi

exec postgres -c listen_addresses='*' "$@"
