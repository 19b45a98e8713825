# Sourced, needs daemons.sh. A private PostgreSQL below a state directory: STATE/pg-data, its socket in
# STATE/pg-socket (no TCP), database and superuser "det". PostgreSQL refuses to run as root, so root runs
# it as the user "postgres" that the package made.

pg_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1; }

pg_as() { # runs a command as the user PostgreSQL may run as
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"
    else
        "$@"
    fi
}

pg_own() { [ "$(id -u)" -ne 0 ] || chown postgres: "$@"; }

# initdb into a directory beside the final one, renamed when whole: killed halfway it is made again.
pg_init() {
    local state=$1 bin
    bin=$(pg_bin)
    rm -rf "$state/pg-data.new"
    mkdir -p "$state/pg-data.new"
    chmod 700 "$state/pg-data.new"
    pg_own "$state/pg-data.new"
    (cd / && pg_as "$bin/initdb" -D "$state/pg-data.new" -U det --auth=trust -E UTF8 --locale=C.UTF-8 --no-sync) \
        >"$state/initdb.log" 2>&1 || { tail -n 5 "$state/initdb.log" >&2; return 1; }
    mv "$state/pg-data.new" "$state/pg-data"
}

pg_ready() { "$(pg_bin)/pg_isready" -q -h "$1/pg-socket"; }

pg_up() { # pg_up STATE
    local state=$1 bin
    bin=$(pg_bin)
    [ -n "$bin" ] || { echo "PostgreSQL is not installed (package postgresql)" >&2; return 1; }
    [ ${#state} -le 80 ] || { echo "the state directory's path is too long for a UNIX socket (80 characters at most): $state" >&2; return 1; }
    [ -f "$state/pg-data/PG_VERSION" ] || pg_init "$state" || return 1
    mkdir -p "$state/pg-socket"
    chmod 700 "$state/pg-socket"
    pg_own "$state/pg-socket"
    if ! daemon_alive "$state" postgres; then
        : >>"$state/postgres.log"
        local run=()
        [ "$(id -u)" -ne 0 ] || run=(setpriv --reuid=postgres --regid=postgres --clear-groups --)
        daemon_start "$state" postgres "${run[@]}" "$bin/postgres" -D "$state/pg-data" -c listen_addresses= \
            -c "unix_socket_directories=$state/pg-socket" -c log_min_messages=warning
    fi
    wait_for 30 - pg_ready "$state" || { tail -n 5 "$state/postgres.log" >&2; echo "PostgreSQL did not start" >&2; return 1; }
    "$bin/psql" -qAt -h "$state/pg-socket" -U det -d postgres -c "SELECT 1 FROM pg_database WHERE datname='det'" | grep -q 1 ||
        "$bin/createdb" -h "$state/pg-socket" -U det det
}

pg_down() { daemon_stop "$1" postgres INT; }
