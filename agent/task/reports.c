#include "reports.h"

#include "clk.h"
#include "log.h"
#include "spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RETRY_MS 100

struct reports {
    struct client_uv *http;
    const struct taskspec *spec;
    struct spool *spool; /* of the rank at hand, or NULL */
    int local;           /* next rank */
    int64_t deadline_ms;
    struct client_uv_call *call;
    uv_timer_t timer;
    size_t sent, left;
    void (*done)(void *arg, size_t sent, size_t left);
    void *arg;
};

static void send_next(struct reports *r);

static void on_closed(uv_handle_t *h)
{
    free(container_of((uv_timer_t *)h, struct reports, timer));
}

static void finish(struct reports *r)
{
    if (r->spool)
        r->left += spool_pending(r->spool) > 0;
    spool_close(r->spool);
    r->done(r->arg, r->sent, r->left);
    uv_close((uv_handle_t *)&r->timer, on_closed);
}

static void on_timer(uv_timer_t *t)
{
    send_next(container_of(t, struct reports, timer));
}

static void on_answer(void *arg, int rc, const struct client_resp *resp, const struct det_err *err)
{
    struct reports *r = arg;
    r->call = NULL;
    bool again = rc == DET_EUNAVAIL || rc == DET_ETIMEOUT || rc == DET_EIO;
    if (again && clk_mono_ms() + RETRY_MS < r->deadline_ms) {
        uv_timer_start(&r->timer, on_timer, RETRY_MS, 0);
        return;
    }
    if (again) {
        finish(r);
        return;
    }
    if (rc < 0)
        log_warning("a report that a rank left is refused: %s", err->text);
    r->sent++;
    if (spool_sent(r->spool, NULL) < 0)
        finish(r);
    else
        send_next(r);
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

static void send_next(struct reports *r)
{
    struct spool_record rec;
    while (!r->spool || spool_next(r->spool, &rec, NULL) < 0) {
        spool_close(r->spool);
        r->spool = NULL;
        if (r->local >= taskspec_local_size(r->spec)) {
            finish(r);
            return;
        }
        open_next(r);
    }
    det_cleanup(freep) char *seq = det_asprintf("%s: %s", SPOOL_HEADER, rec.seq);
    const char *const headers[] = {rec.seq[0] ? seq : NULL, NULL};
    int64_t left_ms = r->deadline_ms - clk_mono_ms();
    struct client_req req = {.method = rec.method,
                             .path = rec.path,
                             .headers = headers,
                             .body = rec.body[0] ? rec.body : NULL,
                             .timeout_ms = left_ms < 100 ? 100 : left_ms};
    r->call = client_uv_start(r->http, &req, on_answer, r);
}

struct reports *reports_start(uv_loop_t *loop, struct client_uv *http, const struct taskspec *spec,
                              int64_t budget_ms, void (*done)(void *arg, size_t sent, size_t left),
                              void *arg)
{
    struct reports *r = det_zalloc(sizeof *r);
    *r = (struct reports){.http = http,
                          .spec = spec,
                          .done = done,
                          .arg = arg,
                          .deadline_ms = clk_mono_ms() + budget_ms};
    uv_timer_init(loop, &r->timer);
    uv_timer_start(&r->timer, on_timer, 0, 0);
    return r;
}
