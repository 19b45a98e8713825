/*
 * POST /experiments/continue: an experiment that has ended goes on. Its rows are read at a moment
 * when all that the core has decided is in them; a worker thread reads them and the override; then
 * one event to the core, which refuses it if the experiment changed meanwhile.
 */
#include "access.h"
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_exp_ended.h"
#include "db_exp_read.h"
#include "driver.h"
#include "expconf.h"
#include "logpolicy.h"
#include "mem.h"
#include "shell.h"
#include "slow.h"
#include "yamljson.h"
#include <inttypes.h>
#include <string.h>

enum { PIN_S = 60 };

struct cont_body {
    int64_t id;
    const char *override;
};
#define C(member) offsetof(struct cont_body, member)
static const struct wire_field cont_fields[] = {
    {"id", WIRE_I32, C(id), WIRE_REQUIRED, NULL},
    {"overrideConfig", WIRE_STR, C(override), 0, NULL},
};

struct cont {
    struct slow_job job;
    struct shell *sh;
    struct http_req *req;
    json_t *body, *rows, *config; /* config: with the override; NULL: as it was */
    struct cont_body b;
    char *text, *config_text; /* the rows as they came; the stored configuration */
    enum exp_state state;
    struct core_continue in;
    struct row_search_event *events;
    struct row_trial *trials;
    bool exceeded;
    int rc;
    struct det_err err;
};

static void cont_free(struct cont *c)
{
    json_decref(c->body);
    json_decref(c->rows);
    json_decref(c->config);
    free(c->text);
    free(c->config_text);
    free(c->events);
    free(c->trials);
    free(c);
}

static void cont_fail(struct cont *c, int code, const char *text)
{
    http_fail(c->req, code, "%s", text);
    cont_free(c);
}

/* ---- on a worker thread ---- */

static void read_experiment(struct cont *c)
{
    const json_t *j = c->rows;
    c->config_text = json_text(json_obj(j, "config"));
    c->in.row = (struct row_experiment){
        .id = c->b.id,
        .job_id = json_str(j, "job_id", ""),
        .owner_id = json_int(j, "owner_id", 0),
        .project_id = json_int(j, "project_id", 0),
        .parent_id = json_int(j, "parent_id", 0),
        .config = c->config_text,
        .start_us = json_int(j, "start_us", 0),
        .state = c->state,
        .end_us = json_int(j, "end_us", 0),
        .progress = json_num(j, "progress", 0),
        .resource_pool = json_str(j, "pool", ""),
        .priority = (int)json_int(j, "priority", 0),
        .weight = json_num(j, "weight", 1),
        .max_slots = json_int(j, "max_slots", -1),
        .queue_position = json_num(j, "position", 0),
        .core = json_str(j, "core", "{}"),
    };
}

static void read_events(struct cont *c)
{
    const json_t *list = json_arr(c->rows, "events");
    size_t n = c->in.events_n = json_array_size(list);
    int64_t first = json_int(c->rows, "first_event", 1);
    c->events = det_alloc((n + 1) * sizeof *c->events);
    for (size_t i = 0; i < n; i++)
        c->events[i] = (struct row_search_event){c->b.id, first + (int64_t)i,
                                                 json_string_value(json_array_get(list, i))};
    c->in.events = c->events;
}

static int read_trial(const struct cont *c, const json_t *j, struct row_trial *ret,
                      struct det_err *err)
{
    *ret = (struct row_trial){
        .id = json_int(j, "id", 0),
        .experiment_id = c->b.id,
        .request_id = json_str(j, "request_id", NULL),
        .task_id = json_str(j, "task_id", ""),
        .hparams = json_str(j, "hparams", "{}"),
        .seed = json_int(j, "seed", 0),
        .start_us = json_int(j, "start_us", 0),
        .warm_start_checkpoint = json_str(j, "warm_start", NULL),
        .run_id = json_int(j, "run_id", 0),
        .restarts = json_int(j, "restarts", 0),
        .end_us = json_int(j, "end_us", 0),
        .core = json_str(j, "core", "{}"),
        .latest_checkpoint = json_str(j, "latest", NULL),
        .latest_steps = json_int(j, "latest_steps", 0),
    };
    if (trial_state_parse(json_str(j, "state", ""), &ret->state))
        return 0;
    return det_fail(err, DET_ECORRUPT, "trial %" PRId64 " has the unknown state %s", ret->id,
                    json_str(j, "state", ""));
}

