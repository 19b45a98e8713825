#include "api_util.h"
#include "driver.h"
#include "large.h"
#include "log.h"
#include "shell.h"
#include <inttypes.h>
#include <string.h>

struct api_call *api_call(struct shell *sh, struct http_req *req)
{
    struct api_call *c = http_mem(req, sizeof *c);
    c->sh = sh;
    c->req = req;
    return c;
}

json_t *api_body_any(struct http_req *req, bool *ret_empty)
{
    struct det_err err;
    const struct large *large = large_body(req);
    *ret_empty = false;
    if (large)
        return json_incref(large->json);
    size_t blank = req->body.len ? strspn(req->body.p, " \t\r\n") : 0;
    *ret_empty = blank == req->body.len;
    if (*ret_empty)
        return NULL;
    json_t *j = json_parse(req->body.p, req->body.len, &err);
    if (!j)
        http_fail(req, DET_EINVAL, "body: %s", err.text);
    return j;
}

json_t *api_body(struct http_req *req)
{
    bool empty;
    json_t *j = api_body_any(req, &empty);
    if (empty || json_is_null(j)) {
        json_decref(j);
        return json_object();
    }
    if (j && !json_is_object(j)) {
        json_decref(j);
        http_fail(req, DET_EINVAL, "body: expected an object");
        return NULL;
    }
    return j;
}

bool api_decode(struct http_req *req, const struct wire_field *fields, size_t n, void *ret,
                json_t **ret_body)
{
    struct det_err err;
    *ret_body = api_body(req);
    if (!*ret_body)
        return false;
    if (wire_decode(*ret_body, "", fields, n, ret, &err) == 0)
        return true;
    http_fail_err(req, &err);
    json_decref(*ret_body);
    *ret_body = NULL;
    return false;
}

json_t *api_sizes(const json_t *j, struct det_err *err)
{
    json_t *out = json_object(), *v;
    const char *path;
    json_object_foreach((json_t *)j, path, v)
    {
        int64_t bytes;
        int rc = wire_i64(v, "resources", &bytes, err);
        if (rc == 0 && bytes < 0)
            rc = det_fail(err, DET_EINVAL, "resources: the size of \"%.200s\" is negative", path);
        if (rc < 0) {
            json_decref(out);
            return NULL;
        }
        json_set(out, path, json_integer(bytes));
    }
    return out;
}

const json_t *api_list(struct http_req *req, json_t *body, const char *name)
{
    const json_t *list = wire_get(body, name);
    if (!list) {
        json_set(body, name, json_array());
        list = json_object_get(body, name);
    }
    if (json_is_array(list))
        return list;
    http_fail(req, DET_EINVAL, "%s: expected a list", name);
    return NULL;
}

bool api_id(struct http_req *req, const char *name, int64_t *ret)
{
    struct det_err err;
    if (http_param_i64(req, name, ret, &err) < 0) {
        http_fail_err(req, &err);
        return false;
    }
    if (*ret > INT32_MAX || *ret < 0) {
        api_not_found(req); /* ids are 32 bits */
        return false;
    }
    return true;
}

bool api_failed(struct http_req *req, const struct db_result *r)
{
    if (db_rc(r) == 0)
        return false;
    if (db_rc(r) == DET_EIO)
        log_error("%s, in: %s", db_error(r)->text, db_statement(r));
    if (db_state(r) == DB_STATE_MISSING)
        http_fail(req, DET_ENOENT,
                  "something that this names was deleted meanwhile: look anew, and ask again");
    else
        http_fail_err(req, db_error(r));
    return true;
}

bool api_missing(struct api_call *c, const char *what, const struct db_result *r)
{
    if (api_failed(c->req, r))
        return true;
    if (db_rows(r) > 0)
        return false;
    http_fail(c->req, DET_ENOENT, "%s %" PRId64 " not found", what, c->id);
    return true;
}

/* "/experiments/9/labels" is of an experiment: its noun, and its name in *ret_id. NULL: of another
 * kind. */
