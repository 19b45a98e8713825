/* Checkpoints removed, taken back, and collected: what a person asks for by hand. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_ckpt_read.h"
#include "gc.h"
#include "masterconf.h"
#include "shell.h"
#include "uuid.h"
#include <inttypes.h>
#include <string.h>

#define GLOBS_MAX 1000

struct removal {
    struct shell *sh;
    struct http_req *req;
    const char *uuids; /* JSON array; of the request's memory */
    const char *globs; /* likewise; NULL: whole checkpoints */
};

/* Each uuid once, in the request's memory; NULL when answered. */
static const char *uuids_read(struct http_req *req, json_t *body)
{
    const json_t *list = api_list(req, body, "checkpointUuids");
    if (!list)
        return NULL;
    JSON_OWN seen = json_object();
    JSON_OWN out = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (!s || !uuid_is_valid(s)) {
            http_fail(req, DET_EINVAL, "checkpointUuids: \"%.60s\" is not a UUID", s ? s : "");
            return NULL;
        }
        if (!json_object_get(seen, s))
            json_array_append_new(out, json_string(s));
        json_set(seen, s, json_true());
    }
    det_cleanup(freep) char *text = json_text(out);
    return http_strdup(req, text);
}

/* False when answered with the first that is not there. */
static bool all_there(struct http_req *req, const struct db_result *r)
{
    if (api_failed(req, r))
        return false;
    if (db_rows(r) == 0)
        return true;
    http_fail(req, DET_ENOENT, "checkpoint %s not found (nothing was changed)", db_text(r, 0, 0));
    return false;
}

/* A download ends its pin, but not where its master was killed; that of a new experiment, which
 * starts from the checkpoint, lasts a minute. */
static void refuse_pinned(struct http_req *req, const struct db_result *r, int i)
{
    http_fail(req, DET_ESTATE,
              "checkpoint %s cannot be removed: it is being read, by a download or an experiment "
              "that starts from it; try again later, at %s UTC at the latest (nothing was changed)",
              db_text(r, i, INTENT_UUID), db_text(r, i, INTENT_UNTIL));
}

static void refuse_held(struct http_req *req, const struct db_result *r, int i)
{
    unsigned why = (unsigned)db_i64(r, i, INTENT_HELD);
    if ((why & -why) == GC_HELD_USE && !db_is_null(r, i, INTENT_UNTIL))
        refuse_pinned(req, r, i);
    else if (db_is_null(r, i, INTENT_MODELS))
        http_fail(req, DET_ESTATE, "checkpoint %s cannot be removed: %s (nothing was changed)",
                  db_text(r, i, INTENT_UUID), gc_why_text(why));
    else
        http_fail(req, DET_ESTATE,
                  "checkpoint %s cannot be removed: it is %.300s (nothing was changed)",
                  db_text(r, i, INTENT_UUID), db_text(r, i, INTENT_MODELS));
}

/* Every experiment's part is written down already: the answer need not wait for agents. */
static void on_intended(void *arg, const struct db_result *r)
{
    struct removal *c = arg;
    if (api_failed(c->req, r))
        return;
    int64_t last = 0;
    for (int i = 0; i < db_rows(r); i++)
        if (db_i64(r, i, INTENT_HELD) > 0) {
            refuse_held(c->req, r, i);
            return;
        }
    for (int i = 0; i < db_rows(r); i++)
        if (db_i64(r, i, INTENT_EXP) != last && db_i64(r, i, INTENT_HELD) == 0)
            gc_carry_out(c->sh, last = db_i64(r, i, INTENT_EXP));
    http_reply(c->req, 200, "{}");
}

static void on_known(void *arg, const struct db_result *r)
{
    struct removal *c = arg;
    if (!all_there(c->req, r))
        return;
    int64_t rest_s = c->globs ? 0 : c->sh->conf->checkpoint_quarantine_ms / 1000;
    struct db_gc_intent in = {
        .uuids = c->uuids, .mask = GC_HELD_HARD, .globs = c->globs, .rest_s = rest_s, .all = true};
    db_gc_intend(c->sh->db, &in, on_intended, c);
}

static void remove_of(struct shell *sh, struct http_req *req, json_t *body, const char *globs)
{
    struct removal *c = http_mem(req, sizeof *c);
    *c = (struct removal){sh, req, uuids_read(req, body), globs};
    if (c->uuids)
        db_ckpt_missing(sh->db, c->uuids, on_known, c);
}

void api_delete_checkpoints(struct shell *sh, struct http_req *req)
{
    JSON_OWN body = api_body(req);
    if (body)
        remove_of(sh, req, body, NULL);
}

/* 0: no pattern, 1: whole checkpoints, 2: only what matches *ret; -1 when answered. */
static int globs_read(struct http_req *req, json_t *body, const char **ret)
{
    const json_t *globs = api_list(req, body, "checkpointGlobs");
    if (!globs)
        return -1;
    for (size_t i = 0; i < json_array_size(globs); i++) {
        const char *g = json_string_value(json_array_get(globs, i));
        if (!g || !*g || i >= GLOBS_MAX) {
            http_fail(req, DET_EINVAL, "checkpointGlobs: up to %d patterns, none of them empty",
                      GLOBS_MAX);
            return -1;
        }
        if (strcmp(g, "**/*") == 0)
            return 1;
    }
    det_cleanup(freep) char *text = json_text(globs);
    *ret = http_strdup(req, text);
    return json_array_size(globs) > 0 ? 2 : 0;
}

void api_remove_checkpoint_files(struct shell *sh, struct http_req *req)
{
    const char *globs = NULL;
    JSON_OWN body = api_body(req);
    int what = body ? globs_read(req, body, &globs) : -1;
    if (what > 0)
        remove_of(sh, req, body, what == 1 ? NULL : globs);
    else if (what == 0)
        http_reply(req, 200, "{}"); /* no pattern, no file */
}

/* ---- undo ---- */

static void on_undone(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    for (int i = 0; i < db_rows(r); i++)
        if (!db_is_null(r, i, UNDO_WHY)) {
            int code = db_bool(r, i, UNDO_IS_ABSENT) ? DET_ENOENT : DET_ESTATE;
            http_fail(c->req, code, "checkpoint %s cannot be taken back: %s (nothing was changed)",
                      db_text(r, i, UNDO_UUID), db_text(r, i, UNDO_WHY));
            return;
        }
    gc_carry_out(c->sh, 0);
    http_reply(c->req, 200, "{}");
}

void api_undelete_checkpoints(struct shell *sh, struct http_req *req)
{
    JSON_OWN body = api_body(req);
    const char *uuids = body ? uuids_read(req, body) : NULL;
    if (uuids)
        db_gc_undo(sh->db, uuids, on_undone, api_call(sh, req));
}
