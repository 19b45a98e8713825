/* Webhooks: kept, listed, tried. Only administrators: the master itself dials what they name. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_webhooks.h"
#include "hooks.h"
#include "pattern.h"
#include "shell.h"
#include "uuid.h"
#include "webhooks.h"

#include "clk.h"
#include <inttypes.h>
#include <string.h>

/* As the database has them; the others of Determined's have no meaning here. */
static const struct wire_name types[] = {
    {"WEBHOOK_TYPE_DEFAULT", 1}, {"WEBHOOK_TYPE_SLACK", 2}, {NULL, 0}};
enum { TRIGGER_STATE = 1, TRIGGER_METRIC, TRIGGER_LOG };
static const struct wire_name trigger_types[] = {
    {"TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", TRIGGER_STATE},
    {"TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED", TRIGGER_METRIC},
    {"TRIGGER_TYPE_TASK_LOG", TRIGGER_LOG},
    {NULL, 0}};
static const char *const states[] = {"ACTIVE", "PAUSED", "COMPLETED", "CANCELED", "ERROR"};

void api_get_webhooks(struct shell *sh, struct http_req *req)
{
    db_webhook_list(sh->db, api_reply_doc, req);
}

void api_get_webhook_key(struct shell *sh, struct http_req *req)
{
    db_webhook_key(sh->db, api_reply_doc, req);
}

struct trigger_body {
    int64_t id, webhook_id; /* of one that was read; given anew */
    int type;
    json_t *condition;
};
static const struct wire_field trigger_fields[] = {
    {"id", WIRE_I32, offsetof(struct trigger_body, id), 0, NULL},
    {"webhookId", WIRE_I32, offsetof(struct trigger_body, webhook_id), 0, NULL},
    {"triggerType", WIRE_ENUM, offsetof(struct trigger_body, type), WIRE_REQUIRED, trigger_types},
    {"condition", WIRE_ANY, offsetof(struct trigger_body, condition), WIRE_REQUIRED, NULL},
};

static int check_state(const json_t *condition, const char *where, struct det_err *err)
{
    const char *state = json_str(condition, "state", "");
    for (size_t i = 0; i < DET_ARRAY_LEN(states); i++)
        if (strcmp(state, states[i]) == 0)
            return 0;
    return det_fail(err, DET_EINVAL,
                    "%s.condition.state: expected ACTIVE, PAUSED, COMPLETED, CANCELED or ERROR",
                    where);
}

static int check_regex(const json_t *condition, const char *where, struct det_err *err)
{
    struct pattern *p = NULL;
    int rc = pattern_compile(json_str(condition, "regex", ""), &p, err);
    pattern_destroy(p);
    if (rc == 0 && !*json_str(condition, "regex", ""))
        rc = det_fail(err, DET_EINVAL, "expected a regular expression");
    return rc < 0 ? det_wrap(err, rc, "%s.condition.regex", where) : 0;
}

/* Appends it as the database keeps it. */
static int trigger_read(const json_t *j, size_t i, json_t *out, struct det_err *err)
{
    char where[48];
    struct trigger_body b = {0};
    snprintf(where, sizeof where, "webhook.triggers[%zu]", i);
    int rc = wire_decode(j, where, trigger_fields, DET_ARRAY_LEN(trigger_fields), &b, err);
    if (rc < 0)
        return rc;
    if (b.type == TRIGGER_METRIC)
        return det_fail(err, DET_EUNIMPL,
                        "%s.triggerType: thresholds of metrics are not watched here", where);
    rc = b.type == TRIGGER_STATE ? check_state(b.condition, where, err)
                                 : check_regex(b.condition, where, err);
    if (rc < 0)
        return rc;
    bool is_state = b.type == TRIGGER_STATE;
    const char *key = is_state ? "state" : "regex";
    json_array_append_new(out, json_make("{s:s, s:{s:s}}", "triggerType",
                                         is_state ? "EXPERIMENT_STATE_CHANGE" : "TASK_LOG",
                                         "condition", key, json_str(b.condition, key, "")));
    return 0;
}

