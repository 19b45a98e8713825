#include "access.h"

#include "api_util.h"
#include "audit.h"
#include "db_access.h"
#include "masterconf.h"
#include "shell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum db_access_kind kind;
    const char *noun;
} subjects[SUBJECT_COUNT] = {
    [SUBJECT_EXP] = {ACCESS_EXP, "experiment"},
    [SUBJECT_TRIAL] = {ACCESS_TRIAL, "trial"},
    [SUBJECT_CKPT] = {ACCESS_CKPT, "checkpoint"},
    [SUBJECT_JOB] = {ACCESS_JOB, "job"},
    [SUBJECT_TASK] = {ACCESS_TASK, "task"},
    [SUBJECT_ALLOC] = {ACCESS_ALLOC, "allocation"},
    [SUBJECT_WORKSPACE] = {ACCESS_WORKSPACE, "workspace"},
    [SUBJECT_PROJECT] = {ACCESS_PROJECT, "project"},
    [SUBJECT_TEMPLATE] = {ACCESS_TEMPLATE, "template"},
    [SUBJECT_MODEL] = {ACCESS_MODEL, "model"},
    [SUBJECT_USER] = {ACCESS_USER, "user"},
    [SUBJECT_VIEW] = {ACCESS_VIEW, "view"},
    [SUBJECT_TOKEN] = {ACCESS_TOKEN, "token"},
};

static int judge_req(const struct http_req *req, unsigned right, const struct may_what *what,
                     struct det_err *err)
{
    const struct may_who who = {req->who.user_id, req->who.is_admin, req->who.token_id != 0};
    return may(req->sh->conf->authz, &who, right, what, err);
}

/* Of the whole cluster: what is so too of each thing in it. */
static struct may_what describe_cluster(const struct http_req *req)
{
    return (struct may_what){.granted = roles_rights(req->who.roles)};
}

/* Whatever the request is about. */
static bool may_anyhow(const struct http_req *req, const struct rule *rule)
{
    struct det_err err;
    const struct may_what all = describe_cluster(req);
    return judge_req(req, rule->right, &all, &err) == 0;
}

#define NOT_FOUND "%s %.80s not found"

struct ask {
    struct http_req *req;
    struct access_ask in;
    json_t *ids;
};

static void note_refused(json_t *refused, const char *id, const struct det_err *err)
{
    json_set(refused, id, json_make("{s:i,s:s}", "code", err->code, "text", err->text));
}

static const char *text_of(const struct db_result *r, int row, int col)
{
    return db_is_null(r, row, col) ? NULL : db_text(r, row, col);
}

static void judge_row(const struct ask *a, const struct db_result *r, int i, json_t *refused)
{
    struct det_err err;
    char name[120];
    const char *id = db_text(r, i, ACCESS_ID);
    snprintf(name, sizeof name, "%s %.80s", subjects[a->in.subject].noun, id);
    const struct may_what what = {
        .owner_id = db_i64(r, i, ACCESS_OWNER),
        .host_id = db_i64(r, i, ACCESS_HOST),
        .name = name,
        .granted = roles_rights((uint64_t)db_i64(r, i, ACCESS_ROLES)),
        .owner = text_of(r, i, ACCESS_OWNER_NAME),
        .place = text_of(r, i, ACCESS_PLACE),
    };
    if (judge_req(a->req, a->in.rule->right, &what, &err) == 0)
        return;
    bool unseen = a->in.subject == SUBJECT_TOKEN && !a->req->who.is_admin;
    if (unseen && what.owner_id != a->req->who.user_id)
        det_fail(&err, DET_ENOENT, NOT_FOUND, subjects[a->in.subject].noun, id);
    note_refused(refused, id, &err);
}

static void judge_missing(const struct ask *a, const json_t *found, json_t *refused)
{
    struct det_err err;
    for (size_t i = 0; i < json_array_size(a->ids); i++) {
        const char *id = json_string_value(json_array_get(a->ids, i));
        if (json_object_get(found, id))
            continue;
        det_fail(&err, DET_ENOENT, NOT_FOUND, subjects[a->in.subject].noun, id);
        note_refused(refused, id, &err);
    }
}

static void on_facts(void *arg, const struct db_result *r)
{
    struct ask *a = arg;
    if (api_failed(a->req, r)) {
        a->in.cb(a->in.arg, NULL);
    } else {
        JSON_OWN refused = json_object();
        JSON_OWN found = json_object();
        for (int i = 0; i < db_rows(r); i++) {
            json_set(found, db_text(r, i, ACCESS_ID), json_true());
            judge_row(a, r, i, refused);
        }
        judge_missing(a, found, refused);
        a->in.cb(a->in.arg, refused);
    }
    json_decref(a->ids);
    free(a);
}

void access_ask(struct http_req *req, const struct access_ask *in, const json_t *ids)
{
    if (json_array_size(ids) == 0 || req->who.kind != WHO_USER || may_anyhow(req, in->rule)) {
        JSON_OWN none = json_object();
        in->cb(in->arg, none);
        return;
    }
    struct ask *a = det_zalloc(sizeof *a);
    *a = (struct ask){req, *in, json_deep_copy(ids)};
    det_cleanup(freep) char *text = json_text(ids);
    db_access(req->sh->db, subjects[in->subject].kind, req->who.user_id, text, on_facts, a);
}

static const json_t *first_of(const json_t *refused)
{
    return json_object_iter_value(json_object_iter((json_t *)refused));
}

bool access_refused(struct http_req *req, const json_t *refused)
{
    const json_t *first = first_of(refused);
    if (first)
        http_fail(req, (int)json_int(first, "code", 0), "%s", json_str(first, "text", ""));
    return first != NULL;
}

