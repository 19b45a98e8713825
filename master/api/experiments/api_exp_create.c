/*
 * POST /experiments: read, check and pack on a worker thread; look up what the configuration names;
 * then one event to the core, which stores it all or refuses it all. One that runs elsewhere
 * (unmanaged) is a row that the core does not hold; by PUT it is made once under its client's name.
 */
#include "access.h"
#include "api_exp_made.h"
#include "api_exp_unmanaged.h"
#include "api_handlers.h"
#include "api_pack.h"
#include "api_util.h"
#include "clk.h"
#include "db_exp_read.h"
#include "db_gc.h"
#include "db_templates.h"
#include "db_unmanaged.h"
#include "driver.h"
#include "entrypoint.h"
#include "expconf.h"
#include "masterconf.h"
#include "origins.h"
#include "shell.h"
#include "slow.h"
#include "uuid.h"
#include <inttypes.h>
#include <string.h>

/* LARGE_BYTES: what reading a request of so many may take, small ones would wait for. */
enum { PIN_S = 60, LARGE_BYTES = 64 << 10 };

struct create_body {
    json_t *model_definition;
    const char *config, *template;
    int validate_only, activate, unmanaged;
    int64_t parent_id, project_id;
};
#define C(member) offsetof(struct create_body, member)
static const struct wire_field create_fields[] = {
    {"config", WIRE_STR, C(config), WIRE_REQUIRED, NULL},
    {"modelDefinition", WIRE_ARRAY, C(model_definition), 0, NULL},
    {"template", WIRE_STR, C(template), 0, NULL},
    {"validateOnly", WIRE_BOOL, C(validate_only), 0, NULL},
    {"activate", WIRE_BOOL, C(activate), 0, NULL},
    {"unmanaged", WIRE_BOOL, C(unmanaged), 0, NULL},
    {"parentId", WIRE_I32, C(parent_id), 0, NULL},
    {"projectId", WIRE_I32, C(project_id), 0, NULL},
};

struct create {
    struct slow_job reading;
    struct shell *sh;
    struct http_req *req;
    json_t *body, *config, *template; /* template: once it was looked up */
    struct create_body b;
    struct expconf view;
    struct buf tgz;
    int rc;
    struct det_err err;
    int64_t project_id;
    bool exceeded;
    char *warm_start;
    char *place;         /* ORIGIN_DOC, NULL: unknown */
    uint64_t place_turn; /* when the database was asked for it */
    size_t model_def_len;
    int64_t id;
    const char *external_id; /* NULL: none */
};

static void create_free(struct create *c)
{
    if (c->view.config)
        expconf_finish(&c->view);
    json_decref(c->config);
    json_decref(c->body);
    json_decref(c->template);
    buf_finish(&c->tgz);
    free(c->warm_start);
    free(c->place);
    free(c);
}

static void create_fail(struct create *c, int code, const char *text)
{
    http_fail(c->req, code, "%s", text);
    create_free(c);
}

static int create_config(struct create *c)
{
    JSON_OWN lower = json_deep_copy(c->template);
    if (lower && c->sh->conf->checkpoint_storage)
        expconf_merge(lower, c->sh->conf->checkpoint_storage);
    struct expconf_defaults d = {.unmanaged = c->b.unmanaged == 1,
                                 .lower = lower ? lower : c->sh->conf->checkpoint_storage,
                                 .wall_s = clk_wall_us() / 1000000,
                                 .name_seed = (uint64_t)clk_mono_us()};
    struct mistakes errs = MISTAKES_INIT;
    int rc = expconf_parse(c->b.config, strlen(c->b.config), &d, &c->config, &errs, &c->err);
    if (rc < 0 && errs.n)
        rc = mistakes_report(&errs, "experiment configuration", &c->err);
    mistakes_finish(&errs);
    return rc < 0 ? rc : expconf_view(c->config, &c->view, &c->err);
}

static bool create_wants_template(const struct create *c)
{
    return c->b.template && *c->b.template && !c->template;
}

