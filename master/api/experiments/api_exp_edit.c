/* Edits of an experiment: its words, labels, resources and collection policy. */
#include "access.h"
#include "api_exp_act.h"
#include "api_handlers.h"
#include "api_util.h"
#include "db_exp_edit.h"
#include "db_exp_read.h"
#include "driver.h"
#include "gc.h"
#include "shell.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

struct patch_body {
    const char *name, *description, *notes;
    json_t *labels, *resources, *storage;
};
#define P(member) offsetof(struct patch_body, member)
static const struct wire_field patch_fields[] = {
    {"name", WIRE_STR, P(name), 0, NULL},
    {"description", WIRE_STR, P(description), 0, NULL},
    {"notes", WIRE_STR, P(notes), 0, NULL},
    {"labels", WIRE_ARRAY, P(labels), 0, NULL},
    {"resources", WIRE_OBJECT, P(resources), 0, NULL},
    {"checkpointStorage", WIRE_OBJECT, P(storage), 0, NULL},
};
struct resources_body {
    int64_t max_slots, priority;
    json_t *weight;
};
static const struct wire_field resources_fields[] = {
    {"maxSlots", WIRE_I32, offsetof(struct resources_body, max_slots), 0, NULL},
    {"priority", WIRE_I32, offsetof(struct resources_body, priority), 0, NULL},
    {"weight", WIRE_ANY, offsetof(struct resources_body, weight), 0, NULL},
};
struct storage_body {
    int64_t experiment_best, trial_best, trial_latest;
};
static const struct wire_field storage_fields[] = {
    {"saveExperimentBest", WIRE_I32, offsetof(struct storage_body, experiment_best), WIRE_REQUIRED,
     NULL},
    {"saveTrialBest", WIRE_I32, offsetof(struct storage_body, trial_best), WIRE_REQUIRED, NULL},
    {"saveTrialLatest", WIRE_I32, offsetof(struct storage_body, trial_latest), WIRE_REQUIRED, NULL},
};

struct patch {
    struct shell *sh;
    struct http_req *req;
    int64_t id;
    struct db_exp_edit edit; /* strings live in the request */
    struct core_patch core;
    bool has_core;
};

static void on_patched_read(void *arg, const struct db_result *r)
{
    struct patch *p = arg;
    if (api_failed(p->req, r))
        return;
    if (db_rows(r) == 0) {
        api_not_found(p->req);
        return;
    }
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"experiment\":");
    api_put_experiment(&out, p->req, api_exp_state(p->sh, p->id, db_text(r, 0, EXP_STATE)), r);
    buf_add_ch(&out, '}');
    http_reply_buf(p->req, 200, &out);
    buf_finish(&out);
}

