#include "loop_profile.h"

#include "clk.h"
#include "json.h"
#include "log.h"
#include "reporter.h"
#include "span.h"
#include "thread.h"
#include "vec.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SAMPLE_MS   100
#define FLUSH_MS    10000
#define LONGEST_MS  300000
#define POST_POINTS 10000 /* of one series in one report */

enum kind { SYSTEM, TIMING, MISC };
static const char *const kinds[] = {"PROFILER_METRIC_TYPE_SYSTEM", "PROFILER_METRIC_TYPE_TIMING",
                                    "PROFILER_METRIC_TYPE_MISC"};

struct point {
    double value;
    int64_t batch, wall_us;
};

struct series {
    char *name;
    enum kind kind;
    VEC(struct point) points;
};

struct loop_profile {
    struct span_listener listener; /* must stay the first member */
    struct loop *l;
    struct reporter *reporter, *own; /* own: of a rank that has no other */
    int64_t begin, end;              /* batches; end INT64_MAX: open */
    int64_t started_ms, flushed_ms;  /* started 0: not yet */
    bool timings, over;
    pthread_t thread;
    pthread_mutex_t lock; /* the rest is behind it */
    pthread_cond_t stop_changed;
    bool stop;
    int64_t batch;
    VEC(struct series) series;
};

/* ---- gathering ---- */

static void add_locked(struct loop_profile *p, enum kind kind, const char *name, double value)
{
    size_t i = 0;
    while (i < p->series.n && strcmp(p->series.v[i].name, name) != 0)
        i++;
    if (i == p->series.n)
        vec_push(&p->series, (struct series){.name = det_strdup(name), .kind = kind});
    vec_push(&p->series.v[i].points, (struct point){value, p->batch, clk_wall_us()});
}

static void add_value(struct loop_profile *p, enum kind kind, const char *name, double value)
{
    pthread_mutex_lock(&p->lock);
    add_locked(p, kind, name, value);
    pthread_mutex_unlock(&p->lock);
}

static void on_span(struct span_listener *self, const struct span *s)
{
    struct loop_profile *p = (struct loop_profile *)self;
    double seconds = (double)(s->end_ns - s->start_ns) / 1e9;
    if (s->cat == SPAN_LOOP)
        add_value(p, TIMING, s->name, seconds);
}

/* In percent. The kernel's count of waiting for disks goes back at times, and all with it. */
static double count_percent(double part, double of)
{
    double v = of > 0 ? 100 * part / of : 0;
    return v < 0 ? 0 : v > 100 ? 100 : v;
}

static void add_load(struct loop_profile *p, const struct host_load *a, const struct host_load *b,
                     double seconds)
{
    double ticks = b->cpu_all - a->cpu_all;
    const struct {
        const char *name;
        double value;
    } all[] = {
        {"cpu_util_simple", count_percent(b->cpu_busy - a->cpu_busy, ticks)},
        {"free_memory", b->free_bytes / 1e9},
        {"net_throughput_sent", 8 * (b->net_sent - a->net_sent) / seconds / 1e9},
        {"net_throughput_recv", 8 * (b->net_received - a->net_received) / seconds / 1e9},
        {"disk_iops", (b->disk_ops - a->disk_ops) / seconds},
        {"disk_throughput_read", (b->disk_read - a->disk_read) / seconds},
        {"disk_throughput_write", (b->disk_written - a->disk_written) / seconds},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(all); i++)
        add_locked(p, SYSTEM, all[i].name, all[i].value);
}

static void *sample_host(void *arg)
{
    struct loop_profile *p = arg;
    struct host_load before, now;
    int64_t before_us = clk_mono_us();
    host_load_read(&before);
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += SAMPLE_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        while (!p->stop && pthread_cond_timedwait(&p->stop_changed, &p->lock, &until) != ETIMEDOUT)
            ;
        pthread_mutex_unlock(&p->lock);
        int64_t us = clk_mono_us() - before_us;
        host_load_read(&now);
        pthread_mutex_lock(&p->lock);
        add_load(p, &before, &now, us > 0 ? (double)us / 1e6 : 1);
        before = now;
        before_us += us;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- sending ---- */

static json_t *body_of(const struct loop_profile *p, const struct series *s, size_t from, size_t n)
{
    const char *agent = getenv("DET_AGENT_ID");
    json_t *values = json_array(), *batches = json_array(), *times = json_array();
    for (size_t i = from; i < from + n; i++) {
        char when[CLK_RFC3339_MAX];
        clk_format(s->points.v[i].wall_us, when);
        json_array_append_new(values, json_double(s->points.v[i].value));
        json_array_append_new(batches, json_integer(s->points.v[i].batch));
        json_array_append_new(times, json_string(when));
    }
    return json_make("{s:[{s:o, s:o, s:o, s:{s:I, s:s, s:s, s:s, s:s}}]}", "batches", "values",
                     values, "batches", batches, "timestamps", times, "labels", "trialId",
                     (json_int_t)p->l->c->trial_id, "name", s->name, "agentId", agent ? agent : "",
                     "gpuUuid", "", "metricType", kinds[s->kind]);
}

static int flush_series(struct loop_profile *p, struct series *s, struct det_err *err)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < s->points.n; at += POST_POINTS) {
        size_t n = s->points.n - at < POST_POINTS ? s->points.n - at : POST_POINTS;
        rc = reporter_post(p->reporter, "/api/v1/trials/profiler/metrics", body_of(p, s, at, n),
                           err);
    }
    s->points.n = 0;
    return rc;
}

