/* SearchExperiments: a tree of conditions, several keys, and of each experiment its best trial. */
#include "api_exp_search.h"

#include "api_handlers.h"
#include "api_util.h"
#include "db_doc.h"
#include "db_exp_search.h"
#include "expsearch.h"
#include "shell.h"

#include <stdlib.h>
#include <string.h>

/* The core's jobs as they are shown: asked for once, a request has many conditions. */
struct shown {
    int64_t *ids;
    const char **states; /* the core's own words */
    size_t n;
    bool is_known;
};

static void finish_shown(struct shown *s)
{
    free(s->ids);
    free(s->states);
}

static void ask_shown(struct shell *sh, struct shown *s)
{
    if (s->is_known)
        return;
    s->n = core_jobs(api_core(sh), NULL, &s->ids);
    s->states = det_reallocarray(NULL, s->n + 1, sizeof *s->states);
    for (size_t i = 0; i < s->n; i++)
        s->states[i] = api_exp_state(sh, s->ids[i], "ACTIVE");
    s->is_known = true;
}

/*
 * What is ACTIVE in its row is shown as the core has it, and what the core does not have, for it
 * runs elsewhere, as RUNNING. So those that are RUNNING are all but some, and the others just
 * these.
 */
static void put_shown(const struct shown *s, json_t *leaf)
{
    const char *state = json_str(leaf, "value", "");
    bool is_running = !strcmp(state, "RUNNING");
    JSON_OWN ids = json_array();
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->states[i], state) != is_running)
            json_array_append_new(ids, json_integer(s->ids[i]));
    json_set(leaf, "but", json_boolean(is_running));
    json_set(leaf, "value", json_incref(ids));
}

int api_search_read(struct shell *sh, const char *filter, const char *sort, json_t **ret,
                    struct det_err *err)
{
    size_t i;
    json_t *leaf;
    det_cleanup(finish_shown) struct shown shown = {0};
    if (expsearch_read(filter, sort, ret, err) < 0)
        return DET_EINVAL;
    json_array_foreach(json_object_get(*ret, "leaves"), i, leaf)
    {
        if (strcmp(json_str(leaf, "kind", ""), "shown") != 0)
            continue;
        ask_shown(sh, &shown);
        put_shown(&shown, leaf);
    }
    return 0;
}

static void put_best(struct buf *out, const struct api_call *c, const struct db_result *r, int row)
{
    const char *state = api_trial_state(c->sh, db_i64(r, row, EXP_SEARCH_TRIAL),
                                        db_text(r, row, EXP_SEARCH_TRIAL_STATE));
    buf_addf(out, ",\"bestTrial\":{\"state\":\"" API_STATE "%s\",", state);
    db_put_members(out, r, row, EXP_SEARCH_TRIAL_MEMBERS, EXP_SEARCH_MEMBERS);
    buf_add_ch(out, '}');
}

static void put_found(struct buf *out, const struct api_call *c, const struct db_result *r, int row)
{
    const char *state = api_exp_state(c->sh, db_i64(r, row, LIST_ID), db_text(r, row, LIST_STATE));
    buf_add_str(out, "{\"experiment\":");
    api_put_row(out, state, r, row, EXP_SEARCH_MEMBERS);
    if (!db_is_null(r, row, EXP_SEARCH_TRIAL))
        put_best(out, c, r, row);
    buf_add_ch(out, '}');
}

static void put_all(struct buf *out, const struct api_call *c, const struct db_result *r)
{
    int64_t total = db_i64(r, 0, LIST_TOTAL), start = db_i64(r, 0, LIST_START), n = 0;
    buf_add_str(out, "{\"experiments\":[");
    for (int i = 0; i < db_rows(r); i++) {
        if (db_is_null(r, i, LIST_ID))
            continue;
        if (n++)
            buf_add_ch(out, ',');
        put_found(out, c, r, i);
    }
    buf_add_str(out, "],\"pagination\":");
    JSON_OWN page = api_pagination(&c->page, (size_t)start, (size_t)(start + n), (size_t)total);
    json_write(out, page);
    buf_add_ch(out, '}');
}

static void on_found(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    struct buf out = BUF_INIT;
    if (db_timed_out(r)) {
        http_fail(c->req, DET_ETIMEOUT, "the search took over 10 s: narrow the filter down");
        return;
    }
    if (api_failed(c->req, r))
        return;
    if (!db_bool(r, 0, EXP_SEARCH_PROJECT)) {
        http_fail(c->req, DET_ENOENT, "project %lld not found", (long long)c->id);
        return;
    }
    put_all(&out, c, r);
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
}

void api_search_experiments(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct det_err err;
    JSON_OWN asked = NULL;
    if (!api_page(req, NULL, &c->page) || !api_query_i64(req, "projectId", 0, &c->id))
        return;
    if (api_search_read(sh, http_query(req, "filter"), http_query(req, "sort"), &asked, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    db_exp_search(sh->db, asked, c->id, &c->page, on_found, c);
}
