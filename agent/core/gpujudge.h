/*
 * Whether a GPU (or an instance of one) may have tasks, by what was last seen of it. Pure: the
 * shell looks (gpuwatch.h), this decides.
 *
 *   AILING   it does not answer, is off the bus, had an error that only a reset ends (an XID, an
 *            uncorrected ECC error, a row that could not be remapped)
 *   FOREIGN  a process on it is no task's of this agent: seen twice, since one look may fall
 *            between a process and what is known of it; the one that is named stays so while it
 *            is there, whoever comes and goes beside it
 *   HELD     no task has it and no process is to be seen, but more of its memory is in use than
 *            when it was idle: seen twice, since a driver frees what a process had after its end
 */
#ifndef GPUJUDGE_H
#define GPUJUDGE_H

#include "agentlink.h"

#define GPU_SLACK_BYTES ((uint64_t)512 << 20) /* by which an idle GPU's memory may vary */

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
    const char *lost;   /* why it could not be looked at, static; NULL: it was */
    uint64_t mem_total, mem_used; /* bytes; 0: not known */
    uint64_t ecc_uncorrected;     /* since the driver was loaded */
    bool remap_failed;
    unsigned xid;       /* one that only a reset ends, the first since the agent began; 0: none */
    double utilisation; /* percent of time in which a kernel ran */
    double temperature_c, power_w, sm_mhz, mem_mhz;
    struct gpu_process processes[GPU_PROCESSES_MAX];
    size_t processes_n;
};

/* What is remembered of a slot between looks; zero at first. */
struct gpu_past {
    uint64_t mem_idle;              /* the least in use while nobody had it; 0: never seen */
    enum link_slot_state suspected; /* FOREIGN or HELD: by the last look */
    struct gpu_process named;       /* by the last FOREIGN verdict */
};

struct gpu_verdict {
    enum link_slot_state state;
    char text[LINK_WHY_MAX + 1]; /* "": usable */
};

/* has_task: a task of this agent has the slot. before: the last verdict, kept while a suspicion is
 * seen for the first time. */
struct gpu_verdict gpu_judge(struct gpu_past *past, const struct gpu_sight *s, bool has_task,
                             const struct gpu_verdict *before);

/* Whether only a reset of the GPU, or of its host, ends it: not what a program did wrong. */
bool gpu_xid_is_fatal(uint64_t xid);
const char *gpu_xid_text(uint64_t xid);

#endif
