# Sourced. Daemons below a state directory: STATE/NAME.pid holds "pid start-time", so that a process id
# that was given to somebody else meanwhile is never taken for ours.

proc_start() { # the kernel's start time of a process: field 22 of stat, counted after the name
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    set -- ${stat##*) }
    [ "$1" != Z ] || return 1
    echo "${20}"
}

daemon_pid() { cut -d' ' -f1 "$1/$2.pid" 2>/dev/null; }

daemon_alive() { # daemon_alive STATE NAME
    local pid start
    [ -f "$1/$2.pid" ] && read -r pid start <"$1/$2.pid" || return 1
    [ -n "$pid" ] && [ "$(proc_start "$pid")" = "$start" ]
}

daemon_record() { # daemon_record STATE NAME PID
    echo "$3 $(proc_start "$3")" >"$1/$2.pid"
}

# The daemon records itself before it becomes the program, so it is known even when the caller is killed
# right after the fork.
daemon_start() { # daemon_start STATE NAME PROGRAM ARG...: in a session of its own, output to STATE/NAME.log
    local state=$1 name=$2
    shift 2
    setsid bash -c '. "$1"; daemon_record "$2" "$3" $$; shift 3; exec "$@"' bash \
        "${BASH_SOURCE[0]}" "$state" "$name" "$@" >>"$state/$name.log" 2>&1 </dev/null 9>&- &
    wait_for 10 - daemon_recorded "$state" "$name" $!
}

daemon_recorded() { [ "$(daemon_pid "$1" "$2")" = "$3" ] || ! proc_start "$3" >/dev/null; }

wait_for() { # wait_for SECONDS LOG CONDITION...: polls a condition; 1 when the time is over
    local until=$((SECONDS + $1))
    shift 2
    until "$@"; do
        [ $SECONDS -lt $until ] || return 1
        read -rt 0.05 <> <(:) || true
    done
}

gone() { ! daemon_alive "$1" "$2"; }

daemon_stop() { # daemon_stop STATE NAME [SIGNAL]: asks, then insists after 10 s
    daemon_alive "$1" "$2" || { rm -f "$1/$2.pid"; return 0; }
    local pid
    pid=$(daemon_pid "$1" "$2")
    kill -"${3:-TERM}" "$pid" 2>/dev/null || true
    wait_for 10 - gone "$1" "$2" || kill -KILL "$pid" 2>/dev/null || true
    wait_for 5 - gone "$1" "$2" || echo "process $pid ($2) does not end" >&2
    rm -f "$1/$2.pid"
}
