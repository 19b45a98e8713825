/* Which moves of the core's machines (core/edges.h) were made: a table has no edge that nobody
 * goes, and no machine a state that it is never tried in. */
#include "sim.h"

#include <stdio.h>

static const char *agent_text(unsigned state)
{
    static const char *const names[] = {"ABSENT", "UP", "LOST"};
    return names[state];
}

static const char *batch_text(unsigned state)
{
    static const char *const names[] = {"REBUILDING", "IDLE", "GATHERING",  "SENDING",
                                        "IN_FLIGHT",  "HELD", "PERFORMING", "OVER"};
    return names[state];
}

static const char *text_of(enum machine m, unsigned state)
{
    switch (m) {
    case MACHINE_EXP: return exp_state_text(state);
    case MACHINE_TRIAL: return trial_state_text(state);
    case MACHINE_ALLOC:
    case MACHINE_CONTAINER: return alloc_state_text(state);
    case MACHINE_AGENT: return agent_text(state);
    case MACHINE_BATCH: return batch_text(state);
    case MACHINE_COUNT: break;
    }
    return NULL;
}

static const char *const machines[MACHINE_COUNT] = {"experiment", "trial", "run",
                                                    "container",  "agent", "batch"};

void moves_note(struct sim_result *r, const struct core *c)
{
    for (enum machine m = 0; c && m < MACHINE_COUNT; m++)
        for (unsigned from = 0; from < MACHINE_STATES_MAX; from++)
            for (unsigned to = 0; to < MACHINE_STATES_MAX; to++)
                if (edges_was_gone(c, m, from, to))
                    r->moved[m][from] |= 1u << to;
}

void moves_add(struct sim_result *all, const struct sim_result *r)
{
    for (enum machine m = 0; m < MACHINE_COUNT; m++)
        for (unsigned from = 0; from < MACHINE_STATES_MAX; from++)
            all->moved[m][from] |= r->moved[m][from];
}

/* In fewer than one world of six: fifty of them may do without, EVERY_EDGE may not. */
enum { EVERY_EDGE = 300 };
static const struct {
    enum machine machine;
    unsigned from, to;
} rare[] = {
    {MACHINE_EXP, EXP_PAUSED, EXP_STOPPING_ERROR},
    {MACHINE_EXP, EXP_STOPPING_COMPLETED, EXP_STOPPING_ERROR},
    {MACHINE_EXP, EXP_STOPPING_CANCELED, EXP_STOPPING_ERROR},
    {MACHINE_EXP, EXP_STOPPING_KILLED, EXP_STOPPING_ERROR},
    {MACHINE_EXP, EXP_DELETING, EXP_DELETE_FAILED},
    {MACHINE_TRIAL, TRIAL_STOPPING_COMPLETED, TRIAL_STOPPING_KILLED},
    {MACHINE_TRIAL, TRIAL_STOPPING_COMPLETED, TRIAL_STOPPING_ERROR},
    {MACHINE_TRIAL, TRIAL_STOPPING_KILLED, TRIAL_STOPPING_ERROR},
    {MACHINE_TRIAL, TRIAL_COMPLETED, TRIAL_ACTIVE},
    {MACHINE_BATCH, BATCH_REBUILDING, BATCH_SENDING},
    {MACHINE_BATCH, BATCH_HELD, BATCH_OVER},
};

static bool is_rare(enum machine m, unsigned from, unsigned to)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(rare); i++)
        if (rare[i].machine == m && rare[i].from == from && rare[i].to == to)
            return true;
    return false;
}

static size_t say_missing(enum machine m, unsigned from, unsigned to, int64_t worlds)
{
    bool may = worlds < EVERY_EDGE && is_rare(m, from, to);
    fprintf(stderr, "sim: no %s went from %s to %s%s\n", machines[m], text_of(m, from),
            text_of(m, to), may ? " (few do)" : "");
    return !may;
}

size_t moves_missing(const struct sim_result *all, int64_t worlds)
{
    size_t n = 0;
    for (enum machine m = 0; m < MACHINE_COUNT; m++)
        for (unsigned from = 0; from < MACHINE_STATES_MAX; from++)
            for (unsigned to = 0; to < MACHINE_STATES_MAX; to++)
                if (edges_may(m, from, to) && !(all->moved[m][from] & 1u << to))
                    n += say_missing(m, from, to, worlds);
    return n;
}