static int create_decode(struct create *c)
{
    c->body = json_parse(buf_str(&c->req->body), c->req->body.len, &c->err);
    if (!c->body)
        return det_wrap(&c->err, DET_EINVAL, "body");
    int rc = wire_decode(c->body, "", create_fields, DET_ARRAY_LEN(create_fields), &c->b, &c->err);
    if (rc == 0 && c->external_id && c->b.unmanaged != 1)
        return det_fail(&c->err, DET_EINVAL,
                        "unmanaged: true is required of an experiment with an external id: those "
                        "that run on the cluster have none");
    return rc;
}

/* What nobody needs any more goes where the loop does not bear it: it may be millions of values. */
static void create_drop_body(struct create *c, int rc)
{
    const char *key;
    json_t *v;
    void *next;
    json_object_foreach_safe(c->body, next, key,
                             v) if (strcmp(key, "config") != 0 && strcmp(key, "template") != 0)
        json_object_del(c->body, key);
    c->b.model_definition = NULL;
    if (rc < 0)
        json_decref(c->body);
    if (rc < 0)
        c->body = NULL;
}

/* Of a class whose module was not sent no run would find any. Who sends no files at all may mean
 * none. */
static int create_check_module(struct create *c)
{
    const char *e = json_str(c->config, "entrypoint", "");
    if (c->b.parent_id || c->b.unmanaged == 1 || json_array_size(c->b.model_definition) == 0)
        return 0;
    return entrypoint_check_module(e, c->b.model_definition, &c->err);
}

/* On a worker thread: nothing here is shared. Runs again once a template was looked up. */
static void create_read(struct slow_job *j)
{
    struct create *c = container_of(j, struct create, reading);
    int rc = c->rc = c->body ? 0 : create_decode(c);
    if (rc == 0 && create_wants_template(c))
        return;
    if (rc == 0)
        rc = create_config(c);
    if (rc == 0 && !c->b.parent_id)
        rc = pack_entries(c->b.model_definition, &c->tgz, &c->err);
    if (rc == 0)
        rc = create_check_module(c);
    create_drop_body(c, rc);
    c->rc = rc;
}

static json_t *make_warnings(const struct create *c)
{
    return c->exceeded ? json_make("[s]", "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED") : json_array();
}

/* What of the configuration has no effect, a line each. */
static json_t *make_advice(const struct create *c)
{
    struct mistakes idle = MISTAKES_INIT;
    json_t *lines = json_array();
    if (c->b.unmanaged != 1)
        expconf_idle(c->config, &idle);
    for (const char *p = buf_str(&idle.text); *p;) {
        size_t n = strcspn(p, "\n");
        json_array_append_new(lines, json_stringn(p, n));
        p += n + (p[n] == '\n');
    }
    mistakes_finish(&idle);
    return lines;
}

/* The members of an answer after `config`, and its end. */
static void put_advice(const struct create *c, struct buf *out)
{
    JSON_OWN w = make_warnings(c);
    JSON_OWN a = make_advice(c);
    buf_add_str(out, ",\"warnings\":");
    json_write(out, w);
    buf_add_str(out, ",\"advice\":");
    json_write(out, a);
    buf_add_ch(out, '}');
}

static void create_validated(struct create *c)
{
    api_reply_json(c->req, json_make("{s:o,s:o,s:o,s:o}", "experiment", exp_made_zero(c->config),
                                     "config", json_incref(c->config), "warnings", make_warnings(c),
                                     "advice", make_advice(c)));
    create_free(c);
}

static void on_stored(void *arg, const struct db_result *r)
{
    struct create *c = arg;
    if (db_rc(r) < 0 || db_rows(r) == 0) {
        create_fail(c, db_rc(r) < 0 ? db_rc(r) : DET_ENOENT,
                    db_rc(r) < 0 ? db_error(r)->text : "the experiment is gone already");
        return;
    }
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"experiment\":");
    api_put_experiment(&out, c->req, api_exp_state(c->sh, c->id, db_text(r, 0, EXP_STATE)), r);
    buf_addf(&out, ",\"config\":%s", db_text(r, 0, EXP_CONFIG));
    put_advice(c, &out);
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
    create_free(c);
}

