/* Logs: the read routes of trials and tasks, and what shippers send. */
#include "api_handlers.h"
#include "api_logs.h"
#include "api_util.h"
#include "db_logs.h"
#include "db_task_read.h"
#include "db_trial_read.h"
#include "driver.h"
#include "hooks.h"
#include "hub.h"
#include "large.h"
#include "logpolicy.h"
#include "shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { POST_LINES_MAX = 10000 }; /* ten times what det-task sends at a time */

/* Of a read that first looks its task up. */
struct log_call {
    struct shell *sh;
    struct http_req *req;
    struct db_log_filter f;
    int64_t limit, owner; /* the trial whose task it is; 0: none */
    bool follow, fields;
};

/* A wrong expression is refused before the stream begins. */
static void on_regex(void *arg, const struct db_result *r)
{
    struct log_call *c = arg;
    struct det_err err;
    logs_error(r, &err);
    if (err.code == DET_EINVAL) /* the statement is ours */
        http_fail(c->req, DET_EINVAL, "searchText is not a regular expression: %s", db_words(r));
    else if (err.code)
        http_fail_err(c->req, &err);
    else
        logs_stream(c->sh, c->req, &c->f, c->owner, c->limit, c->follow);
}

static void log_begin(struct log_call *c, const char *task_id, int64_t trial_id)
{
    c->f.task_id = http_strdup(c->req, task_id);
    c->owner = trial_id;
    if (c->f.search && c->f.is_regex && !c->fields)
        db_log_regex_check(c->sh->db, c->f.search, on_regex, c);
    else if (c->fields)
        logs_fields_stream(c->sh, c->req, task_id, trial_id, c->f.trial_id > 0, c->follow);
    else
        logs_stream(c->sh, c->req, &c->f, trial_id, c->limit, c->follow);
}

static void on_trial(void *arg, const struct db_result *r)
{
    struct log_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0)
        http_fail(c->req, DET_ENOENT, "trial %" PRId64 " not found", c->f.trial_id);
    else
        log_begin(c, db_text(r, 0, TRIAL_COL_TASK), c->f.trial_id);
}

static void on_task(void *arg, const struct db_result *r)
{
    struct log_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0 || db_is_null(r, 0, TASK_READ_DOC))
        http_fail(c->req, DET_ENOENT, "task %.100s not found", http_param(c->req, "taskId"));
    else
        log_begin(c, http_param(c->req, "taskId"), db_i64(r, 0, TASK_READ_TRIAL));
}

static struct log_call *log_call(struct shell *sh, struct http_req *req, bool fields)
{
    struct log_call *c = http_mem(req, sizeof *c);
    *c = (struct log_call){.sh = sh, .req = req, .fields = fields};
    return logs_query(req, &c->f, &c->limit, &c->follow) ? c : NULL;
}

static void trial_read(struct shell *sh, struct http_req *req, bool fields)
{
    struct log_call *c = log_call(sh, req, fields);
    if (c && api_id(req, "trialId", &c->f.trial_id))
        db_trial_read(sh->db, c->f.trial_id, on_trial, c);
}

static void task_read(struct shell *sh, struct http_req *req, bool fields)
{
    struct log_call *c = log_call(sh, req, fields);
    if (c)
        db_task_read(sh->db, http_param(req, "taskId"), on_task, c);
}

void api_trial_logs(struct shell *sh, struct http_req *req)
{
    trial_read(sh, req, false);
}

void api_trial_logs_fields(struct shell *sh, struct http_req *req)
{
    trial_read(sh, req, true);
}

void api_task_logs(struct shell *sh, struct http_req *req)
{
    task_read(sh, req, false);
}

void api_task_logs_fields(struct shell *sh, struct http_req *req)
{
    task_read(sh, req, true);
}

/* ---- What shippers send ---- */

struct line_body {
    const char *task_id, *allocation_id, *agent_id, *container_id, *stdtype, *source;
    int64_t rank, time_us, offset;
    int level;
    json_t *id, *log;
};
#define L(member) offsetof(struct line_body, member)
static const struct wire_field line_fields[] = {
    {"taskId", WIRE_STR, L(task_id), WIRE_REQUIRED, NULL},
    {"allocationId", WIRE_STR, L(allocation_id), 0, NULL},
    {"agentId", WIRE_STR, L(agent_id), 0, NULL},
    {"containerId", WIRE_STR, L(container_id), 0, NULL},
    {"stdtype", WIRE_STR, L(stdtype), 0, NULL},
    {"source", WIRE_STR, L(source), 0, NULL},
    {"rankId", WIRE_I32, L(rank), 0, NULL},
    {"timestamp", WIRE_TIME, L(time_us), 0, NULL},
    {"offset", WIRE_I64, L(offset), 0, NULL}, /* ours: number of the line in its spool */
    {"level", WIRE_ENUM, L(level), 0, wire_log_level},
    {"id", WIRE_ANY, L(id), 0, NULL},
    {"log", WIRE_ANY, L(log), 0, NULL}, /* may hold NUL, so no WIRE_STR */
};

static int line_read(const json_t *j, size_t i, struct db_log_line *l, struct det_err *err)
{
    char where[48];
    struct line_body b = {.rank = -1, .offset = -1};
    snprintf(where, sizeof where, "logs[%zu]", i);
    int rc = wire_decode(j, where, line_fields, DET_ARRAY_LEN(line_fields), &b, err);
    if (rc < 0)
        return rc;
    if (!*b.task_id)
        return det_fail(err, DET_EINVAL, "%s.taskId is required", where);
    if (b.id)
        return det_fail(err, DET_EINVAL, "%s.id: ids are given out by the master; leave it out",
                        where);
    if (b.log && !json_is_string(b.log))
        return det_fail(err, DET_EINVAL, "%s.log: expected a string", where);
    *l = (struct db_log_line){.task_id = b.task_id,
                              .allocation_id = b.allocation_id,
                              .agent_id = b.agent_id,
                              .container_id = b.container_id,
                              .stdtype = b.stdtype,
                              .source = b.source,
                              .rank = b.rank,
                              .level = b.level,
                              .time_us = b.time_us,
                              .offset = b.offset,
                              .log = b.log ? json_string_value(b.log) : "",
                              .log_len = b.log ? json_string_length(b.log) : 0};
    return 0;
}

