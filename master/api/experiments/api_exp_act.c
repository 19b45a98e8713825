/*
 * The core only knows live experiments, so what it does not know is looked up: a finished one may
 * be archived, deleted, and cancelled or killed again without effect.
 */
#include "api_exp_act.h"
#include "api_util.h"
#include "db_ckpt_read.h"
#include "db_exp_edit.h"
#include "db_exp_read.h"
#include "db_places.h"
#include "driver.h"
#include <inttypes.h>
#include <stdio.h>

struct act {
    struct shell *sh;
    enum exp_act kind;
    int64_t id, project_id; /* project_id: where it moves to */
    char job_id[64];
    exp_act_cb *cb;
    void *arg;
};

static void act_end(struct act *a, int code, const char *text)
{
    a->cb(a->arg, code, text);
    free(a);
}

static void act_end_missing(struct act *a)
{
    char text[64];
    snprintf(text, sizeof text, "experiment %" PRId64 " not found", a->id);
    act_end(a, DET_ENOENT, text);
}

static void act_end_state(struct act *a, const char *state, const char *verb)
{
    char text[160];
    snprintf(text, sizeof text, "experiment %" PRId64 " is %.40s and cannot be %s", a->id, state,
             verb);
    act_end(a, DET_ESTATE, text);
}

/* False: ended with the statement's error. */
static bool act_row(struct act *a, const struct db_result *r)
{
    if (db_rc(r) < 0)
        act_end(a, db_rc(r), db_error(r)->text);
    else if (db_rows(r) == 0)
        act_end_missing(a);
    return db_rc(r) == 0 && db_rows(r) > 0;
}

/* What the core did not know. */
static void on_not_live(void *arg, const struct db_result *r)
{
    struct act *a = arg;
    if (!act_row(a, r))
        return;
    const char *state = db_text(r, 0, EXP_STATE);
    if (exp_state_is(state, EXP_ACTIVE)) {
        char text[160];
        snprintf(text, sizeof text,
                 "experiment %" PRId64
                 " does not run on this cluster (unmanaged): stop it where it "
                 "runs",
                 a->id);
        act_end(a, DET_ESTATE, text);
    } else if (a->kind == EXP_ACT_PAUSE)
        act_end_state(a, state, "paused");
    else if (a->kind == EXP_ACT_ACTIVATE) {
        char text[96];
        snprintf(text, sizeof text, "experiment %" PRId64 " is finished (%.30s)", a->id, state);
        act_end(a, DET_ENOENT, text);
    } else
        act_end(a, 0, NULL);
}

static void on_core(void *arg, const struct core_reply *r)
{
    struct act *a = arg;
    if (r->code == DET_ENOENT)
        db_exp_read(a->sh->db, a->id, on_not_live, a);
    else
        act_end(a, r->code, r->code ? core_reply_text(r) : NULL);
}

static void act_core(struct act *a)
{
    static const enum core_event_kind kinds[] = {CORE_EV_EXP_ACTIVATE, CORE_EV_EXP_PAUSE,
                                                 CORE_EV_EXP_CANCEL, CORE_EV_EXP_KILL};
    struct core_event ev = {.kind = kinds[a->kind], .exp_id = a->id};
    driver_post(a->sh->driver, &ev, on_core, a);
}

void exp_edit_begin(struct shell *sh, int64_t id, driver_cb *write, void *arg)
{
    struct core_event ev = {.kind = CORE_EV_EXP_EDIT, .exp_id = id, .edit_begins = true};
    driver_post(sh->driver, &ev, write, arg);
}

void exp_edit_end(struct shell *sh, int64_t id)
{
    const struct core_event ev = {.kind = CORE_EV_EXP_EDIT, .exp_id = id};
    driver_post(sh->driver, &ev, NULL, NULL);
}

static void on_archived(void *arg, const struct db_result *r)
{
    struct act *a = arg;
    enum exp_state state;
    bool archive = a->kind == EXP_ACT_ARCHIVE;
    exp_edit_end(a->sh, a->id);
    if (!act_row(a, r))
        return;
    if (!exp_state_parse(db_text(r, 0, 0), &state) || state < EXP_COMPLETED || state > EXP_ERROR)
        act_end_state(a, db_text(r, 0, 0), archive ? "archived" : "unarchived");
    else if (db_bool(r, 0, 1) == archive)
        act_end_state(a, archive ? "archived already" : "not archived",
                      archive ? "archived" : "unarchived");
    else
        act_end(a, 0, NULL);
}

