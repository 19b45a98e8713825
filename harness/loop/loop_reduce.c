/* MetricReducers (docs/contract/loop.md 3): one exchange carries the values of all reducers of all
 * ranks. */
#include "loop_impl.h"
#include "span.h"

#include <string.h>

static bool is_wanted(const struct loop_reducer *r, bool training)
{
    return training ? r->for_training : r->for_validation;
}

static const char *shown_name(const struct loop_reducer *r)
{
    return r->name ? r->name : "(no name)";
}

int loop_reducers_reset(struct loop *l, bool training, struct det_err *err)
{
    (void)training; /* all are reset, also those that do not take part */
    for (size_t i = 0; i < l->n_reducers; i++) {
        const struct loop_reducer *r = &l->reducers[i];
        int rc = r->reset ? r->reset(r->self, err) : 0;
        if (rc < 0)
            return det_wrap(err, rc, "reducer %s: reset", shown_name(r));
    }
    return 0;
}

/* This rank's message: for each reducer that takes part u64 bytes, bytes. */
static int pack_values(struct loop *l, bool training, struct buf *out, struct det_err *err)
{
    for (size_t i = 0; i < l->n_reducers; i++) {
        const struct loop_reducer *r = &l->reducers[i];
        det_cleanup(freep) void *p = NULL;
        size_t n = 0;
        if (!is_wanted(r, training))
            continue;
        int rc = r->per_slot_reduce(r->self, &p, &n, err);
        if (rc < 0)
            return det_wrap(err, rc, "reducer %s: per_slot_reduce", shown_name(r));
        uint64_t bytes = n;
        buf_add(out, &bytes, sizeof bytes);
        if (n)
            buf_add(out, p, n);
    }
    return 0;
}

/* The next value of every rank's message; at[] moves on. */
static int unpack_values(const struct comm_blobs *all, size_t *at, const void **values,
                         size_t *bytes, struct det_err *err)
{
    for (int r = 0; r < all->n; r++) {
        uint64_t n;
        const char *p = all->v[r];
        if (all->bytes[r] - at[r] < sizeof n)
            return det_fail(err, DET_EINVAL, "rank %d has fewer reducers than this rank", r);
        memcpy(&n, p + at[r], sizeof n);
        at[r] += sizeof n;
        if (n > all->bytes[r] - at[r])
            return det_fail(err, DET_ECORRUPT, "rank %d: a reducer's value is cut short", r);
        values[r] = p + at[r];
        bytes[r] = n;
        at[r] += n;
    }
    return 0;
}

/* name NULL: any metrics; a name: exactly this one. */
static int check_result(const struct loop_reducer *r, const struct loop_metrics *m,
                        struct det_err *err)
{
    if (!r->name || (m->n == 1 && strcmp(m->v[0].name, r->name) == 0))
        return 0;
    return det_fail(err, DET_EINVAL,
                    "reducer %s: cross_slot_reduce must give one metric of the reducer's name, not "
                    "%zu",
                    r->name, m->n);
}

static int run_one(struct loop *l, const struct loop_reducer *r, const struct comm_blobs *all,
                   size_t *at, struct loop_metrics *m, struct det_err *err)
{
    det_cleanup(freep) const void **values = det_zalloc((size_t)l->size * sizeof *values);
    det_cleanup(freep) size_t *bytes = det_zalloc((size_t)l->size * sizeof *bytes);
    det_cleanup(loop_metrics_finish) struct loop_metrics out = LOOP_METRICS_INIT;
    int rc = unpack_values(all, at, values, bytes, err);
    if (rc == 0)
        rc = r->cross_slot_reduce(r->self, values, bytes, (size_t)l->size, &out, err);
    if (rc == 0)
        rc = check_result(r, &out, err);
    if (rc < 0)
        return det_wrap(err, rc, "reducer %s", shown_name(r));
    loop_metrics_merge(m, &out);
    return 0;
}

int loop_reducers_run(struct loop *l, bool training, struct loop_metrics *m, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf mine = BUF_INIT;
    det_cleanup(comm_blobs_finish) struct comm_blobs all = {0};
    if (l->n_reducers == 0)
        return 0;
    SPAN(SPAN_LOOP, "reduce_metrics");
    int rc = pack_values(l, training, &mine, err);
    if (rc == 0)
        rc = comm_allgather(l->comm, buf_str(&mine), mine.len, &all, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) size_t *at = det_zalloc((size_t)l->size * sizeof *at);
    for (size_t i = 0; rc == 0 && i < l->n_reducers; i++)
        if (is_wanted(&l->reducers[i], training))
            rc = run_one(l, &l->reducers[i], &all, at, m, err);
    return rc;
}
