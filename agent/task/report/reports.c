#include "reports.h"

#include "bundle.h"
#include "clk.h"
#include "log.h"
#include "report.h"
#include "spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 2000
#define TRIES        5 /* of a bundle that the master does not take as a whole */
#define TRIES_ALONE  7 /* of a report at which it has a fault each time */

struct reports {
    struct client_uv *http;
    const struct taskspec *spec;
    struct spool *spool;              /* of the rank at hand, or NULL */
    int local;                        /* next rank */
    int64_t retry_ms, retry_until_ms; /* renewed by every answer but that of a fault */
    int64_t until_ms;                 /* of all */
    int64_t pause_ms;                 /* before the next try */
    int tries;                        /* that had such an answer */
    struct client_uv_call *call;
    struct bundle bundle;  /* what is under way; n 0: a single one */
    enum report_kind kind; /* of that one */
    bool goes_singly;      /* the master knows no bundles */
    size_t singly_n;       /* unsettled records of a bundle that it would not take as one */
    uv_timer_t timer;
    struct reports_tally n;
    void (*done)(void *arg, const struct reports_tally *n);
    void *arg;
};

static void send_next(struct reports *r);

static void on_closed(uv_handle_t *h)
{
    free(container_of((uv_timer_t *)h, struct reports, timer));
}

/* As the task's user: the file lies in a directory of his. */
static void open_next(struct reports *r)
{
    struct det_err err = {0};
    det_cleanup(freep) char *path = det_asprintf("%s/run/reports.%d", r->spec->dir, r->local++);
    if (taskspec_user_enter(r->spec, &err) < 0)
        return;
    int rc = access(path, F_OK) == 0 ? spool_open(path, &r->spool, &err) : 0;
    taskspec_user_leave(r->spec);
    if (rc < 0)
        log_warning("reports of rank %d: %s", r->local - 1, err.text);
}

static void finish_spools(struct reports *r)
{
    for (;;) {
        r->n.left += r->spool && spool_pending(r->spool) > 0;
        spool_close(r->spool);
        r->spool = NULL;
        if (r->local >= taskspec_local_size(r->spec))
            break;
        open_next(r);
    }
    r->done(r->arg, &r->n);
    bundle_finish(&r->bundle);
    uv_close((uv_handle_t *)&r->timer, on_closed);
}

/* When the report in hand is given up. */
static int64_t patience_ms(const struct reports *r)
{
    int64_t until = r->until_ms < r->retry_until_ms ? r->until_ms : r->retry_until_ms;
    return until - clk_mono_ms();
}

static void on_timer(uv_timer_t *t)
{
    send_next(container_of(t, struct reports, timer));
}

static void count_result(struct reports *r, int rc, const struct det_err *err)
{
    if (rc == 0) {
        r->n.sent++;
        return;
    }
    if (r->n.refused++ == 0)
        r->n.refusal = *err;
    log_warning("a report that a rank left is refused: %s", err->text);
}

static void begin_tries(struct reports *r)
{
    r->pause_ms = RETRY_MIN_MS;
    r->tries = 0;
}

/* A master with a fault is not waited for anew at each report. */
static void renew_patience(struct reports *r)
{
    r->retry_until_ms = clk_mono_ms() + r->retry_ms;
    begin_tries(r);
}

/* What was under way is settled: the next one. */
static void go_on(struct reports *r)
{
    begin_tries(r);
    if (spool_sent(r->spool, NULL) < 0 || clk_mono_ms() >= r->until_ms)
        finish_spools(r);
    else
        send_next(r);
}

/* One that broke off is none, whatever it began with. */
static enum report_answer answer_of(enum report_kind kind, int rc, const struct client_resp *resp)
{
    int status = resp ? resp->status : 0;
    return report_answer(kind, rc < 0 && status < 300 ? 0 : status);
}

static bool is_passing(enum report_answer answer)
{
    return answer == REPORT_AGAIN || answer == REPORT_FAULT;
}

