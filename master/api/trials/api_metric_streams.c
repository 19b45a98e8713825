/* Streams that pages of an experiment follow: its metrics' names, steps, values. Every so often
 * what is new is sent, until the experiments have ended. */
#include "api_handlers.h"
#include "api_points.h"
#include "api_snapshot.h"
#include "api_util.h"
#include "buf.h"
#include "db_exp_read.h"
#include "db_metric_news.h"
#include "series.h"
#include "shared_buf.h"
#include "shell.h"
#include <inttypes.h>
#include <string.h>

enum { PERIOD_S = 30, MARGIN_MAX = 100 };
enum { TRIALS = 25, TRIALS_MAX = 1000, POINTS = 1000, POINTS_MAX = 100000 };

struct news_stream;
typedef void ask_fn(struct news_stream *s);
/* Appends the answer that is told. */
typedef void put_fn(struct buf *out, const struct news_stream *s, const struct db_result *r);
struct news_stream {
    struct shell *sh;
    struct http_req *req; /* until the first answer */
    struct http_stream *stream;
    ask_fn *first; /* asks for what ended trials show; NULL: ask gives all */
    ask_fn *ask;
    put_fn *put; /* NULL: NEWS_DOC is the answer */
    struct db_metric_news q;
    char *ids, *group, *name, *shown, *open; /* of names; of q */
    struct shared_buf *settled; /* what ended trials show; NULL: nothing of it is told */
    int64_t settled_since;      /* the newest report in it */
    struct buf last;            /* what was sent last */
    bool busy, over, ended;
    uv_timer_t timer;
};

static void on_timer_closed(uv_handle_t *h)
{
    struct news_stream *s = h->data;
    free(s->ids);
    free(s->group);
    free(s->name);
    free(s->shown);
    free(s->open);
    shared_buf_unref(s->settled);
    buf_finish(&s->last);
    free(s);
}

