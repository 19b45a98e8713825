#include "timeline.h"

#include "mem.h"
#include <stdlib.h>
#include <string.h>

/* In the order in which a run goes through them. */
static const char *const stages[] = {"queued",   "placed", "starting",    "running", "prepared",
                                     "compiled", "ready",  "first_batch", "end"};
enum { STAGES = DET_ARRAY_LEN(stages) };

static int stage_of(const char *kind)
{
    for (int i = 0; i < STAGES; i++)
        if (strcmp(kind, stages[i]) == 0)
            return i;
    return STAGES;
}

static const char *const until[][2] = {
    {"queued", "placed"}, {"placed", "prepared"}, {"kill", "end"}, {"preempted", "end"}};

/* What ends this kind of moment; NULL: it does not last. */
static const char *until_what(const char *kind)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(until); i++)
        if (strcmp(kind, until[i][0]) == 0)
            return until[i][1];
    return NULL;
}

/* Their rows tell how long they took; less than the clock can tell is no time, not a moment. */
static const char *const lasting[] = {"prepared",   "compiled",      "first_batch",
                                      "validating", "checkpointing", "stalled"};

static bool is_lasting(const struct timeline_entry *e)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(lasting); i++)
        if (strcmp(e->kind, lasting[i]) == 0)
            return true;
    return e->duration_us > 0;
}

static int by_time(const void *x, const void *y)
{
    const struct timeline_entry *a = x, *b = y;
    if (a->at_us != b->at_us)
        return a->at_us < b->at_us ? -1 : 1;
    if (a->run_id != b->run_id)
        return a->run_id < b->run_id ? -1 : 1;
    int sa = stage_of(a->kind), sb = stage_of(b->kind);
    return sa != sb ? sa - sb : strcmp(a->kind, b->kind);
}

/* The first row of the run of v[i] that is `what`, else the run's end; clocks of hosts may have it
 * before v[i]. */
static const struct timeline_entry *find_ender(const struct timeline_entry *v, size_t n, size_t i,
                                               const char *what)
{
    for (size_t k = 0; k < n; k++)
        if (k != i && v[k].run_id == v[i].run_id && strcmp(v[k].kind, what) == 0)
            return &v[k];
    for (size_t k = 0; k < n; k++)
        if (v[k].run_id == v[i].run_id && strcmp(v[k].kind, "end") == 0)
            return &v[k];
    return NULL;
}

void timeline_durations(struct timeline_entry *v, size_t n, int64_t now_us)
{
    if (n)
        qsort(v, n, sizeof *v, by_time);
    for (size_t i = 0; i < n; i++) {
        const char *what = is_lasting(&v[i]) ? NULL : until_what(v[i].kind);
        const struct timeline_entry *end = what ? find_ender(v, n, i, what) : NULL;
        v[i].open = what && !end;
        v[i].took_us = is_lasting(&v[i]) ? v[i].duration_us : -1;
        if (what) {
            int64_t took = (end ? end->at_us : now_us) - v[i].at_us;
            v[i].took_us = took > 0 ? took : 0;
        }
    }
}
