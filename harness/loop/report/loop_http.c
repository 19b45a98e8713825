/* loop_http over client/client.h. A client serves one thread, so there is a small pool of them. */
#include "client.h"
#include "loop_env.h"
#include "spool.h"
#include "vec.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct pool {
    pthread_mutex_t lock;
    struct client_options options; /* its strings are the environment's */
    VEC(struct client *) idle;
    VEC(struct client *) busy;
    bool canceled;
};

static int take_client(struct pool *p, struct client **ret, struct det_err *err)
{
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    if (p->canceled)
        rc = det_fail(err, DET_ECANCELED, "the run is over");
    else if (p->idle.n)
        *ret = p->idle.v[--p->idle.n];
    else
        rc = client_create(&p->options, ret, err);
    if (rc == 0)
        vec_push(&p->busy, *ret);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static void give_back(struct pool *p, struct client *c)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->busy.n; i++)
        if (p->busy.v[i] == c) {
            vec_remove(&p->busy, i);
            break;
        }
    if (p->canceled) /* and c with it, for good */
        client_destroy(c);
    else
        vec_push(&p->idle, c);
    pthread_mutex_unlock(&p->lock);
}

static int call_master(void *self, const struct loop_http_request *q,
                       struct loop_http_response *ret, struct det_err *err)
{
    struct pool *p = self;
    struct client *c = NULL;
    char seq[96];
    snprintf(seq, sizeof seq, "%s: %s", SPOOL_HEADER, q->seq ? q->seq : "");
    const char *headers[] = {q->seq ? seq : NULL, NULL};
    struct client_req req = {.method = q->method,
                             .path = q->path,
                             .headers = headers,
                             .body = q->body,
                             .timeout_ms = q->timeout_ms,
                             .once = true};
    struct client_resp resp = CLIENT_RESP_INIT;
    int rc = take_client(p, &c, err);
    if (rc < 0)
        return rc;
    rc = client_call(c, &req, &resp, err);
    give_back(p, c);
    ret->status = resp.status;
    ret->body = resp.body; /* taken */
    resp.body = (struct buf)BUF_INIT;
    client_resp_finish(&resp);
    return ret->status ? 0 : rc; /* an answer is an answer, whatever it says */
}

static void cancel_calls(void *self)
{
    struct pool *p = self;
    pthread_mutex_lock(&p->lock);
    p->canceled = true;
    for (size_t i = 0; i < p->busy.n; i++)
        client_cancel(p->busy.v[i]);
    pthread_mutex_unlock(&p->lock);
}

int loop_http_from_env(struct loop_http *ret, struct det_err *err)
{
    static struct pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const char *url = client_env_url(), *token = getenv("DET_SESSION_TOKEN");
    if (!url || !*url || !token || !*token)
        return det_fail(err, DET_EINVAL, "the environment has no %s",
                        url && *url ? "DET_SESSION_TOKEN" : "DET_MASTER");
    pthread_mutex_lock(&pool.lock);
    pool.options = (struct client_options){.url = url,
                                           .token_kind = CLIENT_TOKEN_ALLOCATION,
                                           .token = token,
                                           .ca_file = getenv("DET_MASTER_CERT_FILE"),
                                           .cert_name = getenv("DET_MASTER_CERT_NAME")};
    pool.canceled = false; /* that was an earlier run of this process */
    pthread_mutex_unlock(&pool.lock);
    *ret = (struct loop_http){.self = &pool, .call = call_master, .cancel = cancel_calls};
    return 0;
}
