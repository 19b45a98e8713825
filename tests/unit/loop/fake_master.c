#include "fake_master.h"

#include "mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void fake_master_init(struct fake_master *m)
{
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    m->best = NAN;
    m->known_validation = m->stale_after = m->preempt_after = -1;
}

void fake_master_finish(struct fake_master *m)
{
    buf_finish(&m->calls);
    buf_finish(&m->last_validation);
    buf_finish(&m->bundles);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
}

static void note(struct fake_master *m, const char *text)
{
    buf_addf(&m->calls, "%s%s", m->calls.len ? " | " : "", text);
}

static int answer(struct loop_http_response *ret, int status, const char *body)
{
    ret->status = status;
    buf_add_str(&ret->body, body);
    return 0;
}

/* Long poll: until it is time, or the run ends. */
static int preemption(struct fake_master *m, bool wait, struct loop_http_response *ret,
                      struct det_err *err)
{
    while (wait && !m->canceled && (m->preempt_after < 0 || m->workloads < m->preempt_after))
        pthread_cond_wait(&m->changed, &m->lock);
    if (m->canceled)
        return det_fail(err, DET_ECANCELED, "canceled");
    bool yes = m->preempt_after >= 0 && m->workloads >= m->preempt_after;
    return answer(ret, 200, yes ? "{\"preempt\":true}" : "{\"preempt\":false}");
}

static int on_get(struct fake_master *m, const char *path, struct loop_http_response *ret)
{
    char text[200];
    if (strstr(path, "/searcher/operation")) {
        int64_t n = m->lengths[m->op];
        note(m, "GET operation");
        snprintf(text, sizeof text,
                 "{\"op\":{\"validateAfter\":{\"length\":\"%lld\"}},\"completed\":%s}",
                 (long long)n, n ? "false" : "true");
        return answer(ret, 200, text);
    }
    if (strstr(path, "/best_searcher_validation_metric")) {
        snprintf(text, sizeof text, "{\"metric\":%.17g}", m->best);
        return isnan(m->best) ? answer(ret, 404, "{}") : answer(ret, 200, text);
    }
    if (strstr(path, "/checkpoints"))
        return answer(ret, 200, m->checkpoints ? m->checkpoints : "{\"checkpoints\":[]}");
    note(m, "GET trial");
    if (m->known_validation < 0)
        return answer(ret, 200, "{\"trial\":{\"latestValidation\":null}}");
    snprintf(text, sizeof text, "{\"trial\":{\"latestValidation\":{\"totalBatches\":%lld}}}",
             (long long)m->known_validation);
    return answer(ret, 200, text);
}

static void on_metrics(struct fake_master *m, const json_t *body)
{
    char text[200];
    const char *group = json_str(body, "group", "?");
    const json_t *metrics = json_obj(body, "metrics");
    snprintf(text, sizeof text, "%s %lld", group,
             (long long)json_int(metrics, "stepsCompleted", -1));
    note(m, text);
    if (strcmp(group, "training") == 0) {
        m->workloads++;
        pthread_cond_broadcast(&m->changed);
        return;
    }
    buf_clear(&m->last_validation);
    json_write(&m->last_validation, body);
}

static int refusal_of(const struct fake_master *m, int64_t steps)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(m->refusals); i++)
        if (m->refusals[i].from && steps >= m->refusals[i].from && steps <= m->refusals[i].to)
            return m->refusals[i].status;
    return 0;
}

static void add_refused(struct buf *out, size_t place, int status)
{
    buf_addf(out, "%s{\"index\":%zu,\"status\":%d,\"message\":\"this one\"}", out->len ? "," : "",
             place, status);
}

/* Each of them, but for those that are to be refused. */
static int on_bundle(struct fake_master *m, const json_t *body, struct loop_http_response *ret,
                     struct det_err *err)
{
    const json_t *reports = json_arr(body, "reports");
    det_cleanup(buf_finish) struct buf refused = BUF_INIT;
    for (size_t i = 0; i < json_array_size(reports); i++) {
        const json_t *r = json_array_get(reports, i);
        int status = refusal_of(m, json_int(json_obj(r, "metrics"), "stepsCompleted", -1));
        if (status)
            add_refused(&refused, i, status);
        else
            on_metrics(m, r);
    }
    if (refused.len && m->refused_times > 0 && --m->refused_times == 0)
        memset(m->refusals, 0, sizeof m->refusals);
    if (m->lost_answers > 0 && m->lost_answers-- > 0)
        return det_fail(err, DET_EUNAVAIL, "connection reset");
    det_cleanup(freep) char *text = det_asprintf("{\"refused\":[%s]}", buf_str(&refused));
    return answer(ret, 200, text);
}

