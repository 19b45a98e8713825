/* A recording in one table: by name, how often and how long, with and without what is inside. */
#include "profile.h"

#include <stdlib.h>

struct row {
    const char *name;
    int64_t calls, total_ns, self_ns;
};

/* What lies inside a span directly is not its own time: spans are sorted, so those still open are a
 * stack. */
static void sum_up(const struct profile *p, struct row *rows)
{
    VEC(size_t) open = {0};
    for (size_t i = 0; i < p->events.n; i++) {
        const struct profile_event *e = &p->events.v[i];
        if (e->count)
            continue;
        while (open.n > 0) {
            const struct profile_event *o = &p->events.v[open.v[open.n - 1]];
            if (o->tid == e->tid && e->start_ns < o->end_ns)
                break;
            open.n--;
        }
        int64_t ns = e->end_ns - e->start_ns;
        struct row *r = &rows[e->name - 1];
        r->calls++;
        r->total_ns += ns;
        r->self_ns += ns;
        if (open.n > 0)
            rows[p->events.v[open.v[open.n - 1]].name - 1].self_ns -= ns;
        vec_push(&open, i);
    }
    vec_free(&open);
}

static int by_self(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->self_ns != y->self_ns)
        return x->self_ns > y->self_ns ? -1 : 1;
    return x->calls > y->calls ? -1 : x->calls < y->calls;
}

void profile_write_table(struct profile *p, size_t rows_max, struct buf *out)
{
    size_t n = p->texts.n;
    struct row *rows = det_zalloc((n + 1) * sizeof *rows);
    int64_t all_ns = 0;
    profile_sort(p);
    sum_up(p, rows);
    for (size_t i = 0; i < n; i++) {
        rows[i].name = p->texts.v[i];
        all_ns += rows[i].self_ns;
    }
    qsort(rows, n, sizeof *rows, by_self);
    buf_add_str(out, "| name | self | self ms | total ms | calls | ms per call |\n"
                     "|---|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < n && i < rows_max && rows[i].calls > 0; i++) {
        double self = (double)rows[i].self_ns / 1e6, total = (double)rows[i].total_ns / 1e6;
        buf_addf(out, "| %s | %.1f %% | %.3f | %.3f | %lld | %.3f |\n", rows[i].name,
                 all_ns > 0 ? 100.0 * (double)rows[i].self_ns / (double)all_ns : 0, self, total,
                 (long long)rows[i].calls, total / (double)rows[i].calls);
    }
    free(rows);
}
