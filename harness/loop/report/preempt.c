#include "preempt.h"

#include "clk.h"
#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define POLL_S  60
#define RETRY_S 1
#define STOP_S  2

struct preempt {
    struct loop_http http;
    char *allocation_id;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool asked, wanted, stopping, ended;
    int users; /* the loop and the thread; the last one frees */
    pthread_t thread;
};

static void unref_watch(struct preempt *p)
{
    pthread_mutex_lock(&p->lock);
    int left = --p->users;
    pthread_mutex_unlock(&p->lock);
    if (left)
        return;
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->allocation_id);
    free(p);
}

/* 1 wanted, 0 not, negative: no answer. */
static int ask_master(struct preempt *p, int wait_s)
{
    det_cleanup(freep) char *path = det_asprintf(
        "/api/v1/allocations/%s/signals/preemption?timeout_seconds=%d", p->allocation_id, wait_s);
    struct loop_http_request q = {
        .method = "GET", .path = path, .timeout_ms = (wait_s + 10) * 1000};
    struct loop_http_response a = {0};
    int rc = p->http.call(p->http.self, &q, &a, NULL);
    if (rc == 0 && a.status == 200) {
        JSON_OWN j = json_parse(buf_str(&a.body), a.body.len, NULL);
        rc = j ? json_flag(j, "preempt", false) : DET_EINVAL;
    } else {
        rc = DET_EUNAVAIL;
    }
    buf_finish(&a.body);
    return rc;
}

/* Publishes an answer; true while the watch goes on. After a failure, or an answer that did not
 * wait as it was asked to, it rests, but not past the end. */
static bool publish_answer(struct preempt *p, int answer, bool rest)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += RETRY_S;
    pthread_mutex_lock(&p->lock);
    p->asked = true;
    p->wanted = p->wanted || answer == 1;
    pthread_cond_broadcast(&p->changed);
    while ((answer < 0 || rest) && !p->wanted && !p->stopping &&
           pthread_cond_timedwait(&p->changed, &p->lock, &until) != ETIMEDOUT)
        ;
    bool on = !p->stopping && !p->wanted;
    pthread_mutex_unlock(&p->lock);
    return on;
}

static void *run_watch(void *arg)
{
    struct preempt *p = arg;
    int wait_s = 0;
    for (;;) {
        int64_t start_ms = clk_mono_ms();
        int answer = ask_master(p, wait_s);
        if (!publish_answer(p, answer, wait_s && clk_mono_ms() - start_ms < 1000 * RETRY_S))
            break;
        wait_s = POLL_S;
    }
    pthread_mutex_lock(&p->lock);
    p->ended = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    unref_watch(p);
    return NULL;
}

int preempt_start(const struct loop_http *http, const char *allocation_id, struct preempt **ret,
                  struct det_err *err)
{
    struct preempt *p = det_zalloc(sizeof *p);
    pthread_condattr_t a;
    p->http = *http;
    p->allocation_id = det_strdup(allocation_id);
    p->users = 2;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &a);
    pthread_condattr_destroy(&a);
    pthread_mutex_init(&p->lock, NULL);
    int rc = thread_start(&p->thread, NULL, run_watch, p);
    if (rc) {
        p->users = 1;
        unref_watch(p);
        return det_fail_errno(err, DET_EIO, rc, "preemption thread");
    }
    *ret = p;
    return 0;
}

bool preempt_wanted(struct preempt *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->asked)
        pthread_cond_wait(&p->changed, &p->lock);
    bool wanted = p->wanted;
    pthread_mutex_unlock(&p->lock);
    return wanted;
}

void preempt_stop(struct preempt *p)
{
    struct timespec until;
    if (!p)
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_S;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->http.cancel)
        p->http.cancel(p->http.self);
    pthread_mutex_lock(&p->lock);
    while (p->http.cancel && !p->ended &&
           pthread_cond_timedwait(&p->changed, &p->lock, &until) != ETIMEDOUT)
        ;
    bool ended = p->ended;
    pthread_mutex_unlock(&p->lock);
    if (ended) /* what libraries keep of a thread is then freed before the process ends */
        pthread_join(p->thread, NULL);
    else
        pthread_detach(p->thread);
    unref_watch(p);
}
