#include "search_explain.h"

#include "search_impl.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LOOK_MAX 64   /* entries looked at for others */
#define RANK_MAX 4096 /* entries of a last rung, which stand in the order they came */

static double shown_metric(const struct search *s, double metric)
{
    return s->conf.larger_is_better ? -metric : metric;
}

/* In both variants whoever went on stands in a higher rung. */
static bool went_on(const struct search *s, const struct asha_entry *e, int rung)
{
    return s->trials.v[e->trial].rung > rung;
}

static int64_t count_went(const struct asha *a, int rung)
{
    if ((size_t)rung + 1 >= a->rungs.n)
        return 0;
    const struct asha_rung *next = &a->rungs.v[rung + 1];
    return (int64_t)next->entries.n + next->outstanding;
}

static int64_t to_come(const struct asha *a, int rung)
{
    int64_t left = a->max_trials - (a->created - a->invalid);
    return rung == 0 && left > 0 ? left : 0;
}

static enum search_stand stand_of(const struct search *s, const struct search_trial *t)
{
    const struct asha *a = &s->brackets.v[t->bracket];
    if (t->pending && !t->exited)
        return SEARCH_TRAINS;
    if ((size_t)t->rung + 1 == a->rungs.n && t->has_metric && t->metric < DBL_MAX)
        return SEARCH_TOP;
    if (t->exited)
        return SEARCH_FAILED;
    return t->done || t->closed ? SEARCH_STOPPED : SEARCH_WAITS;
}

static void list_others(const struct search *s, const struct asha_rung *r, int rung,
                        struct search_place *p)
{
    for (size_t i = 0; i < r->entries.n && i < LOOK_MAX && p->others_n < SEARCH_OTHERS_MAX; i++)
        if (went_on(s, &r->entries.v[i], rung))
            p->others[p->others_n++] = s->trials.v[r->entries.v[i].trial].request_id;
}

/* One that went on from this rung with a worse metric. */
static bool find_rival(const struct search *s, int bracket, int rung, double metric,
                       struct search_place *p)
{
    const struct asha_rung *r = &s->brackets.v[bracket].rungs.v[rung];
    size_t from = asha_position(r, metric, false);
    for (size_t i = from; i < r->entries.n && i < from + LOOK_MAX; i++) {
        const struct asha_entry *e = &r->entries.v[i];
        if (e->metric >= DBL_MAX || !went_on(s, e, rung))
            continue;
        p->rival = s->trials.v[e->trial].request_id;
        p->rival_metric = shown_metric(s, e->metric);
        p->rival_bracket = bracket + 1;
        return true;
    }
    return false;
}

/* Its own rung first, then those of other brackets. */
static void find_rivals(const struct search *s, const struct search_trial *t,
                        struct search_place *p)
{
    if (find_rival(s, t->bracket, t->rung, t->metric, p))
        return;
    for (size_t b = 0; b < s->brackets.n; b++)
        for (size_t r = 0; r + 1 < s->brackets.v[b].rungs.n && (int)b != t->bracket; r++)
            if (find_rival(s, (int)b, (int)r, t->metric, p))
                return;
}

/* 0: too many to count. */
static size_t place_in_last(const struct asha_rung *r, double metric)
{
    size_t better = 0;
    for (size_t i = 0; i < r->entries.n && r->entries.n <= RANK_MAX; i++)
        better += r->entries.v[i].metric < metric;
    return r->entries.n <= RANK_MAX ? better + 1 : 0;
}

bool search_place_of(const struct search *s, const char *request_id, struct search_place *ret)
{
    size_t k = search_trial_find(s, request_id);
    if (k == SEARCH_NO_TRIAL || s->brackets.n == 0)
        return false;
    const struct search_trial *t = &s->trials.v[k];
    const struct asha *a = &s->brackets.v[t->bracket];
    const struct asha_rung *r = &a->rungs.v[t->rung];
    *ret = (struct search_place){.stand = stand_of(s, t),
                                 .bracket = t->bracket + 1,
                                 .brackets = (int)s->brackets.n,
                                 .rung = t->rung + 1,
                                 .rungs = (int)a->rungs.n,
                                 .length = r->length,
                                 .divisor = s->conf.divisor,
                                 .of = r->entries.n,
                                 .went = count_went(a, t->rung),
                                 .training = r->outstanding,
                                 .to_come = to_come(a, t->rung)};
    list_others(s, r, t->rung, ret);
    ret->has_metric = !t->pending && t->has_metric && t->metric < DBL_MAX;
    if (!ret->has_metric)
        return true;
    ret->metric = shown_metric(s, t->metric);
    if (ret->rung == ret->rungs) {
        ret->place = place_in_last(r, t->metric);
        return true;
    }
    ret->place = asha_position(r, t->metric, true) + 1;
    find_rivals(s, t, ret);
    return true;
}