/* From memory, all but rare cases: false when the database has to be asked. */
static bool create_reply(struct create *c)
{
    struct exp_made m = {.id = c->id,
                         .conf = &c->view,
                         .place = c->place,
                         .original_config = c->b.config,
                         .model_def_len = c->model_def_len};
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"experiment\":");
    if (!c->place || c->b.parent_id || !exp_made_put(&out, c->sh, &m)) {
        buf_finish(&out);
        return false;
    }
    buf_add_str(&out, ",\"config\":");
    json_write(&out, c->config);
    put_advice(c, &out);
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
    create_free(c);
    return true;
}

static void on_created(void *arg, const struct core_reply *r)
{
    struct create *c = arg;
    origins_end_making(c->sh->origins, c->project_id);
    if (r->code < 0) {
        create_fail(c, r->code, core_reply_text(r));
        return;
    }
    c->id = r->id;
    c->exceeded = r->slots_exceeded;
    if (!create_reply(c))
        db_exp_read_kept(c->sh->db, c->id, on_stored, c);
}

static struct exp_submission *create_submission(struct create *c)
{
    struct exp_submission *p = det_zalloc(sizeof *p);
    p->original_config = det_strdup(c->b.config);
    p->parent_model_def = c->b.parent_id > 0;
    if (!p->parent_model_def) {
        p->model_def_len = c->model_def_len = c->tgz.len;
        p->model_def = buf_steal(&c->tgz);
    }
    return p;
}

static void on_unmanaged(void *arg, int64_t id, const struct det_err *err)
{
    struct create *c = arg;
    origins_end_making(c->sh->origins, c->project_id);
    c->id = id;
    if (err->code < 0)
        create_fail(c, err->code, err->text);
    else
        db_exp_read_kept(c->sh->db, c->id, on_stored, c);
}

/* The place as it was asked for. */
static char *origin_name(const struct create *c)
{
    if (c->b.project_id > 1)
        return det_asprintf("projectId: project %" PRId64, c->b.project_id);
    return det_asprintf("project \"%.80s\" of workspace \"%.80s\"", c->view.project,
                        c->view.workspace);
}

/* False: answered. The project has been deleted since it was looked up. */
static bool create_enter(struct create *c)
{
    det_cleanup(freep) char *place = origin_name(c);
    if (origins_begin_making(c->sh->origins, c->project_id))
        return true;
    det_cleanup(freep) char *text = det_asprintf("%s not found", place);
    create_fail(c, DET_ENOENT, text);
    return false;
}

static void create_unmanaged(struct create *c)
{
    if (!create_enter(c))
        return;
    det_cleanup(freep) char *config = json_text(c->config);
    const char *kept = http_strdup(c->req, config);
    const struct exp_unmanaged in = {.owner_id = c->req->who.user_id,
                                     .project_id = c->project_id,
                                     .parent_id = c->b.parent_id,
                                     .config = kept,
                                     .original_config = c->b.config,
                                     .pool = c->view.resource_pool,
                                     .model_def = c->tgz.p,
                                     .model_def_len = c->tgz.len,
                                     .external_id = c->external_id};
    exp_unmanaged_make(c->sh, &in, on_unmanaged, c);
}

static void create_post(struct create *c)
{
    if (!create_enter(c))
        return;
    char job_id[UUID_STR_MAX];
    uuid_random(job_id);
    struct core_event ev = {.kind = CORE_EV_EXP_CREATE};
    ev.create = (struct core_create){.job_id = job_id,
                                     .owner_id = c->req->who.user_id,
                                     .owner = c->req->who.username,
                                     .project_id = c->project_id,
                                     .parent_id = c->b.parent_id,
                                     .config = c->config,
                                     .activate = c->b.activate == 1,
                                     .warm_start = c->warm_start,
                                     .submission = create_submission(c)};
    driver_post(c->sh->driver, &ev, on_created, c);
}

