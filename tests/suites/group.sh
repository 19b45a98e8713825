# A control group for what a suite starts: memory and processes of all of them together have a limit, and who is left in it
# is known by that. Where none can be made group_make tells why, once, and the others do nothing. A name A/B is a group within
# A, whose limits hold for all in it.
#
# Version 2 gives controllers to a group's children only where it has no processes of its own: groups are made below the
# nearest one that does (the caller's own, or one above it), and processes are in a child of each, LEAF.
#
# group_make NAME      makes the groups; 1: none
# group_share N        its share of the processors where others want them too, 1024 being a group's without this
# group_enter          puts the calling shell, and what it starts, into them
# group_cpu_ms         prints the processor time of all that ran in them so far, in ms; nothing: unknown
# group_left           prints "PID COMMAND" of each process in them, or in groups within, as an agent makes them for tasks
# group_end            ends who is left in them, or in groups within, and removes them
GROUP_MEMORY_SHARE=85 # of the machine's memory, in percent
GROUP_PROCESSES=4096
group_dirs=() group_said=
GROUP_ROOT=/sys/fs/cgroup GROUP_LEAF=leaf

# A folder of version 2 lets its children limit memory and processes, and share the processors where it can itself. One write for
# each: of several names in one the kernel takes all or none.
group_give() { # group_give DIR
    local name
    for name in memory pids cpu; do
        echo "+$name" >"$1/cgroup.subtree_control" || [ $name = cpu ] || return 1
    done 2>/dev/null
}

# The folder of version 2, at PATH or above it, whose children get memory and processes to limit; none: 1.
group_parent2() { # group_parent2 PATH
    local dir=$GROUP_ROOT${1%/} root=$GROUP_ROOT
    [ -f "$root/cgroup.controllers" ] || return 1
    until grep -q '\bmemory\b.*\bpids\b' "$dir/cgroup.subtree_control" 2>/dev/null; do # the kernel's order
        [ "$dir" != "$root" ] || { group_give "$root" && break || return 1; }
        dir=${dir%/*}
    done
    echo "$dir"
}

# The folders in which the caller's own groups for memory, processes and their time may have children; one where they are of
# version 2.
group_parents() {
    local id names path
    while IFS=: read -r id names path; do
        case ,$names, in
        *,memory,* | *,pids,* | *,cpuacct,* | *,cpu,*) echo "$GROUP_ROOT/${names##*,}${path%/}" ;;
        ,,) group_parent2 "$path" ;;
        esac
    done <"${GROUP_SELF:-/proc/self/cgroup}"
}

group_why() { # what is missing where there are none
    if [ "$(id -u)" != 0 ]; then
        echo "only root can make them"
    elif [ -f "$GROUP_ROOT/cgroup.controllers" ]; then
        echo "no group above this process gives its children the controllers memory and pids (cgroup.subtree_control), as in a container whose own group has processes in it"
    else
        echo "neither version 1 with the controller memory nor version 2 can be written to in $GROUP_ROOT"
    fi
}

group_limit() { # group_limit DIR: each file that the version and the controller have
    local kib
    kib=$(awk -v share=$GROUP_MEMORY_SHARE '$1 == "MemTotal:" { printf "%d", $2 * share / 100 }' /proc/meminfo)
    for file in memory.max memory.limit_in_bytes; do
        [ ! -f "$1/$file" ] || echo "$((kib * 1024))" >"$1/$file" || return 1
    done
    [ ! -f "$1/pids.max" ] || echo $GROUP_PROCESSES >"$1/pids.max"
}

group_leaf() { # group_leaf DIR: of version 2, where its processes are
    group_give "$1" && mkdir "$1/$GROUP_LEAF"
}

group_procs() { # the files by which a process gets into the groups
    local dir
    for dir in "${group_dirs[@]}"; do
        if [ -d "$dir/$GROUP_LEAF" ]; then echo "$dir/$GROUP_LEAF/cgroup.procs"; else echo "$dir/cgroup.procs"; fi
    done
}

group_make() {
    local parent dir
    group_dirs=()
    for parent in $(group_parents); do
        dir=$parent/$1
        mkdir "$dir" 2>/dev/null || continue
        group_dirs+=("$dir")
        group_limit "$dir" 2>/dev/null || { group_end; break; }
        [ ! -f "$dir/cgroup.subtree_control" ] || group_leaf "$dir" 2>/dev/null || { group_end; break; }
    done
    [ ${#group_dirs[@]} -gt 0 ] && return
    [ -n "$group_said" ] || echo "no control groups: $(group_why)" >&2
    group_said=yes
    return 1
}

group_share() {
    local dir
    for dir in "${group_dirs[@]}"; do
        [ ! -f "$dir/cpu.shares" ] || echo "$1" >"$dir/cpu.shares"
        [ ! -f "$dir/cpu.weight" ] || echo $((($1 * 100 + 1023) / 1024)) >"$dir/cpu.weight"
    done
}

group_enter() {
    local file
    for file in $(group_procs); do echo "$BASHPID" >"$file" || return 1; done
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
    local pid
    [ ${#group_dirs[@]} -eq 0 ] || find "${group_dirs[@]}" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -nu | while read -r pid; do
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