static void write_archived(void *arg, const struct core_reply *r)
{
    struct act *a = arg;
    if (r->code < 0)
        act_end(a, r->code, r->code ? core_reply_text(r) : NULL);
    else
        db_exp_archive(a->sh->db, a->id, a->kind == EXP_ACT_ARCHIVE, on_archived, a);
}

static void on_delete_core(void *arg, const struct core_reply *r)
{
    act_end(arg, r->code, r->code ? core_reply_text(r) : NULL);
}

static void refuse_held(struct act *a, const struct db_result *r)
{
    const char *in_use = "in use, by a live trial that started from it, or by a download or a "
                         "continuation asked for a moment ago";
    char text[512];
    snprintf(text, sizeof text,
             "experiment %" PRId64 " cannot be deleted: its checkpoint %.40s is %.300s", a->id,
             db_text(r, 0, RM_HELD),
             db_is_null(r, 0, RM_MODELS) ? in_use : db_text(r, 0, RM_MODELS));
    act_end(a, DET_ESTATE, text);
}

static void on_delete_checkpoints(void *arg, const struct db_result *r)
{
    struct act *a = arg;
    if (!act_row(a, r))
        return;
    if (!db_is_null(r, 0, RM_HELD)) {
        refuse_held(a, r);
        return;
    }
    JSON_OWN config = json_parse(db_text(r, 0, RM_CONFIG), db_text_len(r, 0, RM_CONFIG), NULL);
    JSON_OWN uuids = json_parse(db_text(r, 0, RM_UUIDS), db_text_len(r, 0, RM_UUIDS), NULL);
    struct core_event ev = {.kind = CORE_EV_EXP_DELETE, .exp_id = a->id};
    ev.gc = (struct core_gc){.exp_id = a->id,
                             .owner_id = db_i64(r, 0, RM_OWNER),
                             .job_id = a->job_id,
                             .config = config,
                             .uuids = uuids,
                             .has_files = db_bool(r, 0, RM_HAS_FILES)};
    driver_post(a->sh->driver, &ev, on_delete_core, a);
}

static void on_delete_state(void *arg, const struct db_result *r)
{
    struct act *a = arg;
    enum exp_state state;
    if (!act_row(a, r))
        return;
    bool ok = exp_state_parse(db_text(r, 0, EXP_STATE), &state) &&
              (state == EXP_COMPLETED || state == EXP_CANCELED || state == EXP_ERROR ||
               state == EXP_DELETE_FAILED);
    if (!ok) {
        act_end_state(a, db_text(r, 0, EXP_STATE), "deleted");
        return;
    }
    snprintf(a->job_id, sizeof a->job_id, "%.60s", db_text(r, 0, EXP_JOB));
    db_ckpt_of_experiment(a->sh->db, a->id, on_delete_checkpoints, a);
}

static void act_end_place(struct act *a, int code, const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "destinationProjectId: project %" PRId64 " %s", a->project_id,
             what);
    act_end(a, code, text);
}

static void on_moved(void *arg, const struct db_result *r)
{
    struct act *a = arg;
    if (db_state(r) == DB_STATE_MISSING)
        act_end_place(a, DET_ENOENT, "not found");
    else if (db_rc(r) < 0)
        act_end(a, db_rc(r), db_error(r)->text);
    else if (!db_bool(r, 0, MOVE_EXP))
        act_end_missing(a);
    else if (!db_bool(r, 0, MOVE_PROJECT))
        act_end_place(a, DET_ENOENT, "not found");
    else if (db_bool(r, 0, MOVE_EXP_ARCHIVED))
        act_end_state(a, "archived", "moved");
    else if (db_bool(r, 0, MOVE_PROJECT_ARCHIVED))
        act_end_place(a, DET_ESTATE, "is archived, or its workspace is");
    else
        act_end(a, 0, NULL);
}

void exp_act(struct shell *sh, enum exp_act kind, int64_t id, int64_t project_id, exp_act_cb *cb,
             void *arg)
{
    struct act *a = det_zalloc(sizeof *a);
    *a = (struct act){
        .sh = sh, .kind = kind, .id = id, .project_id = project_id, .cb = cb, .arg = arg};
    if (kind == EXP_ACT_DELETE)
        db_exp_read(sh->db, id, on_delete_state, a);
    else if (kind == EXP_ACT_MOVE)
        db_exp_move(sh->db, id, project_id, on_moved, a);
    else if (kind == EXP_ACT_ARCHIVE || kind == EXP_ACT_UNARCHIVE)
        exp_edit_begin(sh, id, write_archived, a);
    else
        act_core(a);
}
