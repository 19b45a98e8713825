/* Charts: GET /trials/time-series. Of long series only the points that draw them. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_series.h"
#include "series.h"
#include "shell.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS_DEFAULT = 200, POINTS_MAX = 10000, TRIALS_MAX = 100 };

struct series_call {
    struct shell *sh;
    struct http_req *req;
    struct db_series q;
    json_t *groups, *ids; /* of q, parsed */
    int64_t points;
    int64_t after_us, before_us; /* of the points' times; 0: any */
    struct buf *docs;            /* trial.v1.Trial of each id that is there */
    size_t docs_n;
};

/* A point of one of a group's metrics. */
struct named_point {
    struct series_point p;
    size_t name;
};
struct points {
    struct named_point *v;
    size_t n;
};

static void call_free(struct series_call *c)
{
    for (size_t i = 0; i < c->docs_n; i++)
        buf_finish(&c->docs[i]);
    free(c->docs);
    json_decref(c->groups);
    json_decref(c->ids);
    free(c);
}

/* ---- The request ---- */

/* The names asked for in a group; the group is added when it is new. */
static json_t *names_of(json_t *groups, const char *group, size_t len)
{
    size_t i;
    json_t *g;
    json_array_foreach(groups, i, g)
    {
        const char *had = json_str(g, "group", "");
        if (strlen(had) == len && !memcmp(had, group, len))
            return json_object_get(g, "names");
    }
    g = json_make("{s:o,s:[]}", "group", json_lossy(group, len), "names");
    json_array_append_new(groups, g);
    return json_object_get(g, "names");
}

/* Lists of query values as JSON; NULL (answered) when there are too many. */
static json_t *list_of(struct http_req *req, const char *name)
{
    const char *text;
    if (!api_query_strings(req, name, &text))
        return NULL;
    return text ? json_parse(text, strlen(text), NULL) : json_array();
}

static bool by_ids(struct http_req *req, const json_t *ids, json_t *groups)
{
    size_t i;
    const json_t *id;
    json_array_foreach(ids, i, id)
    {
        const char *text = json_string_value(id), *dot = strchr(text, '.');
        if (!dot || dot == text || !dot[1]) {
            http_fail(req, DET_EINVAL, "metricIds: \"%.100s\" is not <group>.<name>", text);
            return false;
        }
        json_array_append_new(names_of(groups, text, (size_t)(dot - text)), json_string(dot + 1));
    }
    return true;
}

static bool by_names(struct http_req *req, json_t *names, json_t *groups)
{
    const char *group = http_query(req, "group");
    int type;
    if (!api_query_enum(req, "metricType", wire_metric_type, &type))
        return false;
    if (!group || !*group)
        group = type == 1 ? "training" : type == 2 ? "validation" : NULL;
    if (!group) {
        http_fail(req, DET_EINVAL, "metricNames: metricType or group is required with it");
        return false;
    }
    json_array_extend(names_of(groups, group, strlen(group)), names);
    return true;
}

/* What is to be drawn, as JSON; NULL: answered. */
static json_t *groups_query(struct http_req *req)
{
    JSON_OWN ids = list_of(req, "metricIds");
    JSON_OWN names = ids ? list_of(req, "metricNames") : NULL;
    if (!names)
        return NULL;
    size_t ids_n = json_array_size(ids), names_n = json_array_size(names);
    if ((ids_n == 0) == (names_n == 0)) {
        http_fail(req, DET_EINVAL, "metricIds or metricNames: one of the two is required");
        return NULL;
    }
    json_t *groups = json_array();
    if (ids_n ? by_ids(req, ids, groups) : by_names(req, names, groups))
        return groups;
    json_decref(groups);
    return NULL;
}

static size_t names_count(const json_t *groups)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(groups); i++)
        n += json_array_size(json_object_get(json_array_get(groups, i), "names"));
    return n;
}