/* Until its trial's row holds it, nobody may delete what it starts from. */
static void on_pinned(void *arg, const struct db_result *r)
{
    struct create *c = arg;
    if (db_rc(r) < 0)
        create_fail(c, db_rc(r), db_error(r)->text);
    else if (db_rows(r) == 0)
        create_fail(c, DET_ENOENT, "searcher.source_*: the checkpoint is being deleted");
    else
        create_post(c);
}

static int origin_check(const struct create *c, const struct db_result *r, struct det_err *err)
{
    det_cleanup(freep) char *place = origin_name(c);
    if (db_is_null(r, 0, ORIGIN_PROJECT))
        return det_fail(err, DET_ENOENT, "%s not found", place);
    if (c->b.parent_id > 0 && db_is_null(r, 0, ORIGIN_PARENT))
        return det_fail(err, DET_ENOENT, "parentId: experiment %" PRId64 " not found",
                        c->b.parent_id);
    if ((c->view.source_trial_id > 0 || c->view.source_checkpoint_uuid) &&
        db_is_null(r, 0, ORIGIN_SOURCE))
        return det_fail(err, DET_ENOENT,
                        "searcher.source_*: there is no completed checkpoint to start from");
    if (db_bool(r, 0, ORIGIN_ARCHIVED))
        return det_fail(err, DET_EINVAL, "%s is archived, or its workspace is", place);
    if (db_bool(r, 0, ORIGIN_PARENT))
        return det_fail(err, DET_EINVAL, "parentId: experiment %" PRId64 " is archived",
                        c->b.parent_id);
    return 0;
}

/* As the core checks it of one that is made. */
static void create_validate(struct create *c)
{
    struct det_err err;
    int code = c->b.unmanaged == 1 ? 0
                                   : core_fits(api_core(c->sh), c->view.resource_pool,
                                               c->view.slots_per_trial, &c->exceeded, &err);
    if (code < 0)
        create_fail(c, code, err.text);
    else
        create_validated(c);
}

static void create_allowed(struct create *c)
{
    if (c->b.validate_only == 1)
        create_validate(c);
    else if (c->b.unmanaged == 1)
        create_unmanaged(c);
    else if (c->warm_start)
        db_ckpt_pin(c->sh->db, c->warm_start, PIN_S, on_pinned, c);
    else
        create_post(c);
}

static void on_allowed(void *arg, const json_t *refused)
{
    struct create *c = arg;
    const json_t *why = json_object_iter_value(json_object_iter((json_t *)refused));
    if (!refused)
        create_free(c);
    else if (why)
        create_fail(c, (int)json_int(why, "code", 0), json_str(why, "text", ""));
    else
        create_allowed(c);
}

/* Whether the caller may make anything in the workspace of its project. */
static void create_placed(struct create *c)
{
    char id[24];
    snprintf(id, sizeof id, "%" PRId64, c->project_id);
    JSON_OWN ids = json_make("[s]", id);
    const struct access_ask a = {&rules_all[ROUTE_create_experiment], SUBJECT_PROJECT, on_allowed,
                                 c};
    access_ask(c->req, &a, ids);
}

static struct db_exp_origin create_origin(const struct create *c)
{
    struct db_exp_origin o = {.project_id = c->b.project_id > 1 ? c->b.project_id : 0,
                              .user_id = c->req->who.user_id,
                              .parent_id = c->b.parent_id,
                              .source_trial_id = c->view.source_trial_id,
                              .source_uuid = c->view.source_checkpoint_uuid};
    if (!o.project_id && *c->view.workspace) {
        o.workspace = c->view.workspace;
        o.project = c->view.project;
    }
    return o;
}