bool access_refused_because(struct http_req *req, const json_t *refused, const char *because)
{
    const json_t *first = first_of(refused);
    if (first)
        http_fail(req, (int)json_int(first, "code", 0), "%s: %s", because,
                  json_str(first, "text", ""));
    return first != NULL;
}

struct one {
    struct http_req *req;
    struct access_one in;
};

static void on_one(void *arg, const json_t *refused)
{
    struct one *o = arg;
    if (refused && !access_refused(o->req, refused))
        o->in.go_on(o->in.arg);
}

void access_ask_one(struct http_req *req, const struct access_one *in, int64_t id)
{
    struct det_err err;
    const struct may_what all = describe_cluster(req);
    if (id == 0 && judge_req(req, in->rule->right, &all, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    struct one *o = http_mem(req, sizeof *o);
    *o = (struct one){req, *in};
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, id);
    JSON_OWN ids = id ? json_make("[s]", text) : json_array();
    access_ask(req, &(struct access_ask){in->rule, in->subject, on_one, o}, ids);
}

/* ---- the door ---- */

/* What the rule names, as strings; NULL: answered. New reference. */
static json_t *ids_of(struct http_req *req, const struct rule *rule)
{
    struct det_err err;
    int64_t id;
    if (rule->where[0] != '.') {
        if (subject_is_number(rule->subject) && !api_id(req, rule->where, &id))
            return NULL;
        JSON_OWN name = json_string(http_param(req, rule->where));
        if (!name)
            http_fail(req, DET_EINVAL, "%s: expected UTF-8", rule->where);
        return name ? json_make("[O]", name) : NULL;
    }
    bool empty;
    JSON_OWN body = api_body_any(req, &empty);
    if (!body && !empty)
        return NULL;
    json_t *ids = json_array();
    if (rule_ids(rule, body, ids, &err) == 0)
        return ids;
    http_fail_err(req, &err);
    json_decref(ids);
    return NULL;
}

struct door {
    struct http_req *req;
    const struct rule *rule;
    http_handler *fn;
};

static void go_in(void *arg)
{
    const struct door *d = arg;
    d->fn(d->req->sh, d->req);
}

/* What names no workspace goes into the first. */
static void enter_first(struct door *d)
{
    const struct rule *making = &rules_all[ROUTE_post_template];
    access_ask_one(d->req, &(struct access_one){making, SUBJECT_WORKSPACE, go_in, d}, 1);
}

static void on_judged(void *arg, const json_t *refused)
{
    struct door *d = arg;
    const json_t *first = first_of(refused);
    if (d->rule == &rules_all[ROUTE_put_template] && json_int(first, "code", 0) == DET_ENOENT)
        enter_first(d); /* it makes what is not there */
    else if (refused && !access_refused(d->req, refused))
        go_in(d);
}

static void enter_about(struct http_req *req, const struct rule *rule, http_handler *fn)
{
    JSON_OWN ids = ids_of(req, rule);
    if (!ids)
        return;
    struct door *d = http_mem(req, sizeof *d);
    *d = (struct door){req, rule, fn};
    if (rule->subject == SUBJECT_WORKSPACE && json_array_size(ids) == 0)
        enter_first(d);
    else
        access_ask(req, &(struct access_ask){rule, rule->subject, on_judged, d}, ids);
}

/* A heartbeat of a training that runs elsewhere; else it says how that ended. */
static bool is_heartbeat(const struct http_req *req)
{
    JSON_OWN body = json_parse(req->body.p, req->body.len, NULL);
    return !json_is_string(wire_get(body, "state"));
}

/* What a training that runs elsewhere says all the time; that it begins or ends is a line. */
static bool is_chatter(const struct http_req *req, const struct rule *rule)
{
    static const enum route_id routes[] = {
        ROUTE_post_task_logs,        ROUTE_post_task_logs_plain,    ROUTE_post_metrics,
        ROUTE_post_training_metrics, ROUTE_post_validation_metrics, ROUTE_post_progress,
        ROUTE_post_profiler_metrics, ROUTE_post_runner_metadata,    ROUTE_post_metrics_batch,
    };
    if (rule == &rules_all[ROUTE_patch_trial])
        return is_heartbeat(req);
    for (size_t i = 0; i < DET_ARRAY_LEN(routes); i++)
        if (rule == &rules_all[routes[i]])
            return true;
    return false;
}

/* Settings of one's own page and searches that only read are not worth a line. */
static bool is_change(const struct http_req *req, const struct rule *rule)
{
    return req->who.kind == WHO_USER && req->method != HTTP_GET && !is_chatter(req, rule) &&
           (rule->right != RIGHT_SEE || rule == &rules_all[ROUTE_logout] ||
            rule == &rules_all[ROUTE_make_login_link]);
}

void access_enter(struct http_req *req, const struct rule *rule, http_handler *fn)
{
    struct det_err err;
    const struct may_what all = describe_cluster(req);
    if (is_change(req, rule))
        audit_begin(req, (enum route_id)(rule - rules_all));
    if (rule->right == 0) {
        http_fail(req, DET_EPERM, "nobody may do this: it has no rule");
    } else if (req->who.kind == WHO_ALLOC || rule->subject == SUBJECT_ASKS ||
               may_anyhow(req, rule)) {
        fn(req->sh, req);
    } else if (rule->subject == SUBJECT_NONE) {
        det_ignore(judge_req(req, rule->right, &all, &err), "may_anyhow() said no: err has why");
        http_fail_err(req, &err);
    } else {
        enter_about(req, rule, fn);
    }
}
