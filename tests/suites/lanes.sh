# Lanes: functions that run beside each other, each of which calls others one after the other. What ends the shell ends them all.
#
# lanes_begin          makes $lanes_work, a directory that goes with the lanes
# lane COMMAND         starts one, in a process group of its own
# lane_runs COMMAND    whether one that was started before this has not ended yet
# whole COMMAND...     in a lane: what the command prints comes at its end, in one piece
# lanes_wait           returns when all have ended; one that failed or was killed is a failure
# lanes_end            ends those that run, and removes $lanes_work
declare -A lanes=() # by the command, the process
lanes_work=

lanes_begin() { lanes_work=$(mktemp -d -t det-tests-XXXXXX); }

lane() {
    set -m # a group of its own
    "$1" </dev/null &
    set +m
    lanes[$1]=$!
}

lane_runs() { kill -0 "${lanes[$1]-}" 2>/dev/null; }

whole() {
    local out
    out=$(mktemp -p "$lanes_work") || { "$@"; return 0; } # not in one piece, then
    "$@" >"$out" 2>&1
    flock "$lanes_work/lock" cat "$out"
    rm -f "$out"
}

lanes_wait() {
    local name
    for name in "${!lanes[@]}"; do
        wait "${lanes[$name]}" && continue
        told_failure "$name ended with status $?"
        kill -- "-${lanes[$name]}" 2>/dev/null # what it had started
    done
    lanes=()
}

lanes_end() {
    local pid tries=0
    for pid in "${lanes[@]}"; do kill -- "-$pid" 2>/dev/null; done
    for pid in "${lanes[@]}"; do
        while kill -0 -- "-$pid" 2>/dev/null && [ $((tries += 1)) -le 100 ]; do sleep 0.1; done # a runner ends its tests first
        kill -9 -- "-$pid" 2>/dev/null
    done
    lanes=()
    [ -z "$lanes_work" ] || rm -rf "$lanes_work"
}