static void on_origin(void *arg, const struct db_result *r)
{
    struct create *c = arg;
    struct det_err err;
    if (db_rc(r) < 0) {
        create_fail(c, db_rc(r), db_error(r)->text);
        return;
    }
    if (origin_check(c, r, &err) < 0) {
        create_fail(c, err.code, err.text);
        return;
    }
    c->project_id = db_i64(r, 0, ORIGIN_PROJECT);
    if (!db_is_null(r, 0, ORIGIN_SOURCE))
        c->warm_start = det_strdup(db_text(r, 0, ORIGIN_SOURCE));
    if (!db_is_null(r, 0, ORIGIN_DOC)) {
        struct db_exp_origin o = create_origin(c);
        c->place = det_strdup(db_text(r, 0, ORIGIN_DOC));
        origins_keep(c->sh->origins, &o, c->place_turn, &(struct origin){c->project_id, c->place},
                     clk_mono_ms());
    }
    create_placed(c);
}

static void create_place(struct create *c)
{
    struct db_exp_origin o = create_origin(c);
    struct origin known;
    if (origins_find(c->sh->origins, &o, clk_mono_ms(), &known)) {
        c->project_id = known.project_id;
        c->place = det_strdup(known.doc);
        create_placed(c);
        return;
    }
    c->place_turn = origins_turn(c->sh->origins);
    db_exp_origin(c->sh->db, &o, on_origin, c);
}

/* The pool's name goes into the stored configuration. */
static void create_resolve_pool(struct create *c)
{
    json_t *resources = json_obj(c->config, "resources");
    if (*c->view.resource_pool || !resources)
        return;
    json_set(resources, "resource_pool", json_string(c->sh->conf->default_pool));
    c->view.resource_pool = json_str(resources, "resource_pool", "");
}

static void create_begin(struct create *c);

static void on_template(void *arg, const struct db_result *r)
{
    struct create *c = arg;
    if (db_rc(r) < 0)
        create_fail(c, db_rc(r), db_error(r)->text);
    else if (db_rows(r) == 0) {
        det_cleanup(freep) char *text = det_asprintf("template \"%.80s\" not found", c->b.template);
        create_fail(c, DET_ENOENT, text);
    } else {
        c->template = json_parse(db_text(r, 0, 1), db_text_len(r, 0, 1), NULL);
        create_begin(c);
    }
}

static void create_read_done(struct slow_job *j, int status)
{
    struct create *c = container_of(j, struct create, reading);
    if (!c->sh->db) { /* the reading outlived the server */
        create_fail(c, DET_EUNAVAIL, "the master is stopping");
        return;
    }
    if (status < 0 || c->rc < 0) {
        create_fail(c, status < 0 ? DET_EUNAVAIL : c->rc,
                    status < 0 ? uv_strerror(status) : c->err.text);
        return;
    }
    if (create_wants_template(c)) {
        db_template_read(c->sh->db, c->b.template, on_template, c);
        return;
    }
    create_resolve_pool(c);
    create_place(c);
}

static void create_begin(struct create *c)
{
    c->reading.work = create_read;
    c->reading.done = create_read_done;
    if (c->req->body.len >= LARGE_BYTES) {
        if (slow_push(c->sh->large, &c->reading) < 0)
            create_fail(c, DET_EUNAVAIL, "too many large requests wait to be read; try again");
    } else {
        slow_do_now(c->sh->loop, &c->reading);
    }
}

static void make_experiment(struct shell *sh, struct http_req *req, const char *external_id)
{
    struct create *c = det_zalloc(sizeof *c);
    c->sh = sh;
    c->req = req;
    c->external_id = external_id;
    create_begin(c);
}

void api_create_experiment(struct shell *sh, struct http_req *req)
{
    make_experiment(sh, req, NULL);
}

void api_put_external_experiment(struct shell *sh, struct http_req *req)
{
    const char *id = http_param(req, "externalExperimentId");
    JSON_OWN text = json_string(id); /* NULL: no UTF-8 */
    if (!text || strlen(id) > EXTERNAL_ID_MAX)
        http_fail(req, DET_EINVAL, "externalExperimentId: expected UTF-8 of at most %d bytes",
                  EXTERNAL_ID_MAX);
    else
        make_experiment(sh, req, id);
}