static int read_trials(struct cont *c)
{
    const json_t *list = json_arr(c->rows, "trials");
    size_t n = c->in.trials_n = json_array_size(list);
    c->trials = det_alloc((n + 1) * sizeof *c->trials);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = read_trial(c, json_array_get(list, i), &c->trials[i], &c->err);
    c->in.trials = c->trials;
    return rc;
}

/* What the stored configuration becomes; one that changes nothing is none. */
static int read_override(struct cont *c)
{
    json_t *raw = NULL, *stored = json_obj(c->rows, "config");
    const char *text = c->b.override ? c->b.override : "";
    int rc = yamljson_parse(text, strlen(text), &raw, &c->err);
    if (rc == 0 && json_is_object(raw) && json_object_size(raw) > 0) {
        struct expconf_defaults d = {.lower = stored, .wall_s = clk_wall_us() / 1000000};
        rc = expconf_complete(raw, &d, &c->config, NULL, &c->err);
    } else if (rc == 0 && !json_is_null(raw) && !json_is_object(raw)) {
        rc = det_fail(&c->err, DET_EINVAL, "expected a map of configuration keys");
    }
    json_decref(raw);
    if (rc == 0 && c->config && json_equal(c->config, stored)) {
        json_decref(c->config);
        c->config = NULL;
    }
    c->in.config = c->config;
    return rc < 0 ? det_wrap(&c->err, rc, "overrideConfig") : 0;
}

static void cont_work(struct slow_job *j)
{
    struct cont *c = container_of(j, struct cont, job);
    c->rows = json_parse(c->text, strlen(c->text), &c->err);
    c->rc = c->rows ? 0 : DET_ECORRUPT;
    if (c->rc < 0)
        return;
    read_experiment(c);
    read_events(c);
    c->rc = read_trials(c);
    if (c->rc == 0)
        c->rc = read_override(c);
}

/* ---- on the loop ---- */

static void on_stored(void *arg, const struct db_result *r)
{
    struct cont *c = arg;
    if (db_rc(r) < 0 || db_rows(r) == 0) {
        cont_fail(c, db_rc(r) < 0 ? db_rc(r) : DET_ENOENT,
                  db_rc(r) < 0 ? db_error(r)->text : "the experiment is gone already");
        return;
    }
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"experiment\":");
    api_put_experiment(&out, c->req, api_exp_state(c->sh, c->b.id, db_text(r, 0, EXP_STATE)), r);
    buf_addf(&out, ",\"warnings\":[%s]}",
             c->exceeded ? "\"LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED\"" : "");
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
    cont_free(c);
}

static void on_continued(void *arg, const struct core_reply *r)
{
    struct cont *c = arg;
    if (r->code < 0) {
        cont_fail(c, r->code, core_reply_text(r));
        return;
    }
    c->exceeded = r->slots_exceeded;
    logpolicies_forget(c->sh->policies, c->b.id);
    db_exp_read_kept(c->sh->db, c->b.id, on_stored, c);
}

static void cont_post(struct cont *c)
{
    struct core_event ev = {.kind = CORE_EV_EXP_CONTINUE, .exp_id = c->b.id, .cont = &c->in};
    driver_post(c->sh->driver, &ev, on_continued, c);
}

static void on_judged(void *arg, const json_t *refused)
{
    struct cont *c = arg;
    if (refused &&
        !access_refused_because(c->req, refused, "overrideConfig says what runs as the owner"))
        cont_post(c);
    else
        cont_free(c);
}