static int take_bundle(struct fake_master *m, const json_t *body, struct loop_http_response *ret,
                       struct det_err *err)
{
    int status = m->bundle_status;
    m->bundle_status = 0;
    buf_addf(&m->bundles, "%zu ", json_array_size(json_arr(body, "reports")));
    return status ? answer(ret, status, "{\"message\":\"not this bundle\"}")
                  : on_bundle(m, body, ret, err);
}

static void hold(struct fake_master *m)
{
    m->held++;
    pthread_cond_broadcast(&m->changed);
    while (m->holds && !m->canceled)
        pthread_cond_wait(&m->changed, &m->lock);
    m->held--;
}

void fake_master_wait_held(struct fake_master *m)
{
    pthread_mutex_lock(&m->lock);
    while (m->held == 0)
        pthread_cond_wait(&m->changed, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

void fake_master_let_go(struct fake_master *m)
{
    pthread_mutex_lock(&m->lock);
    m->holds = false;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void note_exit(struct fake_master *m, const json_t *body, char *text, size_t cap)
{
    if (!m->why[0])
        snprintf(m->why, sizeof m->why, "%s", json_str(body, "text", "?"));
    snprintf(text, cap, "%s", json_str(body, "reason", "?"));
}

static int on_post(struct fake_master *m, const struct loop_http_request *q,
                   struct loop_http_response *ret, struct det_err *err)
{
    JSON_OWN body = q->body ? json_parse(q->body, strlen(q->body), NULL) : NULL;
    char text[200] = "POST ?";
    bool is_bundle = strstr(q->path, "/metrics/batch") != NULL;
    if (is_bundle && !m->takes_bundles) {
        buf_add_str(&m->bundles, "? ");
        return answer(ret, 404, "{\"message\":\"not found\"}");
    }
    if (m->stale_after == 0)
        return answer(ret, 409, "{\"message\":\"run 1 is not the current run\"}");
    if (m->stale_after > 0)
        m->stale_after--;
    if (is_bundle)
        return take_bundle(m, body, ret, err);
    if (strstr(q->path, "/metrics")) {
        on_metrics(m, body);
        return answer(ret, 200, "{}");
    }
    if (strstr(q->path, "runner/metadata")) {
        snprintf(text, sizeof text, "%s", json_str(body, "state", "?"));
        m->epoch_length = json_int(body, "epochLength", -1);
    } else if (strstr(q->path, "/progress"))
        snprintf(text, sizeof text, "progress %g", json_number_value(body));
    else if (strstr(q->path, "completed_operation"))
        snprintf(text, sizeof text, "completed %lld=%g",
                 (long long)json_int(json_obj(body, "op"), "length", -1),
                 json_num(body, "searcherMetric", NAN));
    else if (strstr(q->path, "early_exit"))
        note_exit(m, body, text, sizeof text);
    else if (strstr(q->path, "/checkpoints"))
        snprintf(text, sizeof text, "checkpoint %lld",
                 (long long)json_int(json_obj(body, "metadata"), "steps_completed", -1));
    else if (strstr(q->path, "ack_preemption"))
        snprintf(text, sizeof text, "ack");
    if (strncmp(text, "completed", 9) == 0)
        m->op++;
    note(m, text);
    return answer(ret, 200, "{}");
}

static int hang(struct fake_master *m, struct det_err *err)
{
    while (!m->canceled)
        pthread_cond_wait(&m->changed, &m->lock);
    return det_fail(err, DET_ECANCELED, "canceled");
}

static int call(void *self, const struct loop_http_request *q, struct loop_http_response *ret,
                struct det_err *err)
{
    struct fake_master *m = self;
    int rc;
    pthread_mutex_lock(&m->lock);
    if (m->holds && strcmp(q->method, "POST") == 0)
        hold(m);
    if (strstr(q->path, "signals/preemption"))
        rc = preemption(m, !strstr(q->path, "timeout_seconds=0"), ret, err);
    else if (m->away < 0 && ++m->away <= 0)
        rc = det_fail(err, DET_EUNAVAIL, "connection refused");
    else if (m->away > 0 && m->away-- > 0)
        rc = answer(ret, 503, "{}");
    else if (strcmp(q->method, "GET") == 0)
        rc = on_get(m, q->path, ret);
    else
        rc = m->hangs ? hang(m, err) : on_post(m, q, ret, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static void cancel(void *self)
{
    struct fake_master *m = self;
    pthread_mutex_lock(&m->lock);
    m->canceled = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

struct loop_http fake_master_http(struct fake_master *m)
{
    return (struct loop_http){.self = m, .call = call, .cancel = cancel};
}