/* The same again, if there is time for it; a master under strain is asked ever more seldom. */
static void try_again(struct reports *r)
{
    int64_t left_ms = patience_ms(r) - RETRY_MIN_MS;
    if (left_ms <= 0) {
        finish_spools(r);
        return;
    }
    int64_t pause_ms = r->pause_ms < left_ms ? r->pause_ms : left_ms;
    uv_timer_start(&r->timer, on_timer, (uint64_t)pause_ms, 0);
    r->pause_ms = r->pause_ms * 2 < RETRY_MAX_MS ? r->pause_ms * 2 : RETRY_MAX_MS;
}

static void on_answer(void *arg, int rc, const struct client_resp *resp, const struct det_err *err)
{
    struct reports *r = arg;
    r->call = NULL;
    enum report_answer answer = answer_of(r->kind, rc, resp);
    if (is_passing(answer) && !(answer == REPORT_FAULT && ++r->tries >= TRIES_ALONE)) {
        try_again(r);
        return;
    }
    if (!is_passing(answer))
        renew_patience(r);
    count_result(r, answer == REPORT_DROPPED ? 0 : rc, err);
    r->singly_n -= r->singly_n > 0;
    go_on(r);
}

static void start_call(struct reports *r, const struct client_req *call, const char *seq,
                       void (*done)(void *arg, int rc, const struct client_resp *resp,
                                    const struct det_err *err))
{
    det_cleanup(freep) char *header = det_asprintf("%s: %s", SPOOL_HEADER, seq);
    const char *const headers[] = {*seq ? header : NULL, NULL};
    int64_t left_ms = patience_ms(r);
    struct client_req req = *call;
    req.headers = headers;
    req.timeout_ms = left_ms < 100 ? 100 : left_ms;
    r->call = client_uv_start(r->http, &req, done, r);
}

/* ---- several at once (bundle.h) ---- */

/* The last progress between them has its own route; whatever is said to it, nothing is lost. */
static void on_progress(void *arg, int rc, const struct client_resp *resp,
                        const struct det_err *err)
{
    struct reports *r = arg;
    r->call = NULL;
    go_on(r);
}

static enum report_answer answer_at(const json_t *list, size_t i)
{
    return report_answer(REPORT_METRICS, (int)json_int(json_array_get(list, i), "status", 500));
}

/* The master may take some of what it did not keep yet. */
static bool has_passing(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (is_passing(answer_at(list, i)))
            return true;
    return false;
}

/* What came before all that it did not keep is with the master: it is neither sent again nor left.
 * Where the answer makes no sense, nothing is known to be. */
static void forget_kept(struct reports *r, const json_t *list)
{
    const struct bundle *b = &r->bundle;
    struct spool_record rec;
    size_t lowest = b->n;
    for (size_t i = 0; i < json_array_size(list); i++) {
        int64_t place = json_int(json_array_get(list, i), "index", 0);
        size_t at = place > 0 && (size_t)place < b->n ? (size_t)place : 0;
        lowest = at < lowest ? at : lowest;
    }
    if (lowest == 0 || lowest == b->n)
        return;
    for (size_t i = 0; i < b->record[lowest]; i++)
        if (spool_next(r->spool, &rec, NULL) < 0 || spool_sent(r->spool, NULL) < 0)
            return;
    r->n.sent += lowest;
    renew_patience(r);
}

/* Which of them the master did not keep. */
static void count_refused(struct reports *r, const json_t *list)
{
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        struct det_err err = {0};
        const json_t *x = json_array_get(list, i);
        det_fail(&err, DET_EINVAL, "%s: the master answered %d: %.400s", r->bundle.path,
                 (int)json_int(x, "status", 0), json_str(x, "message", ""));
        count_result(r, DET_EINVAL, &err);
    }
    r->n.sent += r->bundle.n > n ? r->bundle.n - n : 0;
}

/* One that the master would not take as a whole goes in pieces, which have answers of their own. */
static void part_bundle(struct reports *r, int status)
{
    r->goes_singly |= status == 404 || status == 405;
    r->singly_n = r->bundle.taken;
    begin_tries(r);
    send_next(r);
}

static bool has_fault(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (answer_at(list, i) == REPORT_FAULT)
            return true;
    return false;
}

/* Some of them are not kept as yet, or the master cannot say. It goes again while that may change;
 * where the others were taken, or the master has a fault, each goes by itself then. */
