/* SearchExperiments: a tree of conditions, several keys, and of each experiment its best trial. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_doc.h"
#include "db_exp_search.h"
#include "expsearch.h"
#include "shell.h"

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
    if (expsearch_read(http_query(req, "filter"), http_query(req, "sort"), &asked, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    det_cleanup(freep) char *text = json_text(asked);
    db_exp_search(sh->db, text, c->id, &c->page, on_found, c);
}
