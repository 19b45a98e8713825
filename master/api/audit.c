#include "audit.h"

#include "api_handlers.h"
#include "api_util.h"
#include "db_audit.h"
#include "log.h"
#include "shell.h"

#include <inttypes.h>
#include <string.h>

enum { BODY_BYTES_MAX = 256 << 10, DETAIL_BYTES_MAX = 4096, TEXT_MAX = 200, LIST_MAX = 200 };

/* ---- what of a body is kept: these members only, so that no secret comes in ---- */

static const char *const members[] = {
    "active",
    "activate",
    "address",
    "admin",
    "agentGid",
    "agentGroup",
    "agentId",
    "agentUid",
    "agentUser",
    "agentUserGroup",
    "aheadOf",
    "allocationId",
    "archived",
    "behindOf",
    "checkpointGlobs",
    "checkpoints",
    "checkpointUuids",
    "description",
    "destinationProjectId",
    "displayName",
    "drain",
    "dryRun",
    "excludedExperimentIds",
    "experimentId",
    "experimentIds",
    "filters",
    "id",
    "jobId",
    "labels",
    "maxSlots",
    "name",
    "parentId",
    "path",
    "priority",
    "projectId",
    "remote",
    "resourcePool",
    "resources",
    "saveExperimentBest",
    "saveTrialBest",
    "saveTrialLatest",
    "state",
    "states",
    "storeId",
    "template",
    "setRevoked",
    "lifespan",
    "lifespanSeconds",
    "userId",
    "updates",
    "user",
    "userIds",
    "username",
    "uuid",
    "validateOnly",
    "weight",
    "workspaceId",
};

static json_t *kept_value(const json_t *v, int depth);

static json_t *kept_object(const json_t *v, int depth)
{
    json_t *out = json_object();
    for (size_t i = 0; i < DET_ARRAY_LEN(members); i++) {
        const json_t *m = wire_get(v, members[i]);
        if (m)
            json_set(out, members[i], kept_value(m, depth + 1));
    }
    return out;
}

static json_t *kept_list(const json_t *v, int depth)
{
    json_t *out = json_array();
    size_t n = json_array_size(v);
    for (size_t i = 0; i < n && i < LIST_MAX; i++)
        json_array_append_new(out, kept_value(json_array_get(v, i), depth + 1));
    if (n > LIST_MAX)
        json_array_append_new(out, json_string("..."));
    return out;
}

static json_t *kept_value(const json_t *v, int depth)
{
    if (depth > 4)
        return json_string("...");
    if (json_is_object(v))
        return kept_object(v, depth);
    if (json_is_array(v))
        return kept_list(v, depth);
    if (json_is_string(v) && json_string_length(v) > TEXT_MAX)
        return json_string("...");
    return json_deep_copy(v);
}

/* Caller frees; NULL: nothing to tell. */
static char *detail_of(const struct http_req *req)
{
    if (req->body.len == 0 || req->body.len > BODY_BYTES_MAX)
        return NULL;
    JSON_OWN body = json_parse(req->body.p, req->body.len, NULL);
    if (!json_is_object(body) && !json_is_array(body))
        return NULL;
    JSON_OWN some = kept_value(body, 0);
    if (json_object_size(some) + json_array_size(some) == 0)
        return NULL;
    char *text = json_text(some);
    if (strlen(text) <= DETAIL_BYTES_MAX)
        return text;
    free(text);
    return det_strdup("{\"cut\":true}");
}

/* ---- rows ---- */

static const char *const methods[HTTP_METHOD_COUNT] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

/* The path as UTF-8: bytes that are none become '?'. */
static const char *path_of(struct http_req *req)
{
    char *path = http_strdup(req, req->path);
    JSON_OWN good = json_string(path);
    for (char *c = path; *c && !good; c++)
        if ((unsigned char)*c > 126)
            *c = '?';
    return path;
}

/* A row on its way; the request, which owns it, is not answered before it is there. */
struct line {
    struct http_req *req;
    struct db_audit_row row; /* texts: of the request's memory */
    bool is_lost;            /* it was not written, at the first attempt */
    int status;              /* of the answer that waits; 0: there is none yet */
};

static void on_written(void *arg, const struct db_result *r);

