#include "reporter.h"

#include "bundle.h"
#include "clk.h"
#include "loop_alive.h"
#include "report.h"
#include "spool.h"
#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define CALL_MS      30000
#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 2000
#define TRIES_FAULT  10

struct reporter {
    struct loop_http http;
    struct spool *spool;
    int64_t run_id, seq;
    pthread_t thread;
    pthread_t opener; /* its signs of life are the rank's */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something was posted, sent, failed, or the end came */
    bool goes_singly;       /* the master knows no bundles; the thread's alone */
    size_t singly_n;        /* records of a bundle that it would not take; the thread's alone */
    char *state;            /* body of the last runner/metadata that was sent; the thread's alone */
    bool ending;
    bool given_up;      /* the thread ended */
    _Atomic int failed; /* code; its text in `error`, set before */
    struct det_err error;
};

/* ---- What an answer means -------------------------------------------------------------------- */

enum verdict { SETTLED, AGAIN, FAILED, SINGLY };

/* *tries: with an answer that tells of a fault. */
static enum verdict judge_answer(enum report_answer answer, int *tries)
{
    switch (answer) {
    case REPORT_SENT:
    case REPORT_DROPPED: return SETTLED;
    case REPORT_AGAIN: return AGAIN;
    case REPORT_FAULT: return ++*tries < TRIES_FAULT ? AGAIN : FAILED;
    case REPORT_REFUSED: break;
    }
    return FAILED;
}

/* The text of {"message": ..} or {"error": {"error": ..}}, else the beginning of the body. */
static int say_refusal(const char *method, const char *path, const struct loop_http_response *a,
                       struct det_err *err)
{
    JSON_OWN j = json_parse(buf_str(&a->body), a->body.len, NULL);
    const char *text = json_str(j, "message", NULL);
    text = text ? text : json_str(json_obj(j, "error"), "error", NULL);
    text = text ? text : buf_str(&a->body);
    int code = a->status == 409   ? DET_ESTALE
               : a->status == 404 ? DET_ENOENT
               : a->status == 401 ? DET_EAUTH
               : a->status == 403 ? DET_EPERM
               : a->status >= 500 ? DET_EUNAVAIL
                                  : DET_EINVAL;
    return det_fail(err, code, "%s %s: the master answered %d: %.400s", method, path, a->status,
                    text);
}

/* ---- The sending thread ---------------------------------------------------------------------- */

static void pause_ms(struct reporter *r, int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (ms % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&r->lock);
    while (!r->ending && pthread_cond_timedwait(&r->changed, &r->lock, &t) != ETIMEDOUT)
        ; /* new reports do not shorten the pause */
    pthread_mutex_unlock(&r->lock);
}

static void set_failed(struct reporter *r, int code, const struct det_err *e)
{
    pthread_mutex_lock(&r->lock);
    r->error = *e;
    r->error.code = code;
    atomic_store(&r->failed, code);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* One try of one record. */
static enum verdict send_one(struct reporter *r, const struct spool_record *rec, int *tries)
{
    struct det_err e = {0};
    struct loop_http_response a = {0};
    struct loop_http_request q = {.method = rec->method,
                                  .path = rec->path,
                                  .seq = rec->seq,
                                  .body = *rec->body ? rec->body : NULL,
                                  .timeout_ms = CALL_MS};
    int rc = r->http.call(r->http.self, &q, &a, &e);
    enum report_kind kind = report_kind(rec->method, rec->path);
    enum verdict v = judge_answer(report_answer(kind, rc < 0 ? 0 : a.status), tries);
    if (v == FAILED)
        set_failed(r, say_refusal(rec->method, rec->path, &a, &e), &e);
    buf_finish(&a.body);
    return v;
}

static bool forget_sent(struct reporter *r)
{
    struct det_err e = {0};
    int rc = spool_sent(r->spool, &e);
    if (rc < 0)
        set_failed(r, rc, &e);
    return rc == 0;
}

/* ---- Several reports at once ----------------------------------------------------------------- */

/* What came before all that was refused is with the master: it is not left to whoever sends the
 * rest. */
static void forget_before(struct reporter *r, const struct bundle *b, size_t refused)
{
    struct spool_record rec;
    for (size_t i = 0; i < b->record[refused]; i++)
        if (spool_next(r->spool, &rec, NULL) < 0 || spool_sent(r->spool, NULL) < 0)
            return;
}

/* What one answer says of those that were not kept. */
struct refusals {
    bool has_fault, has_passing; /* passing: it may be taken yet */
    size_t lowest;               /* place in the bundle */
    const json_t *worst;         /* the first that the master will never take; NULL: none */
};

/* Where the answer makes no sense, nothing before it is known to be kept. */
static size_t place_of(const struct bundle *b, const json_t *x)
{
    int64_t place = json_int(x, "index", -1);
    return place >= 0 && (size_t)place < b->n ? (size_t)place : 0;
}

/* allow_fault: as what may be taken yet. */
static struct refusals read_refusals(const struct bundle *b, const json_t *list, bool allow_fault)
{
    struct refusals f = {.lowest = b->n};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *x = json_array_get(list, i);
        int status = (int)json_int(x, "status", 500);
        enum report_answer answer = report_answer(REPORT_METRICS, status);
        f.has_fault |= answer == REPORT_FAULT;
        if (answer == REPORT_SENT)
            continue;
        f.lowest = place_of(b, x) < f.lowest ? place_of(b, x) : f.lowest;
        if (answer == REPORT_AGAIN || (answer == REPORT_FAULT && allow_fault))
            f.has_passing = true;
        else if (!f.worst || place_of(b, x) < place_of(b, f.worst))
            f.worst = x;
    }
    return f;
}