/* The filter's range narrows what start and end say. */
static bool range_query(struct http_req *req, struct series_call *c)
{
    static const struct {
        const char *name;
        int from, to; /* added to the value to give an inclusive end; INT32_MIN: not this end */
    } ends[] = {
        {"gt", 1, INT32_MIN}, {"gte", 0, INT32_MIN}, {"lt", INT32_MIN, -1}, {"lte", INT32_MIN, 0}};
    const char *name = http_query(req, "timeSeriesFilter.name");
    char key[64];
    int64_t v;
    if (name && *name && strcmp(name, "batches") && strcmp(name, "time")) {
        http_fail(req, DET_EINVAL, "timeSeriesFilter.name: batches or time");
        return false;
    }
    for (size_t i = 0; i < DET_ARRAY_LEN(ends); i++) {
        snprintf(key, sizeof key, "timeSeriesFilter.integerRange.%s", ends[i].name);
        if (!api_query_i64(req, key, INT64_MIN, &v))
            return false;
        v = v == INT64_MIN ? v : v < -1 ? -1 : v > INT32_MAX ? INT32_MAX : v;
        if (v != INT64_MIN && ends[i].from != INT32_MIN && v + ends[i].from > c->q.from)
            c->q.from = v + ends[i].from;
        if (v != INT64_MIN && ends[i].to != INT32_MIN && v + ends[i].to < c->q.to)
            c->q.to = v + ends[i].to;
    }
    return api_query_time(req, "timeSeriesFilter.timeRange.gt", &c->after_us) &&
           api_query_time(req, "timeSeriesFilter.timeRange.lte", &c->before_us);
}

