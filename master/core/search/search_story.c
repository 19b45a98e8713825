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

static bool closes_trial(const struct search_ops *ops, const char *request_id)
{
    for (size_t i = 0; request_id && i < ops->ops.n; i++)
        if (ops->ops.v[i].kind == SEARCH_CLOSE && strcmp(ops->ops.v[i].request_id, request_id) == 0)
            return true;
    return false;
}

/* True when the event closed the trial `until`. */
static bool play_event(struct story *t, const struct search_event *ev, const char *until)
{
    struct search_ops out = {0};
    search_step(t->s, ev, &out);
    bool closed = closes_trial(&out, until);
    search_ops_finish(&out);
    return closed;
}

static int play_log(struct story *t, const struct search_log *log, const char *until,
                    struct det_err *err)
{
    bool closed = play_event(t, &(struct search_event){.kind = SEARCH_EV_INITIAL}, until);
    for (size_t i = 0; !closed && i < json_array_size(log->events); i++) {
        struct search_event ev;
        const json_t *j = json_array_get(json_array_get(log->events, i), 1);
        int rc = search_event_from_json(j, &ev, err);
        if (rc < 0)
            return rc;
        closed = play_event(t, &ev, until);
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

json_t *search_story_trial(const struct search_log *log, int64_t trial_id, struct det_err *err)
{
    struct story t = {0};
    struct search_place place;
    json_t *j = NULL;
    const char *request_id = request_of(log, trial_id);
    int rc = request_id ? story_begin(&t, log, err) : -1;
    if (rc == 0)
        rc = play_log(&t, log, request_id, err);
    if (rc == 0 && search_place_of(t.s, request_id, &place)) {
        struct buf text = BUF_INIT;
        search_place_text(&place, &t.names, &text);
        j = json_make("{s:s,s:o}", "text", buf_str(&text), "search",
                      search_place_json(&place, &t.names));
        buf_finish(&text);
    }
    story_end(&t);
    return j;
}