static int lines_read(const struct http_req *req, const json_t *list, struct db_log_line *lines,
                      struct det_err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        int rc = line_read(json_array_get(list, i), i, &lines[i], err);
        if (rc < 0)
            return rc;
        if (strcmp(lines[i].task_id, lines[0].task_id))
            return det_fail(err, DET_EINVAL, "logs[%zu].taskId: all lines must be of one task", i);
        if (req->who.kind == WHO_ALLOC &&
            (strcmp(lines[i].task_id, req->who.task_id) ||
             (lines[i].allocation_id && strcmp(lines[i].allocation_id, req->who.alloc_id))))
            return det_fail(err, DET_EPERM, "logs[%zu]: this task's token may not log for another",
                            i);
        if (!lines[i].allocation_id && req->who.kind == WHO_ALLOC)
            lines[i].allocation_id = req->who.alloc_id;
    }
    return 0;
}

/* A batch is answered once its lines, and what its policies made of them, are committed: whoever
 * gets no answer sends it again. */
struct post {
    struct shell *sh;
    struct http_req *req;
    const char *task_id;
    size_t lines, waits; /* waits: for the rows and for each policy that matched */
    int rc;
    struct det_err err; /* of the first that failed */
};

static void on_part(struct post *p, int rc, const char *text)
{
    if (rc < 0 && p->rc == 0)
        p->rc = det_fail(&p->err, rc, "%s", text);
    if (--p->waits > 0)
        return;
    api_reply_done(p->req, p->rc, &p->err);
}

static void on_logged(void *arg, int rc, const struct det_err *err)
{
    struct post *p = arg;
    if (rc == 0) {
        hub_notify(p->sh->hub, p->task_id);
        p->sh->counts.log_lines += (uint64_t)p->lines;
    }
    on_part(p, rc, err->text);
}

/* A trial that has ended meanwhile has nothing left to decide. */
static void on_policy(void *arg, const struct core_reply *r)
{
    on_part(arg, r->code == DET_EUNAVAIL ? r->code : 0, core_reply_text(r));
}

/* Only what a trial's own tasks send counts. Before the rows are written: an exit that is told
 * after its lines finds them judged. */
static void post_policies(struct post *p, const struct db_log_line *lines)
{
    const struct http_who *who = &p->req->who;
    struct logpolicy_hit hits[LOGPOLICY_HITS_MAX];
    if (who->kind != WHO_ALLOC || who->trial_id == 0)
        return;
    size_t n = logpolicies_match(p->sh->policies, who->experiment_id,
                                 core_exp_log_policies(api_core(p->sh), who->experiment_id), lines,
                                 p->lines, hits);
    p->waits += n;
    for (size_t i = 0; i < n; i++) {
        struct core_event ev = {.kind = CORE_EV_LOG_POLICY,
                                .trial_id = who->trial_id,
                                .agent_id = hits[i].agent_id,
                                .policy = hits[i].policy};
        driver_post(p->sh->driver, &ev, on_policy, p);
    }
}

/* Whoever gets no answer sends the lines again, and a task is told of once. */
static void on_hook(void *arg, int rc, const struct det_err *err)
{
    on_part(arg, rc, err ? err->text : NULL);
}

/* {"logs": [..]}; old clients send the list alone. NULL: answered. */
static json_t *post_body(struct http_req *req)
{
    struct det_err err;
    const struct large *large = large_body(req);
    json_t *body = large ? json_incref(large->json)
                         : json_parse_nul(req->body.p ? req->body.p : "", req->body.len, &err);
    if (json_is_array(body))
        return json_make("{s:o}", "logs", body);
    if (body && !json_is_object(body))
        det_fail(&err, DET_EINVAL, "expected an object with logs, or a list of them");
    if (json_is_object(body))
        return body;
    json_decref(body);
    http_fail(req, DET_EINVAL, "body: %s", err.text);
    return NULL;
}

void api_post_task_logs(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    JSON_OWN body = post_body(req);
    if (!body)
        return;
    const json_t *list = api_list(req, body, "logs");
    if (!list)
        return;
    size_t n = json_array_size(list);
    if (n == 0) {
        http_fail(req, DET_EINVAL, "logs: expected a list with at least one line");
        return;
    }
    if (n > POST_LINES_MAX) {
        http_fail(req, DET_ETOOBIG, "logs: %d lines are the most of one request, and it has %zu",
                  POST_LINES_MAX, n);
        return;
    }
    det_cleanup(freep) struct db_log_line *lines = det_reallocarray(NULL, n, sizeof *lines);
    if (lines_read(req, list, lines, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    struct post *p = http_mem(req, sizeof *p);
    *p = (struct post){.sh = sh, .req = req, .lines = n, .waits = 1};
    p->task_id = http_strdup(req, lines[0].task_id);
    post_policies(p, lines);
    if (req->who.kind == WHO_ALLOC)
        p->waits += hooks_match(sh->hooks, lines, n, on_hook, p);
    db_logs_write(sh->db, lines, n, on_logged, p);
}

void api_post_task_logs_plain(struct shell *sh, struct http_req *req)
{
    api_post_task_logs(sh, req);
}
