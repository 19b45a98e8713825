# One suite of tests/run: a build, a meson suite or the page's tests, each in a control group and a /tmp of its own. Functions of
# different suites may run beside each other; what they count goes to $lanes_work/counts (tests/suites/lanes.sh).

add_counts() { echo "$@" >>"$lanes_work/counts"; } # PASSED FAILED SKIPPED [LABEL]: with the label of a suite it is the suite's end

told_failure() { # told_failure TEXT...
    echo "tests/run: $*"
    add_counts 0 1 0
}

# Prints the totals; fails where a test failed, or a suite of these has not come to its end, which it says.
totals() { # totals LABEL...
    local missing
    missing=$(printf '%s\n' "$@" | grep -vxFf <(cut -s -d ' ' -f 4- "$lanes_work/counts") | paste -sd , -)
    [ -z "$missing" ] || told_failure "not run to the end: ${missing//,/, }"
    awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit (f > 0) }' "$lanes_work/counts" &&
        [ -z "$missing" ]
}

build_in() { # build_in DIR MESON-OPTION...
    local dir=$1 log
    shift
    log=$(mktemp -p "$lanes_work" build.XXXXXX)
    if [ -f "$dir/build.ninja" ]; then
        set -- # configured already; ninja reconfigures by itself when a meson.build changed
    elif ! meson setup "$dir" --prefix "$dir/prefix" --libdir lib "$@" >"$log" 2>&1; then
        tail -n 30 "$log"; rm -f "$log"; return 1
    fi
    if ! { ninja -C "$dir" && meson install -C "$dir" --no-rebuild --quiet; } >"$log" 2>&1; then
        tail -n 60 "$log"; rm -f "$log"; return 1
    fi
    rm -f "$log"
}

# Adds what a meson suite's log says to the totals. STATUS is meson's, which may have been ended before its tests were.
count() { # count LOG LABEL SECONDS STATUS
    local p='' f='' s=''
    read -r p f s < <(python3 - "$1" <<'PY'
import json, sys
ok = bad = skip = 0
try:
    for line in open(sys.argv[1]):
        r = json.loads(line)["result"]
        if r in ("OK", "EXPECTEDFAIL"): ok += 1
        elif r == "SKIP": skip += 1
        else: bad += 1
except (OSError, ValueError): # no log, or not a whole one
    bad += 1
print(ok, bad, skip)
PY
)
    [ -n "$s" ] || { echo "$2: its log $1 cannot be read"; p=0 f=1 s=0; }
    [ "$4" -eq 0 ] || [ "$f" -gt 0 ] || { echo "$2: meson ended with status $4, and no test had failed"; f=1; }
    add_counts "$p" "$f" "$s" "$2"
    show_suite "$2" "$p" "$f" "$s" "$3"
}

# The last column: how busy it kept the processors, beside what ran meanwhile.
show_suite() { # show_suite LABEL PASSED FAILED SKIPPED SECONDS
    local busy=
    [ -z "$cpu_ms" ] || [ "$5" -eq 0 ] || busy=$((cpu_ms / 10 / $5 / $(nproc)))%
    printf '%-20s %4d passed %3d failed %3d skipped  %5ds %5s\n' "$1" "$2" "$3" "$4" "$5" "$busy"
}