static void on_edited(void *arg, const struct db_result *r)
{
    struct patch *p = arg;
    enum exp_state s;
    if (!p->has_core)
        exp_edit_end(p->sh, p->id);
    if (api_failed(p->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(p->req, DET_ENOENT, "experiment %" PRId64 " not found", p->id);
        return;
    }
    struct core_exp_view v;
    s = core_exp_get(api_core(p->sh), p->id, &v) ? v.state : EXP_COMPLETED;
    if (p->edit.storage && exp_state_is_terminal(s))
        gc_wanted(p->sh, p->id); /* a live one is collected when it ends */
    db_exp_read(p->sh->db, p->id, on_patched_read, p);
}

static void on_core(void *arg, const struct core_reply *r)
{
    struct patch *p = arg;
    if (r->code < 0)
        http_fail(p->req, r->code, "%s",
                  r->code == DET_ENOENT
                      ? "resources can only be changed while the experiment is live"
                      : core_reply_text(r));
    else
        db_exp_edit(p->sh->db, p->id, &p->edit, on_edited, p);
}

static char *keep_json(struct http_req *req, json_t *j)
{
    det_cleanup(freep) char *text = json_text(j);
    return http_strdup(req, text);
}

static int patch_resources(struct patch *p, const json_t *j, struct det_err *err)
{
    struct resources_body b = {INT64_MIN, INT64_MIN, NULL};
    double weight = 1;
    int rc =
        wire_decode(j, "resources", resources_fields, DET_ARRAY_LEN(resources_fields), &b, err);
    if (rc == 0 && b.weight)
        rc = wire_f64(b.weight, "resources.weight", &weight, err);
    if (rc < 0)
        return rc;
    JSON_OWN config = json_object();
    p->core = (struct core_patch){.has_priority = b.priority != INT64_MIN,
                                  .has_weight = b.weight != NULL,
                                  .has_max_slots = b.max_slots != INT64_MIN,
                                  .weight = weight,
                                  .max_slots = b.max_slots};
    if (p->core.has_priority && (b.priority < 1 || b.priority > 99))
        return det_fail(err, DET_EINVAL, "resources.priority: 1 to 99");
    if (p->core.has_weight && (!isfinite(weight) || weight <= 0))
        return det_fail(err, DET_EINVAL, "resources.weight: a number above 0");
    p->core.priority = p->core.has_priority ? (int)b.priority : 0;
    if (p->core.has_priority)
        json_set(config, "priority", json_integer(b.priority));
    if (p->core.has_weight)
        json_set(config, "weight", json_double(weight));
    if (p->core.has_max_slots)
        json_set(config, "max_slots", b.max_slots < 0 ? json_null() : json_integer(b.max_slots));
    p->has_core = json_object_size(config) > 0;
    if (p->has_core)
        p->edit.resources = keep_json(p->req, config);
    return 0;
}

static int patch_storage(struct patch *p, const json_t *j, struct det_err *err)
{
    struct storage_body b = {0};
    int rc =
        wire_decode(j, "checkpointStorage", storage_fields, DET_ARRAY_LEN(storage_fields), &b, err);
    if (rc < 0)
        return rc;
    if (b.experiment_best < 0 || b.trial_best < 0 || b.trial_latest < 0)
        return det_fail(err, DET_EINVAL,
                        "checkpointStorage: numbers of checkpoints are not negative");
    JSON_OWN s = json_make("{s:I,s:I,s:I}", "save_experiment_best", (json_int_t)b.experiment_best,
                           "save_trial_best", (json_int_t)b.trial_best, "save_trial_latest",
                           (json_int_t)b.trial_latest);
    p->edit.storage = keep_json(p->req, s);
    return 0;
}

static int patch_labels(struct patch *p, json_t *labels, struct det_err *err)
{
    for (size_t i = 0; i < json_array_size(labels); i++)
        if (!json_is_string(json_array_get(labels, i)))
            return det_fail(err, DET_EINVAL, "labels[%zu]: expected a string", i);
    p->edit.labels = keep_json(p->req, labels);
    return 0;
}

static int patch_fill(struct patch *p, const json_t *j, struct det_err *err)
{
    struct patch_body b = {0};
    int rc = wire_decode(j, "", patch_fields, DET_ARRAY_LEN(patch_fields), &b, err);
    if (rc == 0 && b.name && !b.name[strspn(b.name, " \t\r\n")])
        rc = det_fail(err, DET_EINVAL, "name: must not be blank");
    if (rc == 0 && b.labels)
        rc = patch_labels(p, b.labels, err);
    if (rc == 0 && b.resources)
        rc = patch_resources(p, b.resources, err);
    if (rc == 0 && b.storage)
        rc = patch_storage(p, b.storage, err);
    if (rc < 0)
        return rc;
    p->edit.name = b.name ? http_strdup(p->req, b.name) : NULL;
    p->edit.description = b.description ? http_strdup(p->req, b.description) : NULL;
    p->edit.notes = b.notes ? http_strdup(p->req, b.notes) : NULL;
    return 0;
}

static void patch_begin(struct patch *p)
{
    if (p->has_core) {
        struct core_event ev = {.kind = CORE_EV_EXP_PATCH, .exp_id = p->id, .patch = p->core};
        driver_post(p->sh->driver, &ev, on_core, p);
    } else {
        exp_edit_begin(p->sh, p->id, on_core, p);
    }
}

static void on_judged(void *arg, const json_t *refused)
{
    struct patch *p = arg;
    if (refused && !access_refused_because(p->req, refused,
                                           "checkpointStorage says which checkpoints are deleted"))
        patch_begin(p);
}

/* A policy that keeps fewer checkpoints is their deletion. */
static void patch_policy(struct patch *p)
{
    static const struct rule deletes = {RIGHT_DELETE, SUBJECT_EXP, ""};
    det_cleanup(freep) char *id = det_asprintf("%" PRId64, p->id);
    JSON_OWN ids = json_make("[s]", id);
    access_ask(p->req, &(struct access_ask){&deletes, SUBJECT_EXP, on_judged, p}, ids);
}

void api_patch_experiment(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    struct patch *p = http_mem(req, sizeof *p);
    *p = (struct patch){.sh = sh, .req = req};
    if (!api_id(req, "experiment.id", &p->id))
        return;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    if (patch_fill(p, body, &err) < 0)
        http_fail_err(req, &err);
    else if (p->edit.storage)
        patch_policy(p);
    else
        patch_begin(p);
}

struct label {
    struct shell *sh;
    struct http_req *req;
    int64_t id;
    const char *name;
    bool add;
};

static void on_labelled(void *arg, const struct db_result *r)
{
    struct label *l = arg;
    exp_edit_end(l->sh, l->id);
    api_reply_doc(l->req, r);
}

static void write_label(void *arg, const struct core_reply *r)
{
    struct label *l = arg;
    if (r->code < 0)
        http_fail(l->req, r->code, "%s", core_reply_text(r));
    else
        db_exp_label(l->sh->db, l->id, l->name, l->add, on_labelled, l);
}

static void change_label(struct shell *sh, struct http_req *req, bool add)
{
    struct label *l = http_mem(req, sizeof *l);
    *l = (struct label){.sh = sh, .req = req, .name = http_param(req, "label"), .add = add};
    if (!api_id(req, "experimentId", &l->id))
        return;
    if (!*l->name || strlen(l->name) > 200)
        http_fail(req, DET_EINVAL, "label: 1 to 200 bytes");
    else
        exp_edit_begin(sh, l->id, write_label, l);
}

void api_put_experiment_label(struct shell *sh, struct http_req *req)
{
    change_label(sh, req, true);
}

void api_delete_experiment_label(struct shell *sh, struct http_req *req)
{
    change_label(sh, req, false);
}