/* ---- the sentence ---- */

static int64_t id_of(const struct search_names *n, const char *request_id)
{
    return n->trial(n->arg, request_id);
}

static void add_place(const struct search_place *p, struct buf *out)
{
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    size_t n = p->place, last = n % 10;
    if (n > 1)
        buf_addf(out, "the %zu%s best", n, ends[n % 100 - 10 > 10 && last < 4 ? last : 0]);
    else
        buf_add_str(out, "the best");
    buf_addf(out, " of %zu", p->of);
}

static void add_rung(const struct search_place *p, const struct search_names *n, struct buf *out)
{
    if (p->brackets > 1)
        buf_addf(out, "in bracket %d of %d, ", p->bracket, p->brackets);
    else
        buf_add_str(out, "in ");
    buf_addf(out, "rung %d of %d (%" PRId64 "%s%s)", p->rung, p->rungs, p->length,
             *n->unit ? " " : "", n->unit);
}

static void add_metric(const struct search_place *p, const struct search_names *n, struct buf *out)
{
    if (!p->has_metric)
        return;
    buf_addf(out, " its %s of %.4g is ", n->metric, p->metric);
    if (p->place == 0)
        buf_addf(out, "one of %zu", p->of);
    else
        add_place(p, out);
}

static void add_others(const struct search_place *p, const struct search_names *n, struct buf *out)
{
    if (p->went == 0) {
        buf_add_str(out, "; nobody went on from there");
        return;
    }
    buf_addf(out, "; %" PRId64 " went on", p->went);
    for (size_t i = 0; i < p->others_n; i++)
        buf_addf(out, "%s%" PRId64,
                 i                  ? ", "
                 : p->others_n == 1 ? ": trial "
                                    : ": trials ",
                 id_of(n, p->others[i]));
    if ((int64_t)p->others_n < p->went)
        buf_add_str(out, p->others_n ? " and others" : "");
}

/* That a worse one went on looks like a mistake. */
static void add_rival(const struct search_place *p, const struct search_names *n, struct buf *out)
{
    if (!p->rival)
        return;
    buf_addf(out, "; trial %" PRId64 " went on with %.4g, which is worse, ", id_of(n, p->rival),
             p->rival_metric);
    if (p->rival_bracket != p->bracket)
        buf_addf(out, "but in bracket %d: trials are compared within their bracket only",
                 p->rival_bracket);
    else
        buf_add_str(out, "because it was among the best when fewer trials had come this far");
}

static void add_missing(const struct search_place *p, struct buf *out)
{
    if (p->training > 0)
        buf_addf(out, "; %" PRId64 " still train%s there", p->training,
                 p->training == 1 ? "s" : "");
    if (p->to_come > 0)
        buf_addf(out, "%s %" PRId64 " %s yet to start", p->training > 0 ? " and" : ";", p->to_come,
                 p->to_come == 1 ? "is" : "are");
}

void search_place_text(const struct search_place *p, const struct search_names *n, struct buf *out)
{
    static const char *const begins[SEARCH_STAND_COUNT] = {
        [SEARCH_TRAINS] = "it trains ",
        [SEARCH_WAITS] = "it waits for the searcher: ",
        [SEARCH_STOPPED] = "the searcher ended it: ",
        [SEARCH_TOP] = "it reached the end of its search: ",
        [SEARCH_FAILED] = "it ended by itself ",
    };
    buf_add_str(out, begins[p->stand]);
    add_rung(p, n, out);
    add_metric(p, n, out);
    if (p->stand != SEARCH_WAITS && p->stand != SEARCH_STOPPED)
        return;
    buf_addf(out, ", and the best 1 in %g go on", p->divisor);
    add_others(p, n, out);
    if (p->stand == SEARCH_WAITS)
        add_missing(p, out);
    else
        add_rival(p, n, out);
}

