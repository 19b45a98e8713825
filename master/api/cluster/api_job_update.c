/* POST /job-queues: priorities, weights, places and pools of jobs. All updates are checked, each as
 * if those before it were made, before any is. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_exp_edit.h"
#include "driver.h"
#include "masterconf.h"
#include "shell.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { UPDATES_MAX = 1000 };

struct control_body {
    const char *job_id, *ahead_of, *behind_of, *pool;
    int64_t priority;
    double weight;
};
#define Q(member) offsetof(struct control_body, member)
static const struct wire_field control_fields[] = {
    {"jobId", WIRE_STR, Q(job_id), WIRE_REQUIRED, NULL},
    {"aheadOf", WIRE_STR, Q(ahead_of), 0, NULL},
    {"behindOf", WIRE_STR, Q(behind_of), 0, NULL},
    {"resourcePool", WIRE_STR, Q(pool), 0, NULL},
    {"priority", WIRE_I32, Q(priority), 0, NULL},
    {"weight", WIRE_F64, Q(weight), 0, NULL},
};

/* The experiment of a job; 0: not found, which *err then says. */
static int64_t job_find(struct shell *sh, const char *where, const char *job_id,
                        struct det_err *err)
{
    int64_t id = core_job_find(api_core(sh), job_id);
    if (id == 0)
        det_fail(err, DET_ENOENT, "%s: job %.80s not found", where, job_id);
    return id;
}

/* Whether the job's pool heeds what is to be changed. */
static int control_fits(const struct control_body *b, const char *where,
                        const struct core_pool_options *o, struct det_err *err)
{
    bool priority = b->priority != INT64_MIN, weight = !isnan(b->weight);
    if (priority && (b->priority < 1 || b->priority > 99))
        return det_fail(err, DET_EINVAL, "%s.priority: expected a number from 1 to 99", where);
    if (priority && o->scheduler != CORE_PRIORITY)
        return det_fail(err, DET_EINVAL,
                        "%s.priority: this pool's scheduler does not know priorities", where);
    if (weight && (!(b->weight > 0) || isinf(b->weight)))
        return det_fail(err, DET_EINVAL, "%s.weight: expected a number above 0", where);
    if (weight && o->scheduler != CORE_FAIR_SHARE)
        return det_fail(err, DET_EINVAL, "%s.weight: this pool's scheduler does not know weights",
                        where);
    return 0;
}

/* Update i as evs[i], behind those before it; or what is wrong. */
static int control_read(struct shell *sh, const json_t *j, size_t i, struct core_event *evs,
                        struct det_err *err)
{
    struct core_event *ev = &evs[i];
    struct control_body b = {.priority = INT64_MIN, .weight = NAN};
    char where[40];
    snprintf(where, sizeof where, "updates[%zu]", i);
    int rc = wire_decode(j, where, control_fields, DET_ARRAY_LEN(control_fields), &b, err);
    if (rc < 0)
        return rc;
    bool priority = b.priority != INT64_MIN, weight = !isnan(b.weight);
    if (priority + weight + !!b.ahead_of + !!b.behind_of + !!b.pool != 1)
        return det_fail(err, DET_EINVAL,
                        "%s: expected exactly one of aheadOf, behindOf, resourcePool, "
                        "priority, weight",
                        where);
    int64_t id = job_find(sh, where, b.job_id, err);
    *ev = (struct core_event){.kind = CORE_EV_EXP_PATCH, .exp_id = id};
    const char *pool = id ? core_patch_pool(api_core(sh), evs, i) : NULL;
    if (!pool)
        return DET_ENOENT;
    rc = control_fits(&b, where, core_pool_options(api_core(sh), pool), err);
    if (rc < 0)
        return rc;
    ev->patch = (struct core_patch){.has_priority = priority,
                                    .has_weight = weight,
                                    .weight = b.weight,
                                    .priority = priority ? (int)b.priority : 0,
                                    .pool = b.pool};
    if (b.ahead_of && !(ev->patch.ahead_of = job_find(sh, where, b.ahead_of, err)))
        return DET_ENOENT;
    if (b.behind_of && !(ev->patch.behind_of = job_find(sh, where, b.behind_of, err)))
        return DET_ENOENT;
    rc = core_patch_check(api_core(sh), evs, i, err);
    return rc < 0 ? det_wrap(err, rc, "%s", where) : 0;
}

struct update_call {
    struct shell *sh;
    struct http_req *req;
    size_t left;
    int code; /* and err: what failed first */
    struct det_err err;
};
struct update {
    struct update_call *call;
    int64_t exp_id;
};

static void update_done(struct update_call *c, int code, const char *text)
{
    if (code < 0 && !c->code)
        c->code = det_fail(&c->err, code, "%s", text);
    if (--c->left)
        return;
    if (c->code)
        http_fail_err(c->req, &c->err);
    else
        http_reply(c->req, 200, "{}");
}

static void on_config(void *arg, const struct db_result *r)
{
    update_done(((struct update *)arg)->call, db_rc(r), db_error(r)->text);
}

/* The core has made the change; the stored configuration follows, for whoever reads or forks it. */
static void on_updated(void *arg, const struct core_reply *r)
{
    struct update *u = arg;
    struct core_exp_view v;
    if (r->code < 0 || !core_exp_get(api_core(u->call->sh), u->exp_id, &v)) {
        update_done(u->call, r->code, core_reply_text(r));
        return;
    }
    enum core_scheduler s = core_pool_options(api_core(u->call->sh), v.pool)->scheduler;
    JSON_OWN now = json_make("{s:s}", "resource_pool", v.pool);
    if (s == CORE_PRIORITY)
        json_set(now, "priority", json_integer(v.priority));
    else if (s == CORE_FAIR_SHARE)
        json_set(now, "weight", json_double(v.weight));
    det_cleanup(freep) char *text = json_text(now);
    db_exp_edit(u->call->sh->db, u->exp_id, &(struct db_exp_edit){.resources = text}, on_config, u);
}

void api_update_job_queue(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *list = api_list(req, body, "updates");
    if (!list)
        return;
    size_t n = json_array_size(list);
    if (n > UPDATES_MAX) {
        http_fail(req, DET_EINVAL, "updates: at most %d at once", UPDATES_MAX);
        return;
    }
    det_cleanup(freep) struct core_event *evs = det_reallocarray(NULL, n + 1, sizeof *evs);
    for (size_t i = 0; i < n; i++)
        if (control_read(sh, json_array_get(list, i), i, evs, &err) < 0) {
            http_fail_err(req, &err);
            return;
        }
    if (n == 0) {
        http_reply(req, 200, "{}");
        return;
    }
    struct update_call *c = http_mem(req, sizeof *c);
    struct update *u = http_mem(req, n * sizeof *u);
    *c = (struct update_call){.sh = sh, .req = req, .left = n};
    for (size_t i = 0; i < n; i++) {
        u[i] = (struct update){.call = c, .exp_id = evs[i].exp_id};
        driver_post(sh->driver, &evs[i], on_updated, &u[i]);
    }
}
