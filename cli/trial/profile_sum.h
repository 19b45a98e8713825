/*
 * The measurements of a trial's profile (docs/contract/loop.md 11), summed up. Pure.
 *
 * A series is one name on one host (or one GPU of it): durations of a part of the chief's loop in
 * seconds, what a host does, or how many records a second were trained.
 */
#ifndef CLI_PROFILE_SUM_H
#define CLI_PROFILE_SUM_H

#include "json.h"
#include "vec.h"

enum profile_kind { PROFILE_SYSTEM, PROFILE_TIMING, PROFILE_MISC, PROFILE_KIND_COUNT };

struct profile_point {
    double value;
    int64_t batch, at_us; /* at_us: when it was measured, a duration at its end */
};
struct profile_series {
    char *name, *agent, *gpu; /* "" where there is none */
    enum profile_kind kind;
    VEC(struct profile_point) points;
};
struct profile {
    VEC(struct profile_series) series; /* in the order of their first points */
};
/* One "batch" of the API's answers: its lists are as long as the shortest of them, and what is no
 * measurement is left out. */
void profile_add(struct profile *p, const json_t *batch);
void profile_finish(struct profile *p);
/* The first of this name, NULL: there is none. */
const struct profile_series *profile_find(const struct profile *p, const char *name);

struct profile_sum {
    size_t n;
    double total, mean, median, p99, least, most;
    int64_t most_batch; /* where it was most */
};
struct profile_sum profile_sum(const struct profile_series *s); /* n 0: the rest is 0 */

/* Which batches were measured, and for how long: from the begin of the first duration to the end
 * of the last. */
struct profile_span {
    int64_t first, last; /* batches */
    double seconds;
};
struct profile_span profile_span(const struct profile *p);
/* How fast the batches between two reports went, by the trial's training workloads in their order:
 * the series "batches_per_second", and in *ret what they span. False: there are not two. */
bool profile_add_reports(struct profile *p, const json_t *workloads, struct profile_span *ret);
/* When the first of them was made, on the clock; 0: there is none. */
int64_t profile_first_report(const json_t *workloads);
/* When the first measurements come: a rank sends them a while after it begins to measure. `since`:
 * seconds from the first report of its batches, < 0 where there is none, and nobody knows when its
 * first batch will be. Caller frees. */
char *profile_when(int64_t begin_on_batch, double since);

/* The part of the loop that this one is a part of, NULL: of the loop itself. Borrowed or static. */
const char *profile_within(const struct profile *p, const char *name);

/* Times that the loop waited for data longer than a batch usually trains. */
struct profile_stalls {
    size_t n;
    double limit, seconds; /* the median of train_batch; all of these waits */
};
struct profile_stalls profile_stalls(const struct profile *p);

/* "%", "GB", ...; "" for a name that is not known. */
const char *profile_unit(const struct profile_series *s);

#endif