static void stream_end(struct news_stream *s)
{
    s->over = true;
    if (s->busy)
        return;
    if (s->stream)
        http_stream_end(s->stream);
    uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

static void stream_ask(struct news_stream *s)
{
    if (s->busy || s->over || (s->stream && http_stream_is_full(s->stream)))
        return;
    s->busy = true;
    s->q.shown = s->shown;
    (s->first ? s->first : s->ask)(s);
}

static void on_timer(uv_timer_t *t)
{
    stream_ask(t->data);
}

static void on_wake(void *arg)
{
    struct news_stream *s = arg;
    if (http_stream_is_gone(s->stream))
        stream_end(s);
}

/* The answer as a stream's line; the caller's. Many look at one large experiment at once: what is
 * long is made once for all of them, but for what ended trials show. */
static struct shared_buf *make_line(const struct news_stream *s, const struct db_result *r)
{
    struct shared_buf *line = s->settled ? shared_buf_create() : shared_buf_ref(db_made(r));
    if (line->b.len > 0)
        return line;
    buf_add_str(&line->b, "{\"result\":");
    if (s->put)
        s->put(&line->b, s, r);
    else
        buf_add(&line->b, db_text(r, 0, NEWS_DOC), db_text_len(r, 0, NEWS_DOC));
    buf_add_str(&line->b, "}\n");
    return line;
}

/* The first answer tells whether there is anything to follow. Where there is not, it goes out in
 * one piece: a stream's are small. */
static bool stream_begin(struct news_stream *s, const struct db_result *r)
{
    if (s->stream)
        return true;
    if (api_failed(s->req, r))
        return false;
    if (db_is_null(r, 0, NEWS_DOC)) {
        http_fail(s->req, DET_ENOENT, "experiment %s not found", s->ids);
        return false;
    }
    if (db_bool(r, 0, NEWS_ENDED)) {
        struct shared_buf *line = make_line(s, r);
        http_reply_shared(s->req, &(struct http_answer){0}, line);
        shared_buf_unref(line);
        return false;
    }
    s->stream = http_stream_begin(s->req, NULL, on_wake, s);
    return true;
}

/* Tells what differs from what was told last, which is kept while more may follow. */
static void stream_tell(struct news_stream *s, const struct buf *line)
{
    if (line->len == s->last.len && memcmp(line->p, s->last.p, line->len) == 0)
        return;
    http_stream_write(s->stream, line->p, line->len);
    buf_clear(&s->last);
    if (!s->ended)
        buf_add(&s->last, line->p, line->len);
}

static void drop_settled(struct news_stream *s)
{
    shared_buf_unref(s->settled);
    s->settled = NULL;
}

static void note_told(struct news_stream *s, const struct db_result *r)
{
    int64_t newest = db_i64(r, 0, NEWS_SINCE);
    newest = s->settled_since > newest ? s->settled_since : newest;
    s->q.since = newest > s->q.since ? newest : s->q.since;
    if (db_is_null(r, 0, NEWS_TRIALS))
        return;
    free(s->shown);
    s->shown = det_strdup(db_text(r, 0, NEWS_TRIALS));
}

static void stream_send(struct news_stream *s, const struct db_result *r)
{
    bool is_there = !db_is_null(r, 0, NEWS_DOC);
    s->ended = db_bool(r, 0, NEWS_ENDED) || !is_there;
    if (is_there) {
        struct shared_buf *line = make_line(s, r);
        stream_tell(s, &line->b);
        shared_buf_unref(line);
    }
    note_told(s, r);
    drop_settled(s); /* nothing that is long is held until the next time */
}

static void on_news(void *arg, const struct db_result *r)
{
    struct news_stream *s = arg;
    s->busy = false;
    if (s->over || !stream_begin(s, r)) {
        stream_end(s);
        return;
    }
    if (db_is_away(r)) /* the next time */
        return;
    if (db_rc(r) < 0)
        http_stream_error(s->stream, db_rc(r), db_error(r)->text);
    else
        stream_send(s, r);
    if (db_rc(r) < 0 || s->ended)
        stream_end(s);
}

/* The lines are copied once for all who are given the same. */
static void keep_settled(struct news_stream *s, const struct db_result *r)
{
    drop_settled(s);
    free(s->open);
    s->q.open = s->open = det_strdup(db_text(r, 0, SETTLED_OPEN));
    s->settled_since = db_i64(r, 0, SETTLED_SINCE);
    if (db_is_null(r, 0, SETTLED_LINES))
        return;
    s->settled = shared_buf_ref(db_made(r));
    if (s->settled->b.len == 0)
        buf_add(&s->settled->b, db_text(r, 0, SETTLED_LINES), db_text_len(r, 0, SETTLED_LINES));
}

static void on_settled(void *arg, const struct db_result *r)
{
    struct news_stream *s = arg;
    if (s->over || db_rc(r) < 0) {
        on_news(s, r);
        return;
    }
    keep_settled(s, r);
    s->ask(s);
}

static void ask_names(struct news_stream *s)
{
    db_metric_names(s->sh->db, s->ids, on_news, s);
}

static void ask_batches(struct news_stream *s)
{
    db_metric_batches(s->sh->db, &s->q, on_news, s);
}

static void ask_snapshot_settled(struct news_stream *s)
{
    db_metric_snapshot_settled(s->sh->db, &s->q, on_settled, s);
}

static void ask_snapshot(struct news_stream *s)
{
    db_metric_snapshot(s->sh->db, &s->q, on_news, s);
}

static void ask_sample_settled(struct news_stream *s)
{
    db_metric_sample_settled(s->sh->db, &s->q, on_settled, s);
}

static void ask_sample(struct news_stream *s)
{
    db_metric_sample(s->sh->db, &s->q, on_news, s);
}

static void put_sample(struct buf *out, const struct news_stream *s, const struct db_result *r)
{
    const struct api_points p = {
        {.from = s->q.from, .to = s->q.to}, (size_t)s->q.points, s->q.name};
    buf_add_str(out, "{\"trials\":[");
    for (int row = 0; row < db_rows(r) && !db_is_null(r, row, SAMPLE_TRIAL); row++) {
        buf_addf(out, "%s{\"trialId\":%s,\"hparams\":", row ? "," : "",
                 db_text(r, row, SAMPLE_TRIAL));
        buf_add(out, db_text(r, row, SAMPLE_HPARAMS), db_text_len(r, row, SAMPLE_HPARAMS));
        buf_add_str(out, ",\"data\":[");
        api_put_points(out, db_text(r, row, SAMPLE_ITEMS), &p);
        buf_add_str(out, "]}");
    }
    buf_addf(out, "],%s", db_text(r, 0, NEWS_DOC));
}

static void put_snapshot(struct buf *out, const struct news_stream *s, const struct db_result *r)
{
    buf_add_str(out, "{\"trials\":[");
    api_put_snapshot(out, buf_str(&s->settled->b), db_text(r, 0, NEWS_DOC), s->q.since);
    buf_add_str(out, "]}");
}

enum following { NAMES, BATCHES, SNAPSHOT, SAMPLE };
static const struct {
    ask_fn *first, *ask;
    put_fn *put;
} followings[] = {
    [NAMES] = {.ask = ask_names},
    [BATCHES] = {.ask = ask_batches},
    [SNAPSHOT] = {ask_snapshot_settled, ask_snapshot, put_snapshot},
    [SAMPLE] = {ask_sample_settled, ask_sample, put_sample},
};

/* ids is copied, q's texts too. */
static void follow_news(struct shell *sh, struct http_req *req, enum following what,
                        const char *ids, const struct db_metric_news *q)
{
    int64_t period_s;
    if (!api_query_i64(req, "periodSeconds", 0, &period_s))
        return;
    period_s = period_s < 1 ? PERIOD_S : period_s > 3600 ? 3600 : period_s;
    struct news_stream *s = det_zalloc(sizeof *s);
    *s = (struct news_stream){.sh = sh, .req = req, .q = *q};
    s->first = followings[what].first;
    s->ask = followings[what].ask;
    s->put = followings[what].put;
    s->ids = det_strdup(ids);
    s->q.group = s->group = q->group ? det_strdup(q->group) : NULL;
    s->q.name = s->name = q->name ? det_strdup(q->name) : NULL;
    s->shown = det_strdup("[]");
    uv_timer_init(sh->loop, &s->timer);
    s->timer.data = s;
    uv_timer_start(&s->timer, on_timer, (uint64_t)period_s * 1000, (uint64_t)period_s * 1000);
    stream_ask(s);
}

void api_exp_metric_names(struct shell *sh, struct http_req *req)
{
    const char *ids;
    if (!api_query_ints(req, "ids", &ids))
        return;
    if (!ids) {
        http_fail(req, DET_EINVAL, "ids: at least one experiment is required");
        return;
    }
    follow_news(sh, req, NAMES, ids, &(struct db_metric_news){0});
}

/* The metric of an experiment that a stream is about, all its steps. */
static bool metric_query(struct http_req *req, struct db_metric_news *q)
{
    int type;
    if (!api_id(req, "experimentId", &q->exp_id) ||
        !api_query_enum(req, "metricType", wire_metric_type, &type))
        return false;
    q->name = http_query(req, "metricName");
    q->group = http_query(req, "group");
    if (!q->group || !*q->group)
        q->group = type == 1 ? "training" : type == 2 ? "validation" : NULL;
    q->to = INT32_MAX;
    if (!q->name || !*q->name)
        http_fail(req, DET_EINVAL, "metricName: it is required");
    else if (!q->group)
        http_fail(req, DET_EINVAL, "metricType or group: one of the two is required");
    else
        return true;
    return false;
}

static void follow_metric(struct shell *sh, struct http_req *req, enum following what,
                          const struct db_metric_news *q)
{
    char id[24];
    snprintf(id, sizeof id, "%" PRId64, q->exp_id);
    follow_news(sh, req, what, id, q);
}

void api_exp_metric_batches(struct shell *sh, struct http_req *req)
{
    struct db_metric_news q = {0};
    if (metric_query(req, &q))
        follow_metric(sh, req, BATCHES, &q);
}

void api_exp_trials_snapshot(struct shell *sh, struct http_req *req)
{
    struct db_metric_news q = {0};
    int64_t at, margin;
    if (!metric_query(req, &q) || !api_query_i64(req, "batchesProcessed", 0, &at) ||
        !api_query_i64(req, "batchesMargin", 0, &margin))
        return;
    if (margin < 0 || margin > MARGIN_MAX) {
        http_fail(req, DET_EINVAL, "batchesMargin: 0 to %d", MARGIN_MAX);
        return;
    }
    at = at < 0 ? 0 : at > INT32_MAX ? INT32_MAX : at;
    q.from = at - margin;
    q.to = at + margin;
    follow_metric(sh, req, SNAPSHOT, &q);
}

struct sample_call {
    struct shell *sh;
    struct http_req *req;
    struct db_metric_news q;
};

/* A single search has no trials to choose from. */
static void on_sampled_experiment(void *arg, const struct db_result *r)
{
    struct sample_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) > 0 && !strcmp(db_text(r, 0, 0), "single"))
        http_fail(c->req, DET_EINVAL,
                  "experiment %" PRId64 " is a single search: its one trial is "
                  "not a sample",
                  c->q.exp_id);
    else
        follow_metric(c->sh, c->req, SAMPLE, &c->q);
}

void api_exp_trials_sample(struct shell *sh, struct http_req *req)
{
    struct sample_call *c = http_mem(req, sizeof *c);
    *c = (struct sample_call){.sh = sh, .req = req};
    struct db_metric_news *q = &c->q;
    int64_t to;
    if (!metric_query(req, q) || !api_query_i64(req, "startBatches", 0, &q->from) ||
        !api_query_i64(req, "endBatches", 0, &to) ||
        !api_query_i64(req, "maxTrials", TRIALS, &q->trials) ||
        !api_query_i64(req, "maxDatapoints", POINTS, &q->points))
        return;
    q->from = q->from < 0 ? 0 : q->from > INT32_MAX ? INT32_MAX : q->from;
    q->to = to > 0 && to < INT32_MAX ? to : INT32_MAX;
    q->trials = q->trials < 1 ? TRIALS : q->trials > TRIALS_MAX ? TRIALS_MAX : q->trials;
    q->points = q->points < 1 ? POINTS : q->points > POINTS_MAX ? POINTS_MAX : q->points;
    q->points = series_share(q->points, q->trials);
    db_exp_searcher(sh->db, q->exp_id, on_sampled_experiment, c);
}