static bool call_query(struct http_req *req, struct series_call *c)
{
    int64_t to;
    if (!api_query_ints(req, "trialIds", &c->q.trial_ids) ||
        !api_query_i64(req, "maxDatapoints", POINTS_DEFAULT, &c->points) ||
        !api_query_i64(req, "startBatches", 0, &c->q.from) ||
        !api_query_i64(req, "endBatches", 0, &to))
        return false;
    c->ids = c->q.trial_ids ? json_parse(c->q.trial_ids, strlen(c->q.trial_ids), NULL) : NULL;
    c->q.to = to > 0 && to < INT32_MAX ? to : INT32_MAX;
    c->q.from = c->q.from < 0 ? 0 : c->q.from > INT32_MAX ? INT32_MAX : c->q.from;
    c->points = c->points < 1 ? POINTS_DEFAULT : c->points > POINTS_MAX ? POINTS_MAX : c->points;
    size_t n = json_array_size(c->ids), i;
    const json_t *id;
    if (n == 0 || n > TRIALS_MAX) {
        http_fail(req, DET_EINVAL, "trialIds: one to %d are required", TRIALS_MAX);
        return false;
    }
    json_array_foreach(c->ids, i,
                       id) if (json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
    {
        http_fail(req, DET_ENOENT, "trialIds: no such trial");
        return false;
    }
    c->groups = groups_query(req);
    if (!c->groups)
        return false;
    c->points = series_share(c->points, (int64_t)(n * names_count(c->groups)));
    c->q.buckets = series_buckets(c->points);
    return range_query(req, c);
}

/* ---- The answer ---- */

static int by_steps(const void *a, const void *b)
{
    const struct named_point *x = a, *y = b;
    if (x->p.steps != y->p.steps)
        return x->p.steps < y->p.steps ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static void metric_draw(const struct series_call *c, const struct db_result *r, int row,
                        struct points *out)
{
    const char *text = db_text(r, row, SERIES_ITEMS);
    size_t lines = series_items_max(text), max = (size_t)c->points;
    size_t room = max > SERIES_POINTS_MIN ? max : SERIES_POINTS_MIN;
    det_cleanup(freep) struct series_item *items = det_reallocarray(NULL, lines, sizeof *items);
    det_cleanup(freep) struct series_point *p = det_reallocarray(NULL, room, sizeof *p);
    const struct series_bounds within = {c->q.from, c->q.to, (double)c->after_us / 1e6,
                                         (double)c->before_us / 1e6};
    size_t kept = series_within(&within, items, series_parse(text, items));
    size_t n = series_points(items, kept, max, p);
    out->v = det_reallocarray(out->v, out->n + n + 1, sizeof *out->v);
    for (size_t i = 0; i < n; i++)
        out->v[out->n++] = (struct named_point){p[i], (size_t)db_i64(r, row, SERIES_NAME) - 1};
}

static void put_point(struct buf *out, const struct points *p, size_t from, size_t to,
                      const json_t *names)
{
    char time[CLK_RFC3339_MAX];
    clk_format(llround(p->v[from].p.at * 1e6), time);
    buf_addf(out, "{\"batches\":%lld,\"time\":\"%s\",\"values\":{", (long long)p->v[from].p.steps,
             time);
    for (size_t i = from; i < to; i++) {
        const json_t *name = json_array_get(names, p->v[i].name);
        if (i > from)
            buf_add_ch(out, ',');
        json_write_string(out, json_string_value(name), json_string_length(name));
        buf_add_ch(out, ':');
        json_write_finite(out, p->v[i].p.value);
    }
    buf_add_str(out, "}}");
}

/* DownsampledMetrics: metrics that have a point at the same steps share it. */
static void put_group(struct buf *out, const json_t *g, struct points *p)
{
    const char *group = json_str(g, "group", "");
    const char *type = !strcmp(group, "training")     ? "METRIC_TYPE_TRAINING"
                       : !strcmp(group, "validation") ? "METRIC_TYPE_VALIDATION"
                                                      : "METRIC_TYPE_UNSPECIFIED";
    buf_add_str(out, "{\"group\":");
    json_write_string(out, group, strlen(group));
    buf_addf(out, ",\"type\":\"%s\",\"data\":[", type);
    if (p->n)
        qsort(p->v, p->n, sizeof *p->v, by_steps);
    for (size_t from = 0, to; from < p->n; from = to) {
        for (to = from + 1; to < p->n && p->v[to].p.steps == p->v[from].p.steps;)
            to++;
        if (from)
            buf_add_ch(out, ',');
        put_point(out, p, from, to, json_object_get(g, "names"));
    }
    buf_add_str(out, "]}");
}

/* The groups of one trial, whose rows begin at *row. */
static void put_trial(struct buf *out, const struct series_call *c, const struct db_result *r,
                      size_t trial, int *row)
{
    buf_add_str(out, "{\"trial\":");
    buf_add(out, c->docs[trial].p, c->docs[trial].len);
    buf_add_str(out, ",\"metrics\":[");
    for (size_t g = 0; g < json_array_size(c->groups); g++) {
        struct points p = {0};
        for (; *row < db_rows(r) && db_i64(r, *row, SERIES_TRIAL) == (int64_t)trial + 1 &&
               db_i64(r, *row, SERIES_GROUP) == (int64_t)g + 1;
             ++*row)
            metric_draw(c, r, *row, &p);
        if (g)
            buf_add_ch(out, ',');
        put_group(out, json_array_get(c->groups, g), &p);
        free(p.v);
    }
    buf_add_str(out, "]}");
}

static void on_series(void *arg, const struct db_result *r)
{
    struct series_call *c = arg;
    struct buf out = BUF_INIT;
    int row = 0;
    if (!api_failed(c->req, r)) {
        buf_add_str(&out, "{\"trials\":[");
        for (size_t t = 0; t < c->docs_n; t++) {
            if (t)
                buf_add_ch(&out, ',');
            put_trial(&out, c, r, t, &row);
        }
        buf_add_str(&out, "]}");
        http_reply_buf(c->req, 200, &out);
    }
    buf_finish(&out);
    call_free(c);
}

/* The first few of those that are asked for and not in r. */
static void fail_absent(struct series_call *c, const struct db_result *r)
{
    enum { NAMED = 8 };
    det_cleanup(buf_finish) struct buf names = BUF_INIT;
    size_t n = json_array_size(c->ids), absent = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t id = json_integer_value(json_array_get(c->ids, i));
        bool found = false;
        for (int row = 0; row < db_rows(r) && !found; row++)
            found = db_i64(r, row, SERIES_TRIAL_ID) == id;
        if (!found && absent++ < NAMED)
            buf_addf(&names, "%s%" PRId64, names.len ? ", " : "", id);
    }
    http_fail(c->req, DET_ENOENT, "trialIds: trial%s %s%s not found", absent == 1 ? "" : "s",
              buf_str(&names), absent > NAMED ? " and more" : "");
}

static void on_trials(void *arg, const struct db_result *r)
{
    struct series_call *c = arg;
    size_t n = json_array_size(c->ids);
    if (api_failed(c->req, r)) {
        call_free(c);
        return;
    }
    if ((size_t)db_rows(r) != n) {
        fail_absent(c, r);
        call_free(c);
        return;
    }
    c->docs = det_reallocarray(NULL, n, sizeof *c->docs);
    for (size_t i = 0; i < n; i++) {
        c->docs[i] = (struct buf)BUF_INIT;
        api_put_row(&c->docs[i],
                    api_trial_state(c->sh, db_i64(r, (int)i, SERIES_TRIAL_ID),
                                    db_text(r, (int)i, SERIES_TRIAL_STATE)),
                    r, (int)i, SERIES_TRIAL_MEMBERS);
    }
    c->docs_n = n;
    db_series_read(c->sh->db, &c->q, on_series, c);
}

void api_compare_trials(struct shell *sh, struct http_req *req)
{
    struct series_call *c = det_zalloc(sizeof *c);
    c->sh = sh;
    c->req = req;
    if (!call_query(req, c)) {
        call_free(c);
        return;
    }
    det_cleanup(freep) char *groups = json_text(c->groups);
    c->q.groups = http_strdup(req, groups);
    db_series_trials(sh->db, c->q.trial_ids, on_trials, c);
}