static void try_bundle_again(struct reports *r, enum report_answer answer, const json_t *list)
{
    size_t n = json_array_size(list);
    bool may_part = n ? n < r->bundle.n || has_fault(list) : answer == REPORT_FAULT;
    forget_kept(r, list);
    if (may_part && ++r->tries >= TRIES)
        part_bundle(r, 0);
    else
        try_again(r);
}

static void on_bundle(void *arg, int rc, const struct client_resp *resp, const struct det_err *err)
{
    struct reports *r = arg;
    const struct bundle *b = &r->bundle;
    r->call = NULL;
    JSON_OWN j = rc == 0 ? json_parse(buf_str(&resp->body), resp->body.len, NULL) : NULL;
    const json_t *list = json_arr(j, "refused");
    enum report_answer answer = answer_of(REPORT_METRICS, rc, resp);
    if (is_passing(answer) || has_passing(list)) {
        try_bundle_again(r, answer, list);
        return;
    }
    renew_patience(r);
    if (rc < 0) {
        part_bundle(r, resp->status);
        return;
    }
    count_refused(r, list);
    if (b->progress)
        start_call(
            r,
            &(struct client_req){.method = "POST", .path = b->progress_path, .body = b->progress},
            b->seq, on_progress);
    else
        go_on(r);
}

/* Whether the first record of the spool is on its way with those that wait behind it. */
static bool send_bundle(struct reports *r, const struct spool_record *first)
{
    bundle_finish(&r->bundle);
    r->bundle = (struct bundle){0};
    if (r->goes_singly || r->singly_n > 0 || !bundle_gather(&r->bundle, r->spool, first, NULL))
        return false;
    const struct bundle *b = &r->bundle;
    start_call(r,
               &(struct client_req){.method = "POST", .path = b->path, .body = buf_str(&b->body)},
               b->seq, on_bundle);
    return true;
}

bool reports_are_left(const struct taskspec *s)
{
    for (int i = 0; i < taskspec_local_size(s); i++) {
        char name[32];
        snprintf(name, sizeof name, "run/reports.%d", i);
        if (faccessat(s->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

static void send_next(struct reports *r)
{
    struct spool_record rec;
    while (!r->spool || spool_next(r->spool, &rec, NULL) < 0) {
        spool_close(r->spool);
        r->spool = NULL;
        if (r->local >= taskspec_local_size(r->spec)) {
            finish_spools(r);
            return;
        }
        open_next(r);
    }
    if (send_bundle(r, &rec))
        return;
    if (r->bundle.taken && spool_next(r->spool, &rec, NULL) < 0) { /* gathering has read on */
        finish_spools(r);
        return;
    }
    r->kind = report_kind(rec.method, rec.path);
    start_call(r,
               &(struct client_req){
                   .method = rec.method, .path = rec.path, .body = rec.body[0] ? rec.body : NULL},
               rec.seq, on_answer);
}

struct reports *reports_start(uv_loop_t *loop, struct client_uv *http, const struct taskspec *spec,
                              struct reports_limits limits,
                              void (*done)(void *arg, const struct reports_tally *n), void *arg)
{
    struct reports *r = det_zalloc(sizeof *r);
    int64_t now = clk_mono_ms();
    *r = (struct reports){.http = http,
                          .spec = spec,
                          .done = done,
                          .arg = arg,
                          .retry_ms = limits.retry_ms,
                          .retry_until_ms = now + limits.retry_ms,
                          .pause_ms = RETRY_MIN_MS,
                          .until_ms = limits.all_ms ? now + limits.all_ms : INT64_MAX};
    uv_timer_init(loop, &r->timer);
    uv_timer_start(&r->timer, on_timer, 0, 0);
    return r;
}

static void on_hurry(uv_timer_t *t)
{
    struct reports *r = container_of(t, struct reports, timer);
    client_uv_cancel(r->call);
    finish_spools(r);
}

void reports_hurry(struct reports *r, int64_t all_ms)
{
    int64_t until = clk_mono_ms() + all_ms;
    if (until >= r->until_ms)
        return;
    r->until_ms = until;
    uv_timer_start(&r->timer, on_hurry, (uint64_t)all_ms, 0);
}