static const char *thing_of(const char *path, const char **ret_id, size_t *ret_n)
{
    static const char *const kinds[][2] = {{"/experiments/", "experiment"},
                                           {"/trials/", "trial"},
                                           {"/tasks/", "task"},
                                           {"/allocations/", "allocation"},
                                           {"/users/", "user"},
                                           {"/groups/", "group"},
                                           {"/workspaces/", "workspace"},
                                           {"/projects/", "project"},
                                           {"/tokens/", "token"},
                                           {"/webhooks/", "webhook"},
                                           {"/checkpoints/", "checkpoint"}};
    for (size_t i = 0; i < DET_ARRAY_LEN(kinds); i++) {
        size_t n = strlen(kinds[i][0]);
        if (strncmp(path, kinds[i][0], n) == 0 && path[n]) {
            *ret_id = path + n;
            *ret_n = strcspn(path + n, "/");
            return kinds[i][1];
        }
    }
    return NULL;
}

void api_not_found(struct http_req *req)
{
    const char *path = req->path, *id;
    size_t n;
    if (!strncmp(path, "/api/v1", 7))
        path += 7;
    const char *thing = thing_of(path, &id, &n);
    if (thing)
        http_fail(req, DET_ENOENT, "%s %.*s not found", thing, n < 100 ? (int)n : 100, id);
    else
        http_fail(req, DET_ENOENT, "not found: %.300s", path);
}

void api_reply_doc(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    if (api_failed(req, r))
        return;
    if (db_rows(r) == 0 || db_is_null(r, 0, 0))
        api_not_found(req);
    else
        http_reply(req, 200, db_text(r, 0, 0));
}

void api_reply_done(void *arg, int rc, const struct det_err *err)
{
    if (rc < 0)
        http_fail_err(arg, err);
    else
        http_reply(arg, 200, "{}");
}

void api_reply_core(void *arg, const struct core_reply *r)
{
    if (r->code < 0)
        http_fail(arg, r->code, "%s", core_reply_text(r));
    else
        http_reply(arg, 200, "{}");
}

void api_reply_json(struct http_req *req, json_t *j)
{
    struct buf out = BUF_INIT;
    json_write(&out, j);
    json_decref(j);
    http_reply_buf(req, 200, &out);
    buf_finish(&out);
}

const struct core *api_core(struct shell *sh)
{
    return driver_core(sh->driver);
}

const char *api_device_type(enum core_device d)
{
    return d == CORE_CUDA ? "TYPE_CUDA" : d == CORE_ROCM ? "TYPE_ROCM" : "TYPE_CPU";
}

static const char *run_state_name(enum core_run_state s)
{
    static const char *const names[] = {
        [CORE_RUN_IDLE] = "ACTIVE",     [CORE_RUN_QUEUED] = "QUEUED",
        [CORE_RUN_PULLING] = "PULLING", [CORE_RUN_STARTING] = "STARTING",
        [CORE_RUN_RUNNING] = "RUNNING",
    };
    return names[s];
}

const char *api_exp_state(struct shell *sh, int64_t id, const char *text)
{
    struct core_exp_view v;
    if (!exp_state_is(text, EXP_ACTIVE))
        return text;
    if (!core_exp_get(api_core(sh), id, &v))
        return run_state_name(CORE_RUN_RUNNING);
    return v.state == EXP_ACTIVE ? run_state_name(v.run_state) : text;
}

const char *api_trial_state(struct shell *sh, int64_t id, const char *text)
{
    struct core_trial_view v;
    if (!trial_state_is(text, TRIAL_ACTIVE))
        return text;
    if (!core_trial_get(api_core(sh), id, &v))
        return run_state_name(CORE_RUN_RUNNING);
    return v.state == TRIAL_ACTIVE ? run_state_name(v.run_state) : text;
}

static bool check_own(struct http_req *req, bool is_own, const char *what)
{
    if (req->who.kind != WHO_ALLOC || is_own)
        return true;
    http_fail(req, DET_EPERM, "this task's token may not act for another %s", what);
    return false;
}

bool api_own_trial(struct http_req *req, int64_t trial_id)
{
    return check_own(req, req->who.trial_id == trial_id, "trial");
}

bool api_own_experiment(struct http_req *req, int64_t exp_id)
{
    return check_own(req, req->who.experiment_id == exp_id, "experiment");
}

bool api_own_task(struct http_req *req, const char *task_id)
{
    return check_own(req, !strcmp(req->who.task_id, task_id), "task");
}

bool api_own_alloc(struct http_req *req, const char *alloc_id)
{
    if (!strchr(alloc_id, '.')) {
        http_fail(req, DET_EINVAL,
                  "allocation id \"%.80s\" is malformed: expected <task id>.<number>", alloc_id);
        return false;
    }
    return check_own(req, !strcmp(req->who.alloc_id, alloc_id), "allocation");
}