void search_plain_text(enum search_kind kind, int64_t length, const char *unit, const char *reason,
                       struct buf *out)
{
    if (kind != SEARCH_CUSTOM) {
        buf_addf(out, "it trained the %" PRId64 " %s that its search gives every trial", length,
                 unit);
        return;
    }
    buf_addf(out, "the client of its search closed it after %" PRId64 " %s", length, unit);
    if (reason)
        buf_addf(out, ": %s", reason);
}

/* ---- for programs ---- */

static const char *const stand_names[SEARCH_STAND_COUNT] = {
    [SEARCH_TRAINS] = "TRAINS", [SEARCH_WAITS] = "WAITS",   [SEARCH_STOPPED] = "STOPPED",
    [SEARCH_TOP] = "TOP",       [SEARCH_FAILED] = "FAILED",
};

json_t *search_place_json(const struct search_place *p, const struct search_names *n)
{
    json_t *others = json_array();
    for (size_t i = 0; i < p->others_n; i++)
        json_array_append_new(others, json_integer(id_of(n, p->others[i])));
    json_t *j = json_make(
        "{s:s,s:i,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:o}", "state", stand_names[p->stand], "bracket",
        p->bracket, "brackets", p->brackets, "rung", p->rung, "rungs", p->rungs, "length",
        (json_int_t)p->length, "of", (json_int_t)p->of, "wentOn", (json_int_t)p->went, "training",
        (json_int_t)p->training, "toCome", (json_int_t)p->to_come, "others", others);
    json_set(j, "metric", p->has_metric ? json_double(p->metric) : json_null());
    json_set(j, "place", p->place > 0 ? json_integer((json_int_t)p->place) : json_null());
    return j;
}

static enum search_stand stand_in(const struct search *s, const struct asha_entry *e, int rung,
                                  bool *went)
{
    const struct search_trial *t = &s->trials.v[e->trial];
    *went = t->rung > rung;
    return stand_of(s, t);
}

static json_t *entry_json(const struct search *s, const struct asha_entry *e, int rung,
                          const struct search_names *n)
{
    const char *id = s->trials.v[e->trial].request_id;
    bool went, failed = e->metric >= DBL_MAX;
    enum search_stand stand = stand_in(s, e, rung, &went);
    json_t *j =
        json_make("{s:I,s:s,s:s}", "trialId", (json_int_t)id_of(n, id), "requestId", id, "state",
                  failed ? "FAILED"
                  : went ? "WENT_ON"
                         : stand_names[stand]);
    json_set(j, "metric", failed ? json_null() : json_double(shown_metric(s, e->metric)));
    return j;
}

static int cmp_entries(const void *x, const void *y)
{
    const struct asha_entry *a = x, *b = y;
    return a->metric < b->metric ? -1 : a->metric > b->metric ? 1 : 0;
}

static json_t *rung_json(const struct search *s, const struct asha *a, int rung,
                         const struct search_names *n, size_t most)
{
    const struct asha_rung *r = &a->rungs.v[rung];
    json_t *list = json_array();
    size_t bytes = r->entries.n * sizeof *r->entries.v;
    struct asha_entry *sorted det_cleanup(freep) = det_alloc(bytes + 1);
    if (bytes)
        memcpy(sorted, r->entries.v, bytes);
    qsort(sorted, r->entries.n, sizeof *sorted, cmp_entries);
    for (size_t i = 0; i < r->entries.n && i < most; i++)
        json_array_append_new(list, entry_json(s, &sorted[i], rung, n));
    return json_make("{s:i,s:I,s:I,s:I,s:I,s:I,s:o}", "rung", rung + 1, "length",
                     (json_int_t)r->length, "training", (json_int_t)r->outstanding, "toCome",
                     (json_int_t)to_come(a, rung), "wentOn", (json_int_t)count_went(a, rung),
                     "validated", (json_int_t)r->entries.n, "trials", list);
}

json_t *search_rungs(const struct search *s, const struct search_names *n, size_t most)
{
    json_t *all = json_array();
    for (size_t b = 0; b < s->brackets.n; b++) {
        const struct asha *a = &s->brackets.v[b];
        json_t *rungs = json_array();
        for (size_t r = 0; r < a->rungs.n; r++)
            json_array_append_new(rungs, rung_json(s, a, (int)r, n, most));
        json_array_append_new(all,
                              json_make("{s:i,s:I,s:I,s:o}", "bracket", (int)b + 1, "maxTrials",
                                        (json_int_t)a->max_trials, "made",
                                        (json_int_t)(a->created - a->invalid), "rungs", rungs));
    }
    return all;
}
