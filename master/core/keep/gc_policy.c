#include "gc_policy.h"

#include "mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *gc_why_text(unsigned why)
{
    static const char *const text[GC_WHY_COUNT] = {
        "it is the latest of its trial",
        "it is among the best of its trial",
        "it is among the best of the experiment",
        "a live trial would resume from it",
        "a live trial started from it",
        "a trial started from it",
        "it is being read",
        "somebody took it back from the quarantine",
        "it is a version of a model",
    };
    for (int i = 0; i < GC_WHY_COUNT; i++)
        if (why & (1u << i))
            return text[i];
    return "the policy does not keep it";
}

/* Lower is better; without a metric last. */
struct rated {
    struct gc_checkpoint *c;
    double score;
};

static int by_score(const void *x, const void *y)
{
    const struct rated *a = x, *b = y;
    if (isnan(a->score) != isnan(b->score))
        return isnan(a->score) ? 1 : -1;
    if (!isnan(a->score) && a->score != b->score)
        return a->score < b->score ? -1 : 1;
    if (a->c->trial_id != b->c->trial_id)
        return a->c->trial_id < b->c->trial_id ? -1 : 1;
    if (a->c->steps != b->c->steps)
        return a->c->steps < b->c->steps ? -1 : 1;
    return strcmp(a->c->uuid, b->c->uuid);
}

static int by_trial_score(const void *x, const void *y)
{
    const struct rated *a = x, *b = y;
    if (a->c->trial_id != b->c->trial_id)
        return a->c->trial_id < b->c->trial_id ? -1 : 1;
    return by_score(x, y);
}

static int by_trial_latest(const void *x, const void *y)
{
    const struct gc_checkpoint *a = ((const struct rated *)x)->c, *b = ((const struct rated *)y)->c;
    if (a->trial_id != b->trial_id)
        return a->trial_id < b->trial_id ? -1 : 1;
    if (a->steps != b->steps)
        return a->steps > b->steps ? -1 : 1;
    if (a->report_us != b->report_us)
        return a->report_us > b->report_us ? -1 : 1;
    return strcmp(a->uuid, b->uuid);
}

/* Marks the first `keep` of each trial (or of all) in the order of cmp. */
static void mark_kept(struct rated *r, size_t n, int (*cmp)(const void *, const void *),
                      int64_t keep, unsigned why)
{
    int64_t rank = 0;
    qsort(r, n, sizeof *r, cmp);
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || (cmp != by_score && r[i].c->trial_id != r[i - 1].c->trial_id);
        rank = first ? 1 : rank + 1;
        if (rank <= keep && (why == GC_KEEP_LATEST || !isnan(r[i].score)))
            r[i].c->why |= why;
    }
}

void gc_policy(struct gc_checkpoint *v, size_t n, const struct gc_keep *keep)
{
    if (n == 0)
        return;
    det_cleanup(freep) struct rated *r = det_reallocarray(NULL, n, sizeof *r);
    for (size_t i = 0; i < n; i++) {
        v[i].why = v[i].held;
        r[i] = (struct rated){&v[i], keep->smaller_is_better ? v[i].metric : -v[i].metric};
    }
    mark_kept(r, n, by_score, keep->experiment_best, GC_KEEP_EXP_BEST);
    mark_kept(r, n, by_trial_score, keep->trial_best, GC_KEEP_TRIAL_BEST);
    mark_kept(r, n, by_trial_latest, keep->trial_latest, GC_KEEP_LATEST);
}
