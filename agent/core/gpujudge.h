/*
 * Whether a GPU (or an instance of one) may have tasks, by what was last seen of it. Pure: the
 * shell looks (gpuwatch.h), this decides.
 *
 *   AILING   it does not answer, is off the bus, had an error that only a reset ends (an XID, an
 *            uncorrected ECC error, a row that could not be remapped)
 *   FOREIGN  a process on it is no task's of this agent: seen twice, since one look may fall
 *            between a process and what is known of it; the one that is named stays so while it
 *            is there, whoever comes and goes beside it. Where one comes again soon, the slot stays
 *            FOREIGN for a while after its end, each time twice as long
 *   HELD     no task has it, but a process of one that has ended is on it, or none is to be seen
 *            and more of its memory is in use than when it was idle: seen twice, or after the end
 *            of a task for GPU_SETTLE_MS, since a driver frees what a process had after its end
 *   UNSEEN   nobody has looked yet, or not since the end of its last task: that one's memory is to
 *            be seen free before another comes
 */
#ifndef GPUJUDGE_H
#define GPUJUDGE_H

#include "agentlink.h"

#define GPU_SLACK_BYTES ((uint64_t)512 << 20) /* by which an idle GPU's memory may vary */
#define GPU_SETTLE_MS   5000
#define GPU_CALM_MS     10000 /* without foreign processes, the second time; then ever longer .. */
#define GPU_CALM_MS_MAX 320000
#define GPU_AGAIN_MS    600000 /* a foreign process that comes later comes for the first time */
#define GPU_UNSETTLED   "the memory of its last task is not seen free yet"

struct gpu_process {
    int pid;
    uint64_t mem_bytes; /* 0: not known */
    bool is_ours;       /* of some task of this agent */
    bool is_hidden;     /* of a PID namespace that the agent does not see */
    char name[64];      /* "": not known */
};

#define GPU_PROCESSES_MAX 64
#define GPU_UNKNOWN       (-1.0)

/* One look at a slot. Numbers are GPU_UNKNOWN where the driver does not say. */
struct gpu_sight {
    const char *lost;             /* why it could not be looked at, static; NULL: it was */
    uint64_t mem_total, mem_used; /* bytes; 0: not known */
    uint64_t ecc_uncorrected;     /* since the driver was loaded */
    bool remap_failed;
    unsigned xid;       /* one that only a reset ends, the first since then; 0: none */
    double utilisation; /* percent of time in which a kernel ran */
    double temperature_c, power_w, sm_mhz, mem_mhz;
    struct gpu_process processes[GPU_PROCESSES_MAX];
    size_t processes_n;
};

/* What is remembered of a slot between looks; zero at first. */
struct gpu_past {
    uint64_t mem_idle;              /* the least in use while nobody had it; 0: never seen */
    enum link_slot_state suspected; /* FOREIGN or HELD: by the last look */
    struct gpu_process named;       /* by the last verdict that names one */
    uint64_t foreign_ms;    /* when a foreign process was last seen, by a verdict; 0: never */
    uint64_t calm_ms;       /* for how long after that it stays FOREIGN */
    uint64_t settle_end_ms; /* until when its last task's memory may be given back; 0: it was */
};

struct gpu_verdict {
    enum link_slot_state state;
    char text[LINK_WHY_MAX + 1]; /* "": usable */
};

/* has_task: a task of this agent has the slot. now_ms: monotonic. before: the last verdict, kept
 * while a suspicion is seen for the first time. */
struct gpu_verdict gpu_judge(struct gpu_past *past, const struct gpu_sight *s, bool has_task,
                             uint64_t now_ms, const struct gpu_verdict *before);
/* Its task has just ended. Looks that began before are not to be judged any more. */
struct gpu_verdict gpu_settle(struct gpu_past *past, uint64_t now_ms);

/* Whether only a reset of the GPU, or of its host, ends it: not what a program did wrong. */
bool gpu_xid_is_fatal(uint64_t xid);
const char *gpu_xid_text(uint64_t xid);

#endif
