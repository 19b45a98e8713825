# A control group for what a suite starts: memory and processes of all of them together have a limit, and who is left in it
# is known by that. Where none can be made (no root, no version 1 and the own group of version 2 gives its children no
# controllers), group_make says so and the others do nothing. A name A/B is a group within A, whose limits hold for all in it.
#
# group_make NAME      makes the groups; 1: none
# group_share N        its share of the processors where others want them too, 1024 being a group's without this
# group_enter          puts the calling shell, and what it starts, into them
# group_cpu_ms         prints the processor time of all that ran in them so far, in ms; nothing: unknown
# group_left           prints "PID COMMAND" of each process in them
# group_end            ends who is left in them, or in groups within, and removes them
GROUP_MEMORY_SHARE=85 # of the machine's memory, in percent
GROUP_PROCESSES=4096
group_dirs=()

# The folders in which the caller's own groups for memory, processes and their time may have children; one where they are of
# version 2.
group_parents() {
    local id names path
    while IFS=: read -r id names path; do
        case ,$names, in
        *,memory,* | *,pids,* | *,cpuacct,* | *,cpu,*) echo "/sys/fs/cgroup/${names##*,}${path%/}" ;;
        ,,) if grep -qw memory "/sys/fs/cgroup${path%/}/cgroup.subtree_control" 2>/dev/null; then echo "/sys/fs/cgroup${path%/}"; fi ;;
        esac
    done </proc/self/cgroup
}

group_limit() { # group_limit DIR: each file that the version and the controller have
    local kib
    kib=$(awk -v share=$GROUP_MEMORY_SHARE '$1 == "MemTotal:" { printf "%d", $2 * share / 100 }' /proc/meminfo)
    for file in memory.max memory.limit_in_bytes; do
        [ ! -f "$1/$file" ] || echo "$((kib * 1024))" >"$1/$file" || return 1
    done
    [ ! -f "$1/pids.max" ] || echo $GROUP_PROCESSES >"$1/pids.max"
}

group_make() {
    local parent dir
    group_dirs=()
    for parent in $(group_parents); do
        dir=$parent/$1
        mkdir "$dir" 2>/dev/null || continue
        group_dirs+=("$dir")
        group_limit "$dir" 2>/dev/null || { group_end; return 1; }
    done
    [ ${#group_dirs[@]} -gt 0 ]
}

group_share() {
    local dir
    for dir in "${group_dirs[@]}"; do [ ! -f "$dir/cpu.shares" ] || echo "$1" >"$dir/cpu.shares"; done
}

group_enter() {
    local dir
    for dir in "${group_dirs[@]}"; do echo "$BASHPID" >"$dir/cgroup.procs" || return 1; done
}

group_cpu_ms() {
    local dir
    for dir in "${group_dirs[@]}"; do
        if [ -f "$dir/cpuacct.usage" ]; then
            awk '{ printf "%d\n", $1 / 1000000 }' "$dir/cpuacct.usage"
        else
            awk '$1 == "usage_usec" { printf "%d\n", $2 / 1000 }' "$dir/cpu.stat" 2>/dev/null
        fi
    done | sort -n | tail -n 1
}

group_left() {
    [ ${#group_dirs[@]} -eq 0 ] || sort -nu "${group_dirs[@]/%//cgroup.procs}" 2>/dev/null | while read -r pid; do
        echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
    done
}

group_end() {
    local dir tries=0
    while read -r dir; do # those within first
        until rmdir "$dir" 2>/dev/null || [ ! -d "$dir" ] || [ $((tries += 1)) -gt 50 ]; do
            xargs -r kill -9 <"$dir/cgroup.procs" 2>/dev/null
            sleep 0.1
        done
    done < <([ ${#group_dirs[@]} -eq 0 ] || find "${group_dirs[@]}" -depth -type d 2>/dev/null)
    group_dirs=()
}
