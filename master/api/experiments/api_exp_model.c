/*
 * Downloads of a model definition: as it is, or as {"b64Tgz"}. What is larger than one part goes
 * out part by part, each read when there is room for it: of any size the master holds one part.
 */
#include "api_handlers.h"
#include "api_util.h"
#include "b64.h"
#include "db_exp_read.h"
#include "shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct sending {
    struct shell *sh;
    struct http_req *req; /* NULL once it is answered */
    struct http_stream *stream;
    struct db_part part;
    int64_t size;
    bool as_json;
    bool is_asked; /* the database, for the next part */
};

static void on_part(void *arg, const struct db_result *r);

static void ask_part(struct sending *s)
{
    s->is_asked = true;
    db_exp_model_def_part(s->sh->db, &s->part, on_part, s);
}

static void cut_stream(struct sending *s)
{
    http_stream_cut(s->stream);
    free(s);
}

static void pump_parts(void *arg)
{
    struct sending *s = arg;
    if (s->is_asked)
        return;
    if (http_stream_is_gone(s->stream))
        cut_stream(s);
    else if (!http_stream_is_full(s->stream))
        ask_part(s);
}

/* The next bytes of the answer. */
static int add_part(struct sending *s, const struct db_result *r, struct buf *out,
                    struct det_err *err)
{
    det_cleanup(buf_finish) struct buf part = BUF_INIT;
    int rc = db_bytes(r, 0, PART_BYTES, &part, err);
    if (rc < 0)
        return rc;
    if (s->as_json && s->part.from == 0)
        buf_add_str(out, "{\"b64Tgz\":\"");
    s->part.from += (int64_t)part.len;
    if (s->as_json)
        b64_encode(out, buf_str(&part), part.len);
    else
        buf_add(out, buf_str(&part), part.len);
    if (s->as_json && s->part.from == s->size)
        buf_add_str(out, "\"}");
    return part.len || s->part.from == s->size ? 0 : det_fail(err, DET_ECORRUPT, "it is cut");
}

static void go_on(struct sending *s, const struct db_result *r)
{
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    if (db_rc(r) < 0 || db_rows(r) == 0 || add_part(s, r, &out, NULL) < 0) {
        cut_stream(s);
        return;
    }
    http_stream_write(s->stream, out.p, out.len);
    if (s->part.from < s->size) {
        pump_parts(s);
    } else {
        http_stream_end(s->stream);
        free(s);
    }
}

static void name_of(const struct db_result *r, char out[160])
{
    snprintf(out, 160, "attachment; filename=\"exp%" PRId64 "_%.50s_model_def.tar.gz\"",
             db_i64(r, 0, PART_EXP), db_text(r, 0, PART_NAME));
    for (char *p = strchr(out, '_') + 1; p < out + strlen(out) - 1; p++)
        if ((unsigned char)*p < ' ' || *p == '"' || *p == '\\' || *p == '/' || *p == 127)
            *p = '_'; /* a header, and the name of a file */
}

static void begin_answer(struct sending *s, const struct db_result *r)
{
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    struct http_req *req = s->req;
    struct det_err err;
    char name[160];
    name_of(r, name);
    const struct http_answer a = {.status = 200,
                                  .content_type = s->as_json ? NULL : "application/x-gtar",
                                  .disposition = s->as_json ? NULL : name};
    s->req = NULL;
    s->size = db_i64(r, 0, PART_SIZE);
    s->part.exp_id = db_i64(r, 0, PART_EXP);
    s->part.task_id = NULL; /* the request's */
    int rc = add_part(s, r, &out, &err);
    if (rc == 0 && s->part.from < s->size) {
        s->stream = http_stream_begin_as(req, &a, pump_parts, s);
        http_stream_write(s->stream, out.p, out.len);
        pump_parts(s);
        return;
    }
    if (rc < 0)
        http_fail_err(req, &err);
    else
        http_reply_with(req, &a, buf_str(&out), out.len);
    free(s);
}

static void on_part(void *arg, const struct db_result *r)
{
    struct sending *s = arg;
    s->is_asked = false;
    if (!s->req) {
        go_on(s, r);
        return;
    }
    if (!api_failed(s->req, r) && db_rows(r) > 0) {
        begin_answer(s, r);
        return;
    }
    if (db_rc(r) == 0)
        api_not_found(s->req);
    free(s);
}

static void model_send(struct shell *sh, struct http_req *req, struct db_part part, bool as_json)
{
    struct sending *s = det_zalloc(sizeof *s);
    *s = (struct sending){.sh = sh, .req = req, .part = part, .as_json = as_json};
    ask_part(s);
}

void api_get_model_def(struct shell *sh, struct http_req *req)
{
    struct db_part part = {0};
    if (api_id(req, "experimentId", &part.exp_id))
        model_send(sh, req, part, true);
}

void api_download_model_def(struct shell *sh, struct http_req *req)
{
    struct db_part part = {0};
    if (api_id(req, "experimentId", &part.exp_id))
        model_send(sh, req, part, false);
}

void api_get_context_directory(struct shell *sh, struct http_req *req)
{
    struct db_part part = {.task_id = http_param(req, "taskId")};
    if (api_own_task(req, part.task_id))
        model_send(sh, req, part, true);
}