# A suite has a /tmp of its own (where root can give it one), so that what it leaves there is seen, and a /dev/shm, which ends with it:
# DET_PG_MEMORY says that databases may be there.
with_tmp() { # with_tmp DIR TMP COMMAND...
    local dir=$1 tmp=$2 private=()
    shift 2
    case $(realpath "$dir") in
    /tmp/*) ;; # would not be seen
    *) if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
           private=(unshare --mount --propagation private sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm 2>/dev/null && export DET_PG_MEMORY=yes
               mount --bind "$0" /tmp && exec "$@"' "$tmp")
       fi ;;
    esac
    "${private[@]}" "$@"
}

# No bug of a test takes the machine's memory with it: all processes of a suite have the limits of tests/suites/group.sh, and each
# of a release build's 16 GiB of addresses at most, of a sanitizer's 6 GiB of memory.
bounded() ( # bounded DIR TMP COMMAND...
    group_enter || exit 1
    if [ -n "${DET_SANITIZED:-}" ]; then
        export ASAN_OPTIONS=$ASAN_OPTIONS:hard_rss_limit_mb=6144
    else
        ulimit -v $((16 << 20))
    fi
    with_tmp "$@"
)

# Runs a suite in a group of its own; who is left in it is a failure. Returns the command's status.
# cpu_ms: the processors' time that it took; "": unknown.
grouped() { # grouped LABEL COMMAND...
    local label=$1 left tries=0 status
    shift
    group_make "$run_group/${label// /-}" || echo "$label: no control group can be made here, so all processes together have no limit"
    group_share "${suite_share:-1024}"
    "$@"
    status=$?
    while left=$(group_left) && [ -n "$left" ] && [ $((tries += 1)) -le 50 ]; do sleep 0.1; done # who was told to end may take a moment
    [ -z "$left" ] || { printf '%s left running\n%s\n' "$label" "$left"; add_counts 0 1 0; }
    cpu_ms=$(group_cpu_ms)
    group_end
    return $status
}

suite_tmp() { mktemp -d -p "$1" "tmp.$$.XXXXXX"; } # suite_tmp DIR: remove_tmps knows it by this run's number

remove_tmps() { rm -rf --one-file-system "$build"{,-asan,-coverage,-tsan}"/tmp.$$."*; }

# What a suite left, but for the database that its tests copy theirs from.
left_in() {
    find "$1" -mindepth 1 -maxdepth 1 ! -name 'det-pg-template.*' -printf '/tmp/%f\n'
}

told_left() { # told_left TMP LABEL: what a suite left is a failure
    local left
    left=$(left_in "$1")
    [ -z "$left" ] || { printf '%s left\n%s\n' "$2" "$left"; add_counts 0 1 0; }
    rm -rf --one-file-system "$1"
}

# One test a processor, four at most, as all of them share a group's limits; one more where tests wait more than they work.
at_a_time() { # at_a_time SUITE
    local most
    most=$(nproc)
    [ "$most" -le 4 ] || most=4
    case $1 in
    integration | faults | failpoints) echo $((most + 1)) ;;
    *) echo "$most" ;;
    esac
}

run_meson() { # run_meson DIR SUITE TMP
    local out=$1/meson-logs/$2.txt status
    bounded "$1" "$3" meson test -C "$1" --suite "$2" --logbase "testlog-$2" --no-rebuild --print-errorlogs --num-processes "$(at_a_time "$2")" \
        --timeout-multiplier 6 >"$out" 2>&1
    status=$?
    [ $status -eq 0 ] || grep -v -E '^ *[0-9]+/[0-9]+ .* (OK|SKIP) ' "$out" | tail -n 150
    return $status
}

run_suite() { # run_suite DIR SUITE LABEL
    local t0=$SECONDS tmp log=$1/meson-logs/testlog-$2.json
    tmp=$(suite_tmp "$1") && chmod 1777 "$tmp"
    rm -f "$log"
    grouped "$3" run_meson "$1" "$2" "$tmp"
    count "$log" "$3" $((SECONDS - t0)) $?
    told_left "$tmp" "$3"
}

# Without a limit on addresses: a browser takes many that it never uses.
web_suite() ( # web_suite DIR TMP
    group_enter || exit 1
    DET_BUILD=$1 with_tmp "$1" "$2" tests/web/suite "$1/web" >"$1/web/log.txt" 2>&1 || tail -n 150 "$1/web/log.txt"
)

web_packages() {
    { command -v node && command -v npm; } >/dev/null || install_packages tests/web/packages.node || return 1
    command -v "${DET_CHROMIUM:-chromium}" >/dev/null || install_packages tests/web/packages
}

run_web() { # run_web DIR
    local t0=$SECONDS tmp p f
    mkdir -p "$1/web" && rm -f "$1/web/log.txt" && tmp=$(suite_tmp "$1") && chmod 1777 "$tmp"
    grouped web web_suite "$1" "$tmp"
    touch "$1/web/log.txt"
    p=$(grep -c '^ok ' "$1/web/log.txt") f=$(grep -c '^FAIL ' "$1/web/log.txt")
    [ "$f" -gt 0 ] || grep -q '^all of it ran' "$1/web/log.txt" || f=1 # it was ended before its end
    add_counts "$p" "$f" 0 web
    show_suite web "$p" "$f" 0 $((SECONDS - t0))
    told_left "$tmp" web
}