/* Who may only start and stop it does not choose its entrypoint, nor its environment. */
static void cont_override(struct cont *c)
{
    static const struct rule speaks = {RIGHT_REPORT, SUBJECT_EXP, ""};
    det_cleanup(freep) char *id = det_asprintf("%" PRId64, c->b.id);
    JSON_OWN ids = json_make("[s]", id);
    access_ask(c->req, &(struct access_ask){&speaks, SUBJECT_EXP, on_judged, c}, ids);
}

static void cont_read_done(struct slow_job *j, int status)
{
    struct cont *c = container_of(j, struct cont, job);
    if (c->rc < 0)
        cont_fail(c, c->rc, c->err.text);
    else if (c->config)
        cont_override(c);
    else
        cont_post(c);
}

/* False: refused. */
static bool rows_are_fit(struct cont *c, const struct db_result *r)
{
    char text[200];
    snprintf(text, sizeof text, "experiment %" PRId64 " not found", c->b.id);
    int code = db_rc(r) < 0 ? db_rc(r) : db_rows(r) == 0 ? DET_ENOENT : 0;
    if (code == 0 && db_bool(r, 0, ENDED_ARCHIVED))
        code =
            det_fail(&c->err, DET_ESTATE,
                     "experiment %" PRId64 " is archived: unarchive it, then continue it", c->b.id);
    else if (code == 0 && db_bool(r, 0, ENDED_PLACE_ARCHIVED))
        code = det_fail(&c->err, DET_ESTATE,
                        "the project or workspace of experiment %" PRId64
                        " is archived: unarchive it, or move the experiment, then continue it",
                        c->b.id);
    else if (code == 0 && !exp_state_parse(db_text(r, 0, ENDED_STATE), &c->state))
        code = det_fail(&c->err, DET_ECORRUPT, "experiment %" PRId64 " has the unknown state %s",
                        c->b.id, db_text(r, 0, ENDED_STATE));
    else if (code == 0 && db_bool(r, 0, ENDED_UNMANAGED))
        code =
            det_fail(&c->err, DET_ESTATE,
                     "experiment %" PRId64 " does not run on this cluster (unmanaged): it goes on "
                     "when its client starts a trial of it",
                     c->b.id);
    else if (code == 0 && db_bool(r, 0, ENDED_LEAVING))
        code = det_fail(&c->err, DET_ESTATE,
                        "a checkpoint of experiment %" PRId64 " is being deleted just now; try "
                        "again in a moment",
                        c->b.id);
    const char *why = code == DET_ENOENT ? text : db_error(r)->text;
    if (code < 0)
        cont_fail(c, code, *c->err.text ? c->err.text : why);
    return code == 0;
}

static void on_rows(void *arg, const struct db_result *r)
{
    struct cont *c = arg;
    if (!rows_are_fit(c, r))
        return;
    c->text = det_strdup(db_text(r, 0, ENDED_ROWS));
    c->job = (struct slow_job){.work = cont_work, .done = cont_read_done};
    slow_do_now(c->sh->loop, &c->job);
}

/* All that was decided is committed now; what is decided from now on raises the revision. */
static void on_settled(void *arg, const struct core_reply *r)
{
    struct cont *c = arg;
    if (r->code < 0) {
        cont_fail(c, r->code, core_reply_text(r));
        return;
    }
    c->in.revision = core_exp_revision(api_core(c->sh), c->b.id);
    db_exp_ended(c->sh->db, c->b.id, PIN_S, on_rows, c);
}

void api_continue_experiment(struct shell *sh, struct http_req *req)
{
    struct cont_body b = {0};
    json_t *body = NULL;
    if (!api_decode(req, cont_fields, DET_ARRAY_LEN(cont_fields), &b, &body))
        return;
    struct cont *c = det_zalloc(sizeof *c);
    *c = (struct cont){.sh = sh, .req = req, .body = body, .b = b};
    driver_barrier(sh->driver, on_settled, c);
}