/* Ends reporting, as the refused one would have by itself. */
static void fail_refused(struct reporter *r, const struct bundle *b, const struct refusals *f)
{
    struct det_err e = {0};
    struct loop_http_response one = {.status = (int)json_int(f->worst, "status", 500)};
    forget_before(r, b, f->lowest);
    json_write(&one.body, f->worst);
    set_failed(r, say_refusal("POST", b->path, &one, &e), &e);
    buf_finish(&one.body);
}

/* The first that the master will never take decides, else the bundle goes again while one may be
 * taken yet: the others do not mind. */
static enum verdict judge_each(struct reporter *r, const struct bundle *b,
                               const struct loop_http_response *a, int *tries)
{
    JSON_OWN j = json_parse(buf_str(&a->body), a->body.len, NULL);
    const json_t *list = json_arr(j, "refused");
    struct refusals f = read_refusals(b, list, true);
    if (f.has_fault && ++*tries >= TRIES_FAULT)
        f = read_refusals(b, list, false);
    if (!f.worst)
        return f.has_passing ? AGAIN : SETTLED;
    fail_refused(r, b, &f);
    return FAILED;
}

/* A master that does not know the route gets them one by one for ever; where it would not take
 * this bundle, what is in it. */
static enum verdict judge_bundle(struct reporter *r, const struct bundle *b, int rc,
                                 const struct loop_http_response *a, int *tries)
{
    struct det_err e = {0};
    enum report_answer answer = report_answer(REPORT_METRICS, rc < 0 ? 0 : a->status);
    if (answer == REPORT_SENT)
        return judge_each(r, b, a, tries);
    if (judge_answer(answer, tries) == AGAIN)
        return AGAIN;
    if (answer == REPORT_FAULT)
        return SINGLY;
    r->goes_singly = a->status == 404 || a->status == 405;
    if (a->status != 409 && a->status != 401 && a->status != 403)
        return SINGLY;
    set_failed(r, say_refusal("POST", b->path, a, &e), &e);
    return FAILED;
}

/* One try of all of them. */
static enum verdict send_bundle(struct reporter *r, const struct bundle *b, int *tries)
{
    struct det_err e = {0};
    struct loop_http_response a = {0};
    struct loop_http_request q = {.method = "POST",
                                  .path = b->path,
                                  .seq = b->seq,
                                  .body = buf_str(&b->body),
                                  .timeout_ms = CALL_MS};
    int rc = r->http.call(r->http.self, &q, &a, &e);
    enum verdict v = judge_bundle(r, b, rc, &a, tries);
    buf_finish(&a.body);
    return v;
}

/* ---- Until it is settled --------------------------------------------------------------------- */

