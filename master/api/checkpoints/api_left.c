/* Checkpoints that lie in a store and that the database does not know: looked for, adopted,
 * removed. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_ckpt_read.h"
#include "db_left.h"
#include "driver.h"
#include "gc.h"
#include "masterconf.h"
#include "shell.h"
#include "uuid.h"
#include <string.h>

struct left_call {
    struct shell *sh;
    struct http_req *req;
    const char *what; /* a place, or a uuid; in the request's memory */
};

static struct left_call *left_call(struct shell *sh, struct http_req *req, const char *what)
{
    struct left_call *c = http_mem(req, sizeof *c);
    char *copy = http_mem(req, strlen(what) + 1);
    memcpy(copy, what, strlen(what) + 1);
    *c = (struct left_call){sh, req, copy};
    return c;
}

/* ---- POST /checkpoint-stores/look ---- */

static void on_asked(void *arg, const struct core_reply *r)
{
    struct left_call *c = arg;
    if (r->code)
        api_reply_core(c->req, r);
    else
        http_reply(c->req, 200, "{}");
}

static void on_look(void *arg, const struct db_result *r)
{
    struct left_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(
            c->req, DET_ENOENT,
            "no experiment that is there has used a checkpoint store at %s; det store list has "
            "those that were ever used",
            c->what);
        return;
    }
    JSON_OWN config = json_parse(db_text(r, 0, LOOK_CONFIG), db_text_len(r, 0, LOOK_CONFIG), NULL);
    JSON_OWN none = json_array();
    struct core_event ev = {.kind = CORE_EV_EXP_GC, .exp_id = db_i64(r, 0, LOOK_EXP)};
    ev.gc = (struct core_gc){.exp_id = ev.exp_id,
                             .owner_id = db_i64(r, 0, LOOK_OWNER),
                             .job_id = db_text(r, 0, LOOK_JOB),
                             .config = config,
                             .uuids = none,
                             .action = "list"};
    driver_post(c->sh->driver, &ev, on_asked, c);
}

void api_look_through_store(struct shell *sh, struct http_req *req)
{
    struct {
        const char *place;
    } b = {0};
    static const struct wire_field fields[] = {{"place", WIRE_STR, 0, WIRE_REQUIRED, NULL}};
    JSON_OWN body = NULL;
    if (!api_decode(req, fields, DET_ARRAY_LEN(fields), &b, &body))
        return;
    struct left_call *c = left_call(sh, req, b.place);
    db_left_look(sh->db, c->what, on_look, c);
}

/* ---- GET /checkpoint-stores/unknown ---- */

static void on_list(void *arg, const struct db_result *r)
{
    struct left_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_is_null(r, 0, 0))
        http_fail(c->req, DET_ENOENT,
                  "nobody has had the store at %s looked through; det checkpoint "
                  "unknown does",
                  c->what);
    else
        api_reply_doc(c->req, r);
}

void api_get_unknown_checkpoints(struct shell *sh, struct http_req *req)
{
    const char *place = http_query(req, "place");
    if (!place) {
        http_fail(req, DET_EINVAL,
                  "place: missing; the root of a checkpoint store (det store list)");
        return;
    }
    struct left_call *c = left_call(sh, req, place);
    db_left_list(sh->db, c->what, on_list, c);
}

/* ---- POST /checkpoint-stores/found: a collecting task that was told to list ---- */

struct found {
    const char *uuid, *task_id;
    int aside;
    int64_t modified, uid;
    json_t *metadata, *resources;
};
#define F(member) offsetof(struct found, member)
static const struct wire_field found_fields[] = {
    {"uuid", WIRE_STR, F(uuid), WIRE_REQUIRED, NULL},
    {"taskId", WIRE_STR, F(task_id), WIRE_REQUIRED, NULL},
    {"aside", WIRE_BOOL, F(aside), WIRE_REQUIRED, NULL},
    {"modified", WIRE_I64, F(modified), WIRE_REQUIRED, NULL},
    {"uid", WIRE_I64, F(uid), WIRE_REQUIRED, NULL},
    {"metadata", WIRE_OBJECT, F(metadata), WIRE_REQUIRED, NULL},
    {"resources", WIRE_OBJECT, F(resources), WIRE_REQUIRED, NULL},
};

static int found_one(const json_t *j, json_t *out, struct det_err *err)
{
    struct found f = {0};
    int rc = wire_decode(j, "checkpoints", found_fields, DET_ARRAY_LEN(found_fields), &f, err);
    if (rc < 0)
        return rc;
    if (!uuid_is_valid(f.uuid))
        return det_fail(err, DET_EINVAL, "checkpoints: \"%.60s\" is not a UUID", f.uuid);
    json_t *sizes = api_sizes(f.resources, err);
    if (!sizes)
        return DET_EINVAL;
    json_array_append_new(out, json_make("{s:s, s:s, s:b, s:I, s:I, s:O, s:o}", "uuid", f.uuid,
                                         "taskId", f.task_id, "aside", f.aside == 1, "modified",
                                         (json_int_t)f.modified, "uid", (json_int_t)f.uid,
                                         "metadata", f.metadata, "resources", sizes));
    return 0;
}

