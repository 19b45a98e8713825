/* Answers that are pages of lists. */
#include "api_util.h"
#include "db_doc.h"
#include "db_exp_read.h"
#include "expconf_hide.h"
#include <string.h>

/* {"<state in front>" + doc}. */
static void put_doc(struct buf *out, const char *state, const char *doc, size_t len)
{
    if (!state) {
        buf_add(out, doc, len);
        return;
    }
    buf_addf(out, "{\"state\":\"" API_STATE "%s\",", state);
    buf_add(out, doc + 1, len - 1); /* the documents are never empty objects */
}

/* Of the document that out has from `from` on. */
static void hide_secrets(struct buf *out, size_t from)
{
    if (!expconf_may_hide(out->p + from, out->len - from))
        return;
    JSON_OWN doc = json_parse_nul(out->p + from, out->len - from, NULL);
    out->len = from;
    expconf_hide_answer(doc);
    if (doc)
        json_write(out, doc);
    else
        buf_add_str(out, "{}"); /* rather nothing than what may be a secret */
}

static void put_whole_row(struct buf *out, const char *state, const struct db_result *r, int row,
                          int members)
{
    buf_addf(out, "{\"state\":\"" API_STATE "%s\",", state);
    db_put_members(out, r, row, members, -1);
    buf_add_ch(out, '}');
}

void api_put_row(struct buf *out, const char *state, const struct db_result *r, int row,
                 int members)
{
    size_t from = out->len;
    put_whole_row(out, state, r, row, members);
    hide_secrets(out, from);
}

void api_put_experiment(struct buf *out, const struct http_req *req, const char *state,
                        const struct db_result *r)
{
    bool is_own = req->who.is_admin || req->who.user_id == db_i64(r, 0, EXP_OWNER);
    (is_own ? put_whole_row : api_put_row)(out, state, r, 0, EXP_MEMBERS);
}

void api_reply_hidden(struct http_req *req, const char *doc)
{
    struct buf out = BUF_INIT;
    buf_add_str(&out, doc);
    hide_secrets(&out, 0);
    http_reply_buf(req, 200, &out);
    buf_finish(&out);
}

json_t *api_pagination(const struct db_page *p, size_t start, size_t end, size_t total)
{
    return json_make("{s:I,s:I,s:I,s:I,s:I}", "offset", (json_int_t)p->offset, "limit",
                     (json_int_t)p->limit, "startIndex", (json_int_t)start, "endIndex",
                     (json_int_t)end, "total", (json_int_t)total);
}

static bool out_of_bounds(struct http_req *req, const struct db_page *p, int64_t total)
{
    if (p->offset <= total && p->offset >= -total)
        return false;
    http_fail(req, DET_EINVAL, "offset out of bounds: %lld of %lld", (long long)p->offset,
              (long long)total);
    return true;
}

static void put_entry(struct buf *out, const struct api_call *c, const struct db_result *r, int row,
                      api_state_fn *state)
{
    const char *text = db_text(r, row, LIST_STATE);
    if (state)
        text = state(c->sh, db_i64(r, row, LIST_ID), text);
    size_t from = out->len;
    if (c->members) {
        api_put_row(out, text, r, row, c->members);
        return;
    }
    put_doc(out, state ? text : NULL, db_text(r, row, LIST_DOC), db_text_len(r, row, LIST_DOC));
    hide_secrets(out, from);
}

/* {<front>"<key>":[ */
static void put_head(struct buf *out, const struct api_call *c)
{
    buf_addf(out, "{%s\"%s\":[", c->front ? c->front : "", c->key);
}

static void put_list(struct buf *out, const struct api_call *c, const struct db_result *r,
                     api_state_fn *state)
{
    int64_t total = db_i64(r, 0, LIST_TOTAL), start = db_i64(r, 0, LIST_START), n = 0;
    put_head(out, c);
    for (int i = 0; i < db_rows(r); i++) {
        if (db_is_null(r, i, c->members ? LIST_ID : LIST_DOC))
            continue;
        if (n++)
            buf_add_ch(out, ',');
        put_entry(out, c, r, i, state);
    }
    buf_add_str(out, "],\"pagination\":");
    JSON_OWN page = api_pagination(&c->page, (size_t)start, (size_t)(start + n), (size_t)total);
    json_write(out, page);
    buf_add_ch(out, '}');
}

/* Whether a list that was made is of this name: one statement may serve two routes. */
static bool is_of(const struct buf *made, const struct api_call *c)
{
    struct buf head = BUF_INIT;
    put_head(&head, c);
    bool is = made->len > head.len && memcmp(made->p, head.p, head.len) == 0;
    buf_finish(&head);
    return is;
}

/* Many look at one list at once: it is written once for all of them. The page is of the arguments,
 * and the core stands still while they are answered. */
void api_reply_list(const struct api_call *c, const struct db_result *r, api_state_fn *state,
                    bool strict)
{
    if (api_failed(c->req, r) ||
        (strict && out_of_bounds(c->req, &c->page, db_i64(r, 0, LIST_TOTAL))))
        return;
    struct shared_buf *made = db_made(r);
    struct buf out = BUF_INIT;
    if (made && made->b.len == 0)
        put_list(&made->b, c, r, state);
    if (made && is_of(&made->b, c)) {
        http_reply_made(c->req, made);
        return;
    }
    put_list(&out, c, r, state);
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
}

bool api_slice(struct http_req *req, const struct db_page *p, size_t total, size_t *start,
               size_t *end)
{
    if (out_of_bounds(req, p, (int64_t)total))
        return false;
    *start = p->offset < 0 ? total - (size_t)-p->offset : (size_t)p->offset;
    size_t left = total - *start;
    *end = *start + (p->limit > 0 && (size_t)p->limit < left ? (size_t)p->limit
                     : p->limit == -2                        ? 0
                                                             : left);
    return true;
}