/* Sends a record, or a bundle, until it is settled. FAILED: the thread must end. */
static enum verdict send_until_settled(struct reporter *r, const struct spool_record *rec,
                                       const struct bundle *b)
{
    int pause = PAUSE_MIN_MS, tries = 0;
    for (;;) {
        enum verdict v = b ? send_bundle(r, b, &tries) : send_one(r, rec, &tries);
        if (v != AGAIN)
            return v;
        pthread_mutex_lock(&r->lock);
        bool ending = r->ending;
        pthread_mutex_unlock(&r->lock);
        if (ending)
            return FAILED;
        pause_ms(r, pause);
        pause = pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause * 2;
    }
}

static bool settle_bundle(struct reporter *r, const struct bundle *b)
{
    enum verdict v = send_until_settled(r, NULL, b);
    if (v == SINGLY)
        r->singly_n = b->taken;
    if (v == SETTLED && b->progress) {
        struct spool_record rec = {
            .seq = b->seq, .method = "POST", .path = b->progress_path, .body = b->progress};
        v = send_until_settled(r, &rec, NULL);
    }
    return v == SINGLY || (v != FAILED && forget_sent(r));
}

static bool settle_record(struct reporter *r, const struct spool_record *rec)
{
    if (send_until_settled(r, rec, NULL) == FAILED)
        return false;
    if (report_kind(rec->method, rec->path) == REPORT_STATE) {
        free(r->state);
        r->state = det_strdup(rec->body);
    }
    return forget_sent(r);
}

/* Whether the next record goes by itself, whatever waits behind it. */
static bool is_single(struct reporter *r)
{
    if (r->singly_n == 0)
        return r->goes_singly;
    r->singly_n--;
    return true;
}

/* False when the thread must end. */
static bool settle_next(struct reporter *r, struct spool_record *rec)
{
    det_cleanup(bundle_finish) struct bundle b = {0};
    struct det_err e = {0};
    if (!is_single(r) && bundle_gather(&b, r->spool, rec, r->state))
        return settle_bundle(r, &b);
    int rc = b.taken ? spool_next(r->spool, rec, &e) : 0; /* gathering has read on */
    if (rc < 0)
        set_failed(r, rc, &e);
    return rc == 0 && settle_record(r, rec);
}

/* Waits for a record. False when the end came and nothing is left. */
static bool wait_record(struct reporter *r, struct spool_record *rec, struct det_err *e)
{
    pthread_mutex_lock(&r->lock);
    int rc;
    while ((rc = spool_next(r->spool, rec, e)) == DET_ENOENT && !r->ending)
        pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (rc < 0 && rc != DET_ENOENT)
        set_failed(r, rc, e);
    return rc == 0;
}

static void *send_records(void *arg)
{
    struct reporter *r = arg;
    struct spool_record rec;
    struct det_err e = {0};
    while (wait_record(r, &rec, &e) && settle_next(r, &rec)) {
        pthread_mutex_lock(&r->lock);
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
    pthread_mutex_lock(&r->lock);
    r->given_up = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void init_sync(struct reporter *r)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &a);
    pthread_condattr_destroy(&a);
    pthread_mutex_init(&r->lock, NULL);
}

static void reporter_free(struct reporter *r)
{
    spool_close(r->spool);
    free(r->state);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int reporter_open(const struct reporter_options *o, struct reporter **ret, struct det_err *err)
{
    struct reporter *r = det_zalloc(sizeof *r);
    r->http = o->http;
    r->run_id = o->run_id;
    r->opener = pthread_self();
    init_sync(r);
    int rc = spool_open(o->spool_path, &r->spool, err);
    if (rc == 0 && o->spool_bytes_max)
        spool_limit(r->spool, o->spool_bytes_max);
    if (rc == 0 && (errno = thread_start(&r->thread, NULL, send_records, r)) != 0)
        rc = det_fail_errno(err, DET_EIO, errno, "reporter thread");
    if (rc < 0) {
        reporter_free(r);
        return rc;
    }
    *ret = r;
    return 0;
}

/* Until all is sent, the thread ended or the deadline passed; the lock is held. */
static void wait_idle(struct reporter *r, int64_t deadline_ms)
{
    while (spool_pending(r->spool) && !r->given_up && clk_mono_ms() < deadline_ms) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_sec += 1; /* wakes once a second to show that this rank lives */
        pthread_cond_timedwait(&r->changed, &r->lock, &t);
    }
}

