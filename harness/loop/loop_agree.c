/* What the ranks agree on, and rows of metrics: shared by the files of the loop. */
#include "loop_impl.h"

#include "loop_alive.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void loop_agreed_fail(struct loop_agreed *a, int rc, const struct det_err *err)
{
    a->rc = rc;
    if (rc < 0)
        snprintf(a->text, sizeof a->text, "%.500s", err->text);
    a->sys = rc < 0 ? err->sys : 0;
}

int loop_agreed_end(const struct loop_agreed *a, const char *whose, struct det_err *err)
{
    if (a->rc >= 0)
        return 0;
    det_fail(err, a->rc, "%s%s", whose, a->text);
    if (err)
        err->sys = a->sys;
    return a->rc;
}

int loop_agree(struct loop *l, struct loop_agreed *a, struct det_err *err)
{
    loop_alive_wait(!l->chief);
    int rc = comm_broadcast(l->comm, a, sizeof *a, 0, err);
    loop_alive_wait(false);
    if (rc < 0)
        return rc;
    a->uuid[sizeof a->uuid - 1] = a->text[sizeof a->text - 1] = 0;
    return loop_agreed_end(a, l->chief ? "" : "rank 0: ", err);
}

struct loop_metrics *loop_rows_next(struct loop_rows *r)
{
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 16;
        r->v = det_reallocarray(r->v, cap, sizeof *r->v);
        memset(r->v + r->cap, 0, (cap - r->cap) * sizeof *r->v);
        r->cap = cap;
    }
    struct loop_metrics *m = &r->v[r->n++];
    loop_metrics_clear(m);
    return m;
}

void loop_rows_finish(struct loop_rows *r)
{
    for (size_t i = 0; i < r->cap; i++)
        loop_metrics_finish(&r->v[i]);
    free(r->v);
    *r = (struct loop_rows){0};
}
