#!/usr/bin/env bash
# bench/lib_slurm.sh up DIR [CPUS] | down DIR
# A private Slurm of one node on loopback, for comparisons: munged, slurmctld and slurmd with their configuration,
# key, logs and state in DIR (new or empty), on free ports; nothing of the system's is read or written. Point
# clients at it with SLURM_CONF=DIR/slurm.conf. down ends the three by id and removes DIR. The packages are in
# bench/packages.slurm. The scheduler is set to act at once, Slurm at its best: there are no delays to wait out.
set -eu

usage() { sed -n '2s/^# //p' "$0" >&2; exit 2; }
verb=${1:-} dir=${2:-} cpus=${3:-2}
[ -n "$dir" ] || usage
export SLURM_CONF=$dir/slurm.conf

wait_until() { # wait_until SECONDS WHAT COMMAND...
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { echo "lib_slurm: waited too long for $what" >&2; return 1; }
        sleep 0.05
    done
}

free_ports() { # two different ones
    python3 -c 'import socket
s = [socket.socket() for _ in range(2)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))'
}

write_conf() { # write_conf CTLD-PORT SLURMD-PORT
    local host me
    host=$(hostname -s) me=$(id -un)
    cat >"$SLURM_CONF" <<CONF
ClusterName=bench
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort=$1
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
MailProg=/bin/true
ReturnToService=2
MaxArraySize=100000
MaxJobCount=100000
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$2 CPUs=$cpus
PartitionName=main Nodes=n1 Default=YES MaxTime=INFINITE State=UP
CONF
}

no_jobs() { local left; left=$(timeout 5 squeue -h) && [ -z "$left" ]; }
node_is_idle() { [ "$(sinfo -h -o %T)" = idle ]; }

up() {
    mkdir -p "$dir/state" "$dir/spool" "$dir/munge"
    chmod 711 "$dir" # munge refuses a socket that others cannot reach
    chmod 700 "$dir/munge"
    head -c 1024 /dev/urandom >"$dir/munge/key"
    chmod 600 "$dir/munge/key"
    # shellcheck disable=SC2046
    write_conf $(free_ports)
    munged --force --key-file="$dir/munge/key" --seed-file="$dir/munge/seed" --socket="$dir/munge.sock" \
        --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" 2>"$dir/munged.err"
    slurmctld -c -f "$SLURM_CONF"
    slurmd -f "$SLURM_CONF" -N n1
    wait_until 60 "Slurm's node to be idle (logs in $dir)" node_is_idle
}

alive() { # not ended, nor waiting to be reaped
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) && [ "$state" != Z ]
}
gone() { ! alive "$1"; }

down() {
    local name pid
    if [ -s "$dir/slurmctld.pid" ]; then # slurmd leaves its jobs' processes alone when it ends
        timeout 10 scancel -u "$(id -un)" 2>/dev/null || true
        wait_until 20 "Slurm's jobs to end" no_jobs || true
    fi
    for name in slurmd slurmctld munged; do
        pid=$(cat "$dir/$name.pid" 2>/dev/null) || continue
        kill "$pid" 2>/dev/null || continue
        wait_until 10 "$name to end" gone "$pid" || kill -9 "$pid"
    done
    rm -rf "$dir"
}

case $verb in
up) up ;;
down) down ;;
*) usage ;;
esac