void reporter_close(struct reporter *r, int linger_ms)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    wait_idle(r, clk_mono_ms() + linger_ms);
    bool in_flight = spool_pending(r->spool) && !r->given_up;
    r->ending = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (in_flight && r->http.cancel) /* a silent master would hold us for CALL_MS */
        r->http.cancel(r->http.self);
    pthread_join(r->thread, NULL);
    reporter_free(r);
}

/* ---- For the loop ---------------------------------------------------------------------------- */

int reporter_failed(struct reporter *r, struct det_err *err)
{
    int code = atomic_load_explicit(&r->failed, memory_order_relaxed);
    if (code == 0)
        return 0;
    pthread_mutex_lock(&r->lock);
    code = r->error.code;
    if (err)
        *err = r->error;
    pthread_mutex_unlock(&r->lock);
    return code;
}

/* The lock is held. A master that is away for long fills no disk, and a rank that waits for it does
 * not hang. */
static void wait_room(struct reporter *r)
{
    while (spool_is_full(r->spool) && !r->given_up && !r->ending) {
        wait_idle(r, clk_mono_ms() + 500);
        if (pthread_equal(r->opener, pthread_self()))
            loop_alive_again();
    }
}

int reporter_post_text(struct reporter *r, const char *path, const char *text, struct det_err *err)
{
    char seq[64];
    pthread_mutex_lock(&r->lock);
    wait_room(r);
    pthread_mutex_unlock(&r->lock);
    int rc = reporter_failed(r, err);
    if (rc < 0)
        return rc;
    struct spool_record rec = {.seq = seq, .method = "POST", .path = path, .body = text};
    pthread_mutex_lock(&r->lock);
    snprintf(seq, sizeof seq, "%lld.%lld", (long long)r->run_id, (long long)++r->seq);
    rc = spool_append(r->spool, &rec, err);
    pthread_mutex_unlock(&r->lock); /* first: who wakes wants the lock */
    pthread_cond_broadcast(&r->changed);
    return rc;
}

int reporter_post(struct reporter *r, const char *path, json_t *body, struct det_err *err)
{
    JSON_OWN own = body;
    det_cleanup(freep) char *text = own ? json_text(own) : NULL;
    return reporter_post_text(r, path, text, err);
}

int reporter_flush(struct reporter *r, struct det_err *err)
{
    pthread_mutex_lock(&r->lock);
    while (spool_pending(r->spool) && !r->given_up) {
        wait_idle(r, clk_mono_ms() + 500);
        loop_alive_again();
    }
    bool left = spool_pending(r->spool) > 0;
    pthread_mutex_unlock(&r->lock);
    int rc = reporter_failed(r, err);
    if (rc == 0 && left)
        return det_fail(err, DET_EIO, "reports could not be sent");
    return rc;
}

int reporter_try(struct reporter *r, const char *path, int timeout_ms, int *ret_status,
                 struct buf *out, struct det_err *err)
{
    struct loop_http_request q = {.method = "GET", .path = path, .timeout_ms = timeout_ms};
    struct loop_http_response a = {0};
    int rc = r->http.call(r->http.self, &q, &a, err);
    *ret_status = a.status;
    if (rc == 0)
        buf_add(out, buf_str(&a.body), a.body.len);
    buf_finish(&a.body);
    return rc;
}

int reporter_call(struct reporter *r, const char *method, const char *path, const char *body,
                  int *ret_status, struct buf *out, struct det_err *err)
{
    struct loop_http_request q = {
        .method = method, .path = path, .body = body, .timeout_ms = CALL_MS};
    for (int pause = PAUSE_MIN_MS;; pause = pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause * 2) {
        struct loop_http_response a = {0};
        int rc = reporter_failed(r, err);
        if (rc < 0)
            return rc;
        rc = r->http.call(r->http.self, &q, &a, err);
        enum report_answer answer = report_answer(REPORT_OTHER, rc < 0 ? 0 : a.status);
        *ret_status = a.status;
        if (answer == REPORT_SENT && out)
            buf_add(out, buf_str(&a.body), a.body.len);
        if (answer == REPORT_FAULT || answer == REPORT_REFUSED)
            rc = say_refusal(method, path, &a, err);
        buf_finish(&a.body);
        if (answer != REPORT_AGAIN)
            return rc;
        loop_alive_again();
        pause_ms(r, pause);
    }
}
