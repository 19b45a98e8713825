#include "search_story.h"

#include "conf.h"
#include "search_explain.h"
#include <string.h>

struct story {
    struct conf conf;
    struct search *s;
    struct map *ids; /* request id -> trial id */
    struct search_names names;
};

static int64_t trial_of(void *arg, const char *request_id)
{
    return (int64_t)(intptr_t)map_get(arg, request_id);
}

static void story_end(struct story *t)
{
    search_destroy(t->s);
    map_destroy(t->ids);
}

static int story_begin(struct story *t, const struct search_log *log, struct det_err *err)
{
    int rc = conf_read(log->config, &t->conf, err);
    if (rc == 0)
        rc = search_create(&t->conf.search, &t->s, err);
    if (rc < 0)
        return rc;
    t->ids = map_create();
    for (size_t i = 0; i < json_array_size(log->trials); i++) {
        const json_t *row = json_array_get(log->trials, i);
        const char *request_id = json_string_value(json_array_get(row, 1));
        if (request_id)
            map_put(t->ids, request_id,
                    (void *)(intptr_t)json_integer_value(json_array_get(row, 0)));
    }
    t->names = (struct search_names){
        .metric = json_str(json_obj(log->config, "searcher"), "metric", "metric"),
        .unit = t->conf.unit,
        .trial = trial_of,
        .arg = t->ids};
    return 0;
}

/* What the log tells of one trial. */
struct closing {
    const char *request_id;
    bool closed, left; /* by its search; by itself, or it failed */
    int64_t length;    /* that it completed last */
    json_t *reason;    /* its client's; NULL: none */
};

static void note_event(struct closing *c, const struct search_event *ev)
{
    if (!ev->request_id || strcmp(ev->request_id, c->request_id) != 0)
        return;
    if (ev->kind == SEARCH_EV_VALIDATED)
        c->length = ev->length;
    else if (ev->kind == SEARCH_EV_EXITED || ev->kind == SEARCH_EV_REOPENED)
        c->left = ev->kind == SEARCH_EV_EXITED;
}

static void note_ops(struct closing *c, const struct search_ops *ops)
{
    for (size_t i = 0; i < ops->ops.n; i++) {
        const struct search_op *op = &ops->ops.v[i];
        if (op->kind != SEARCH_CLOSE || strcmp(op->request_id, c->request_id) != 0)
            continue;
        c->closed = true;
        json_decref(c->reason);
        c->reason = json_incref(op->reason);
    }
}

static void play_event(struct story *t, const struct search_event *ev, struct closing *c)
{
    struct search_ops out = {0};
    search_step(t->s, ev, &out);
    if (c) {
        note_event(c, ev);
        note_ops(c, &out);
    }
    search_ops_finish(&out);
}

/* A search that compares is asked for its reasons in the moment in which it closes a trial; others
 * often close it as they make it, long before it ends. */
static bool is_told(const struct story *t, const struct closing *c)
{
    enum search_kind kind = t->conf.search.kind;
    return c && c->closed && (kind == SEARCH_ASYNC_HALVING || kind == SEARCH_ADAPTIVE_ASHA);
}

/* c: until all is known of this trial; NULL: to its end. */
static int play_log(struct story *t, const struct search_log *log, struct closing *c,
                    struct det_err *err)
{
    play_event(t, &(struct search_event){.kind = SEARCH_EV_INITIAL}, c);
    for (size_t i = 0; !is_told(t, c) && i < json_array_size(log->events); i++) {
        struct search_event ev;
        const json_t *j = json_array_get(json_array_get(log->events, i), 1);
        int rc = search_event_from_json(j, &ev, err);
        if (rc < 0)
            return rc;
        play_event(t, &ev, c);
    }
    return 0;
}

json_t *search_story_rungs(const struct search_log *log, size_t most, struct det_err *err)
{
    struct story t = {0};
    json_t *j = NULL;
    int rc = story_begin(&t, log, err);
    if (rc == 0)
        rc = play_log(&t, log, NULL, err);
    if (rc == 0) {
        const struct search_conf *c = &t.conf.search;
        j = json_make("{s:s,s:s,s:s,s:b,s:o}", "searcher",
                      json_str(json_obj(log->config, "searcher"), "name", ""), "metric",
                      t.names.metric, "unit", t.conf.unit, "smallerIsBetter", !c->larger_is_better,
                      "brackets", search_rungs(t.s, &t.names, most));
        json_set(j, "divisor", json_double(c->divisor));
    }
    story_end(&t);
    return j;
}

static const char *request_of(const struct search_log *log, int64_t trial_id)
{
    for (size_t i = 0; i < json_array_size(log->trials); i++) {
        const json_t *row = json_array_get(log->trials, i);
        if (json_integer_value(json_array_get(row, 0)) == trial_id)
            return json_string_value(json_array_get(row, 1));
    }
    return NULL;
}

static json_t *tell_place(const struct story *t, const struct search_place *place)
{
    struct buf text = BUF_INIT;
    search_place_text(place, &t->names, &text);
    json_t *j = json_make("{s:s,s:o}", "text", buf_str(&text), "search",
                          search_place_json(place, &t->names));
    buf_finish(&text);
    return j;
}

static json_t *tell_plainly(const struct story *t, const struct closing *c)
{
    if (!c->closed || c->left)
        return NULL;
    struct buf text = BUF_INIT;
    search_plain_text(t->conf.search.kind, c->length, t->conf.unit, json_string_value(c->reason),
                      &text);
    json_t *j = json_make("{s:s}", "text", buf_str(&text));
    buf_finish(&text);
    return j;
}

json_t *search_story_trial(const struct search_log *log, int64_t trial_id, struct det_err *err)
{
    struct story t = {0};
    struct search_place place;
    struct closing c = {.request_id = request_of(log, trial_id)};
    json_t *j = NULL;
    int rc = c.request_id ? story_begin(&t, log, err) : -1;
    if (rc == 0)
        rc = play_log(&t, log, &c, err);
    if (rc == 0)
        j = search_place_of(t.s, c.request_id, &place) ? tell_place(&t, &place)
                                                       : tell_plainly(&t, &c);
    json_decref(c.reason);
    story_end(&t);
    return j;
}