static int flush_all(struct loop_profile *p, struct det_err *err)
{
    int rc = 0;
    p->flushed_ms = clk_mono_ms();
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; rc == 0 && i < p->series.n; i++)
        rc = flush_series(p, &p->series.v[i], err);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

/* ---- the window ---- */

static int begin_profile(struct loop_profile *p, struct det_err *err)
{
    p->started_ms = p->flushed_ms = clk_mono_ms();
    int rc = thread_start(&p->thread, NULL, sample_host, p);
    if (rc != 0) {
        p->over = true;
        p->started_ms = 0;
        return det_fail_errno(err, DET_ENOMEM, rc, "profiling: start a thread");
    }
    if (p->timings)
        span_listen(&p->listener);
    return 0;
}

static int end_profile(struct loop_profile *p, struct det_err *err)
{
    p->over = true;
    if (!p->started_ms)
        return 0;
    p->started_ms = 0;
    span_unlisten(&p->listener);
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->stop_changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    int rc = flush_all(p, err);
    return rc == 0 && p->own ? reporter_flush(p->own, err) : rc;
}

int loop_profile_batch(struct loop *l, int64_t b, struct det_err *err)
{
    struct loop_profile *p = l->profile;
    if (!p || p->over)
        return 0;
    pthread_mutex_lock(&p->lock);
    p->batch = b;
    pthread_mutex_unlock(&p->lock);
    if (b > p->end || (p->started_ms && clk_mono_ms() - p->started_ms > LONGEST_MS))
        return end_profile(p, err);
    if (!p->started_ms)
        return b >= p->begin ? begin_profile(p, err) : 0;
    return clk_mono_ms() - p->flushed_ms > FLUSH_MS ? flush_all(p, err) : 0;
}

void loop_profile_trained(struct loop *l, int64_t records, int64_t ns)
{
    struct loop_profile *p = l->profile;
    if (p && p->started_ms && p->timings && ns > 0)
        add_value(p, MISC, "samples_per_second", (double)(records * l->size) * 1e9 / (double)ns);
}

/* ---- life ---- */

/* The first answer of the stream tells: {"result": {"labels": [...]}}. */
static bool measured_before(struct reporter *r, int64_t trial)
{
    int status = 0;
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/trials/%lld/profiler/available_series", (long long)trial);
    return reporter_try(r, path, FLUSH_MS, &status, &out, NULL) == 0 && status == 200 &&
           strstr(buf_str(&out), "trialId") != NULL;
}

static void init_locks(struct loop_profile *p)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->stop_changed, &attr);
    pthread_condattr_destroy(&attr);
}

int loop_profile_open(struct loop *l, struct det_err *err)
{
    const json_t *config = json_obj(l->c->experiment_config, "profiling");
    if (!l->c->managed || l->c->ranks.local_rank != 0 || !json_flag(config, "enabled", false))
        return 0;
    struct loop_profile *p = det_zalloc(sizeof *p);
    struct reporter_options o = {.http = l->c->http, .run_id = l->c->run_id};
    p->listener = (struct span_listener){.on_span = on_span,
                                         .waits = json_flag(config, "sync_timings", true)};
    p->l = l;
    p->timings = l->chief;
    p->begin = json_int(config, "begin_on_batch", 0);
    p->end = json_int(config, "end_after_batch", INT64_MAX);
    init_locks(p);
    l->profile = p;
    int rc = l->reporter ? 0 : reporter_open(&o, &p->own, err);
    p->reporter = l->reporter ? l->reporter : p->own;
    if (rc == 0)
        p->over = measured_before(p->reporter, l->c->trial_id);
    return rc;
}

void loop_profile_close(struct loop *l)
{
    struct loop_profile *p = det_take(l->profile);
    struct det_err err;
    if (!p)
        return;
    if (end_profile(p, &err) < 0)
        log_warning("profiling: %s", err.text);
    reporter_close(p->own, 0);
    for (size_t i = 0; i < p->series.n; i++) {
        free(p->series.v[i].name);
        vec_free(&p->series.v[i].points);
    }
    vec_free(&p->series);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->stop_changed);
    free(p);
}