struct hook_body {
    int64_t id;
    const char *url;
    json_t *triggers;
    int type;
};
static const struct wire_field hook_fields[] = {
    {"id", WIRE_I32, offsetof(struct hook_body, id), 0, NULL},
    {"url", WIRE_STR, offsetof(struct hook_body, url), WIRE_REQUIRED, NULL},
    {"triggers", WIRE_ANY, offsetof(struct hook_body, triggers), 0, NULL},
    {"webhookType", WIRE_ENUM, offsetof(struct hook_body, type), WIRE_REQUIRED, types},
};

static int triggers_read(const struct hook_body *b, json_t *out, struct det_err *err)
{
    size_t n = json_array_size(b->triggers);
    if (n == 0 || n > WEBHOOK_TRIGGERS_MAX)
        return det_fail(err, DET_EINVAL, "webhook.triggers: expected a list of 1 to %d",
                        WEBHOOK_TRIGGERS_MAX);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = trigger_read(json_array_get(b->triggers, i), i, out, err);
    return rc;
}

static void on_created(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    if (api_failed(req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(req, DET_ESTATE, "there are %d webhooks, which is all that are kept: delete one",
                  WEBHOOKS_MAX);
        return;
    }
    if (req->sh->hooks) /* NULL: the master ends */
        hooks_changed(req->sh->hooks);
    api_reply_doc(req, r);
}

void api_post_webhook(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    struct hook_body b = {0};
    struct webhook_url url;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    JSON_OWN triggers = json_array();
    const json_t *in = json_obj(body, "webhook");
    int rc = in ? wire_decode(in, "webhook", hook_fields, DET_ARRAY_LEN(hook_fields), &b, &err)
                : det_fail(&err, DET_EINVAL, "webhook is required");
    if (rc == 0 && (rc = webhook_read_url(b.url, hooks_networks(sh->hooks), &url, &err)) < 0)
        rc = det_wrap(&err, rc, "webhook");
    if (rc == 0)
        rc = triggers_read(&b, triggers, &err);
    if (rc < 0) {
        http_fail_err(req, &err);
        return;
    }
    det_cleanup(freep) char *list = json_text(triggers);
    struct db_webhook w = {b.url, b.type == 1 ? "DEFAULT" : "SLACK", list, req->who.user_id};
    db_webhook_create(sh->db, &w, WEBHOOKS_MAX, on_created, req);
}

struct hook_call {
    struct http_req *req;
    int64_t id;
};

static void not_found(struct hook_call *c)
{
    http_fail(c->req, DET_ENOENT, "webhook %" PRId64 " not found", c->id);
}

/* NULL: answered. */
static struct hook_call *call_of(struct http_req *req)
{
    struct hook_call *c = http_mem(req, sizeof *c);
    c->req = req;
    return api_id(req, "id", &c->id) ? c : NULL;
}

static void on_deleted(void *arg, const struct db_result *r)
{
    struct hook_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        not_found(c);
        return;
    }
    if (c->req->sh->hooks)
        hooks_deleted(c->req->sh->hooks, c->id);
    api_reply_json(c->req, json_object());
}

void api_delete_webhook(struct shell *sh, struct http_req *req)
{
    struct hook_call *c = call_of(req);
    if (c)
        db_webhook_delete(sh->db, c->id, on_deleted, c);
}

static void on_tested(void *arg, const char *why)
{
    struct hook_call *c = arg;
    if (*why)
        http_fail(c->req, DET_ESTATE, "the test was not taken: %s", why);
    else
        api_reply_json(c->req, json_make("{s:b}", "completed", 1));
}

static void on_found(void *arg, const struct db_result *r)
{
    struct hook_call *c = arg;
    char id[UUID_STR_MAX];
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        not_found(c);
        return;
    }
    uuid_random(id);
    JSON_OWN event = json_make("{s:s, s:s, s:I, s:{}, s:{s:s}}", "event_id", id, "event_type",
                               "TEST", "timestamp", clk_wall_us() / 1000000, "condition",
                               "event_data", "data", "a test of this webhook");
    det_cleanup(freep) char *payload = json_text(event);
    struct hook_event e = {db_text(r, 0, 1), payload, db_text(r, 0, 2)};
    hooks_try(c->req->sh->hooks, db_text(r, 0, 0), &e, on_tested, c);
}

void api_test_webhook(struct shell *sh, struct http_req *req)
{
    struct hook_call *c = call_of(req);
    if (c)
        db_webhook_find(sh->db, c->id, on_found, c);
}