static void write_line(struct line *l)
{
    db_audit_write(l->req->sh->db, &l->row, on_written, l);
}

/* Both are known, that it was not written and how the request ended: what was done is to have its
 * line, which PostgreSQL takes if it took the change. */
static void write_again(struct line *l)
{
    if (l->status >= 400)
        http_release(l->req);
    else
        write_line(l);
}

static void on_written(void *arg, const struct db_result *r)
{
    struct line *l = arg;
    if (db_rc(r) == 0) {
        http_release(l->req);
        return;
    }
    bool is_away = db_rc(r) == DET_EUNAVAIL || db_rc(r) == DET_ECANCELED;
    if (!is_away) {
        log_error("the audit log refused a line of %s: %s", l->row.operation, db_error(r)->text);
        l->row.detail = NULL; /* the only part that could be at fault */
    }
    if (l->is_lost) {
        http_release_unknown(l->req, "the audit log cannot be written: this may be done; look "
                                     "before asking again");
        return;
    }
    l->is_lost = true;
    if (l->status)
        write_again(l);
}

static void on_kept(struct http_req *req, void *arg, int status)
{
    struct line *l = arg;
    l->status = status;
    if (l->is_lost)
        write_again(l);
}

/* Takes a copy of *row, but for its texts. */
static struct line *begin_line(struct http_req *req, const struct db_audit_row *row)
{
    struct line *l = http_mem(req, sizeof *l);
    char *address = http_mem(req, HTTP_ADDRESS_MAX);
    *l = (struct line){.req = req, .row = *row};
    l->row.n = (int64_t)++req->sh->counts.audited;
    l->row.address = http_address(req, address);
    l->row.method = methods[req->method];
    l->row.path = path_of(req);
    http_hold(req, on_kept, l);
    write_line(l);
    return l;
}

/* Without its status a line is there all the same. */
static void on_status(void *arg, const struct db_result *r)
{
    if (db_rc(r) < 0 && db_rc(r) != DET_EUNAVAIL && db_rc(r) != DET_ECANCELED)
        log_error("a line of the audit log lacks its status: %s", db_error(r)->text);
}

static void on_answer(struct http_req *req, void *arg, int status)
{
    const struct line *l = arg;
    db_audit_answered(req->sh->db, l->row.n, status, on_status, NULL);
}

void audit_begin(struct http_req *req, enum route_id route)
{
    det_cleanup(freep) char *detail = detail_of(req);
    struct db_audit_row row = {.user_id = req->who.user_id,
                               .username = req->who.username,
                               .token_id = req->who.token_id,
                               .operation = routes_all[route].name,
                               .detail = detail ? http_strdup(req, detail) : NULL};
    http_on_answer(req, on_answer, begin_line(req, &row));
}

void audit_login(struct http_req *req, int64_t user_id, const char *username)
{
    struct db_audit_row row = {.user_id = user_id,
                               .username = http_strdup(req, username),
                               .operation = "login",
                               .status = 200};
    begin_line(req, &row);
}

/* ---- GET /master/audit ---- */

/* "12.345"; absent: the newest. */
static bool cursor_read(struct http_req *req, struct db_audit_filter *f)
{
    const char *text = http_query(req, "before");
    int end = 0;
    if (!text || !*text)
        return true;
    if (sscanf(text, "%" SCNd64 ".%" SCNd64 "%n", &f->before_epoch, &f->before_n, &end) == 2 &&
        !text[end] && f->before_epoch > 0)
        return true;
    http_fail(req, DET_EINVAL, "before: \"%.40s\" is not the id of an entry, as 12.345", text);
    return false;
}

void api_get_audit(struct shell *sh, struct http_req *req)
{
    struct db_audit_filter f = {.username = http_query(req, "username"),
                                .operation = http_query(req, "operation")};
    if (!api_query_i64(req, "limit", 100, &f.limit) || !api_query_time(req, "since", &f.since_us) ||
        !cursor_read(req, &f))
        return;
    if (f.limit < 1 || f.limit > 10000)
        http_fail(req, DET_EINVAL, "limit: %" PRId64 "; expected 1 to 10000", f.limit);
    else
        db_audit_list(sh->db, &f, api_reply_doc, req);
}