static void on_noted(void *arg, const struct db_result *r)
{
    struct left_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (!db_bool(r, 0, 0))
        http_fail(c->req, DET_EPERM, "this task was not told to look through the store at %s",
                  c->what);
    else
        http_reply(c->req, 200, "{\"unknown\":[]}");
}

static void on_missing(void *arg, const struct db_result *r)
{
    struct left_call *c = arg;
    if (api_failed(c->req, r))
        return;
    json_t *unknown = json_array();
    for (int i = 0; i < db_rows(r); i++)
        json_array_append_new(unknown, json_string(db_text(r, i, 0)));
    api_reply_json(c->req, json_make("{s:o}", "unknown", unknown));
}

static int note_found(struct left_call *c, json_t *list, bool done, struct det_err *err)
{
    JSON_OWN found = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        int rc = found_one(json_array_get(list, i), found, err);
        if (rc < 0)
            return rc;
    }
    det_cleanup(freep) char *text = json_text(found);
    db_left_note(c->sh->db, c->req->who.experiment_id, c->what, text, done, on_noted, c);
    return 0;
}

static int check_names(json_t *names, struct det_err *err)
{
    size_t i;
    json_t *one;
    json_array_foreach(names, i, one)
    {
        if (!json_is_string(one))
            return det_fail(err, DET_EINVAL, "names: expected a list of strings");
    }
    return 0;
}

struct found_body {
    const char *place;
    json_t *names, *checkpoints;
    int done;
};
#define B(member) offsetof(struct found_body, member)
static const struct wire_field body_fields[] = {
    {"place", WIRE_STR, B(place), WIRE_REQUIRED, NULL},
    {"names", WIRE_ARRAY, B(names), 0, NULL},
    {"checkpoints", WIRE_ARRAY, B(checkpoints), 0, NULL},
    {"done", WIRE_BOOL, B(done), 0, NULL},
};

void api_note_unknown_checkpoints(struct shell *sh, struct http_req *req)
{
    struct found_body b = {0};
    struct det_err err;
    JSON_OWN body = NULL;
    if (req->who.kind != WHO_ALLOC || req->who.trial_id) {
        http_fail(req, DET_EPERM, "only a collecting task may tell what lies in a store");
        return;
    }
    if (!api_decode(req, body_fields, DET_ARRAY_LEN(body_fields), &b, &body))
        return;
    struct left_call *c = left_call(sh, req, b.place);
    int rc = check_names(b.names, &err);
    if (rc == 0 && b.names) {
        det_cleanup(freep) char *text = json_text(b.names);
        db_ckpt_missing(sh->db, text, on_missing, c);
    } else if (rc == 0) {
        rc = note_found(c, b.checkpoints, b.done == 1, &err);
    }
    if (rc < 0)
        http_fail_err(req, &err);
}

/* ---- POST /checkpoints/adopt ---- */

static void on_adopted(void *arg, const struct db_result *r)
{
    struct left_call *c = arg;
    if (api_failed(c->req, r))
        return;
    const char *why = db_text(r, 0, ADOPT_WHY);
    if (*why) {
        http_fail(c->req, DET_ESTATE, "checkpoint %s: %s (nothing was changed)", c->what, why);
        return;
    }
    gc_carry_out(c->sh, db_i64(r, 0, ADOPT_EXP));
    http_reply(c->req, 200, "{}");
}

void api_adopt_checkpoint(struct shell *sh, struct http_req *req)
{
    struct {
        const char *uuid;
        int64_t trial_id;
        int remove;
    } b = {0};
    static const struct wire_field fields[] = {
        {"uuid", WIRE_STR, 0, WIRE_REQUIRED, NULL},
        {"trialId", WIRE_I32, offsetof(__typeof__(b), trial_id), 0, NULL},
        {"remove", WIRE_BOOL, offsetof(__typeof__(b), remove), 0, NULL},
    };
    JSON_OWN body = NULL;
    if (!api_decode(req, fields, DET_ARRAY_LEN(fields), &b, &body))
        return;
    if (!uuid_is_valid(b.uuid)) {
        http_fail(req, DET_EINVAL, "uuid: \"%.60s\" is not a UUID", b.uuid);
        return;
    }
    struct left_call *c = left_call(sh, req, b.uuid);
    struct db_adoption in = {.uuid = c->what,
                             .trial_id = b.trial_id,
                             .remove = b.remove == 1,
                             .rest_s = sh->conf->checkpoint_quarantine_ms / 1000};
    db_left_adopt(sh->db, &in, on_adopted, c);
}
