# A private PostgreSQL for tests: sourced, or run as `pg.sh start DIR | stop DIR | down DIR | uri DIR | template | laid PROGRAM`.
# Unix socket only, no TCP. As root the server runs as user postgres, or nobody where there is none, since PostgreSQL refuses root.
# initdb runs once into a template that later clusters are copied from (0.2 s instead of 1.5). A server that is not installed:
# DET_PG_BIN names the folder of its programs, DET_PG_NEW what initdb has made elsewhere. DET_PG_FSYNC=off (tests/run): nothing
# waits for the disk, as no test takes the host's power away from a server.

pg_bin() {
    local d
    for d in ${DET_PG_BIN:-/usr/lib/postgresql/*/bin}; do [ -x "$d/postgres" ] && echo "$d" && return 0; done
    echo "postgresql is not installed: apt-get install postgresql-15" >&2
    return 1
}

pg_account() { if id -u postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi; }

pg_as() { # runs a command as the account of the server
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid="$(pg_account)" --regid="$(id -g "$(pg_account)")" --clear-groups -- "$@"
    else
        "$@"
    fi
}

pg_own() { if [ "$(id -u)" -eq 0 ]; then chown -R "$(pg_account):" "$1"; fi; }

pg_new() { # DIR: a new database in it
    if [ -n "${DET_PG_NEW:-}" ]; then
        cp -r "$DET_PG_NEW" "$1/data" && chmod 0700 "$1/data" && pg_own "$1"
    else
        cd / && pg_as "$(pg_bin)/initdb" -D "$1/data" -U det --auth=trust -E UTF8 --locale=C.UTF-8 --no-sync
    fi
}

pg_template() { # prints the template's path, making it first when absent
    local dir=${TMPDIR:-/tmp}/det-pg-template.$(id -u)
    pg_bin >/dev/null || return 1
    (
        flock 9
        if [ ! -e "$dir/ready" ]; then
            rm -rf "$dir" && mkdir -p "$dir" && pg_own "$dir" || exit 1
            pg_new "$dir" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; exit 1; }
            touch "$dir/ready"
        fi
    ) 9>"$dir.lock" || return 1
    echo "$dir/data"
}

# prints the path of a template with a database det, whose schema PROGRAM has laid; a newer PROGRAM lays another. Most of what a
# cluster of tests takes at its start is the schema, of which hundreds are alike.
pg_laid() { # PROGRAM
    local from dir made
    from=$(pg_template) || return 1
    made=$(stat -L -c %Y.%s "$1") && dir=${TMPDIR:-/tmp}/det-pg-template.$(id -u).$(printf %s "$1" | cksum | cut -d ' ' -f 1) || return 1
    pg_sweep
    (
        flock -w 600 9 || { echo "pg.sh: another has held $dir.lock for ten minutes" >&2; exit 1; }
        [ "$(cat "$dir/ready" 2>/dev/null)" = "$made" ] || { pg_lay "$1" "$from" "$dir" 9>&- && echo "$made" >"$dir/ready"; }
    ) 9>"$dir.lock" || return 1
    echo "$dir/data"
}

pg_sweep() { # templates of builds that are gone go; their locks stay, or two could hold one
    local of
    for of in "${TMPDIR:-/tmp}/det-pg-template.$(id -u)".*/program; do
        [ ! -s "$of" ] || [ -e "$(cat "$of")" ] || (flock -n 9 && rm -rf "${of%/program}") 9>"${of%/program}.lock"
    done
}

pg_lay() { # PROGRAM TEMPLATE DIR: nothing of it is left running, and what did not stop whole is none
    local status=1
    rm -rf "$3" && mkdir -p "$3" && cp -a --sparse=always "$2" "$3/data" && : >"$3/log" && pg_own "$3" && echo "$1" >"$3/program" || return 1
    pg_launch "$3" && "$(pg_bin)/createdb" -h "$3" -U det det && "$1" "host=$3 user=det dbname=det" >&2 && status=0
    pg_stop "$3"
    [ ! -e "$3/data/postmaster.pid" ] && return $status
}

pg_uri() { echo "host=$1 user=det dbname=postgres"; }

pg_launch() { # DIR with a data directory: starts the server and waits until it answers
    local dir=$1 bin
    bin=$(pg_bin) || return 1
    # The subshell's own descriptors go to the log too: a pipe held open would keep its reader waiting.
    (cd / && pg_as "$bin/postgres" -D "$dir/data" -c listen_addresses= -c unix_socket_directories="$dir" \
        -c max_connections=60 -c shared_buffers=64MB -c fsync="${DET_PG_FSYNC:-on}") >>"$dir/log" 2>&1 </dev/null &
    local pid=$! n
    for n in $(seq 3000); do
        "$bin/pg_isready" -q -h "$dir" -U det && echo "$pid" >"$dir/launcher" && return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.02 # between looks at the condition
    done
    tail -n 20 "$dir/log" >&2
    return 1
}

pg_start() { # DIR: makes it (when new) and starts a server there
    local dir=$1 from
    if [ ! -d "$dir/data" ]; then
        from=$(pg_template) || return 1
        mkdir -p "$dir" && cp -a --sparse=always "$from" "$dir/data" && chmod 0755 "$dir" && : >"$dir/log" && pg_own "$dir"
    fi
    pg_launch "$dir"
}

pg_stop() { # DIR [MODE]: MODE is fast (default) or immediate
    local bin
    bin=$(pg_bin) || return 1
    [ -e "$1/data/postmaster.pid" ] || return 0
    pg_as "$bin/pg_ctl" -D "$1/data" -m "${2:-fast}" -w stop >/dev/null 2>&1 || true
}

pg_down() { # DIR: stops and removes
    local n
    pg_stop "$1" immediate
    for n in $(seq 50); do # a child of the server may still be writing its last file
        rm -rf "$1" 2>/dev/null && [ ! -e "$1" ] && return 0
        sleep 0.02
    done
    rm -rf "$1"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    case ${1:-} in
    start | stop | down | uri | template | laid) "pg_$@" ;;
    *) echo "usage: pg.sh start|stop|down|uri DIR | template | laid PROGRAM" >&2; exit 2 ;;
    esac
fi
