/*
 * What the handlers share: bodies, query parameters, answers from rows, states as shown.
 * A function that returns false (or NULL, or true from api_failed) has answered the request with an
 * error.
 */
#ifndef API_API_UTIL_H
#define API_API_UTIL_H

#include "core.h"
#include "db_list.h"
#include "http.h"
#include "json.h"
#include "wire.h"

/* A request that waits for the database or the core; lives as long as the request (http_mem). */
struct api_call {
    struct shell *sh;
    struct http_req *req;
    int64_t id;          /* of what the request is about */
    const char *key;     /* of the answer's member; a literal */
    const char *front;   /* of a list: members before it, with their comma; NULL: none */
    struct db_page page; /* of a list */
    int members; /* of a list: the entries' first column (db_doc.h); 0: LIST_DOC is the entry */
};
struct api_call *api_call(struct shell *sh, struct http_req *req);

/* The body as JSON; an empty one is {}. New reference. */
json_t *api_body(struct http_req *req);
/* The body as JSON of any type; NULL without an answer when it is empty and *ret_empty says so. */
json_t *api_body_any(struct http_req *req, bool *ret_empty);
/* Decodes the body into *ret; *ret_body (new reference) owns what is borrowed. */
bool api_decode(struct http_req *req, const struct wire_field *fields, size_t n, void *ret,
                json_t **ret_body);

/* A list of the body, empty when it is not given; borrowed from body. NULL: it is something else.
 */
const json_t *api_list(struct http_req *req, json_t *body, const char *name);

/* path -> size of files, as numbers; on the wire they may be strings. New reference, or NULL. */
json_t *api_sizes(const json_t *j, struct det_err *err);

bool api_id(struct http_req *req, const char *name, int64_t *ret);
/* offset, limit, sortBy (sorts NULL: none), orderBy. */
bool api_page(struct http_req *req, const struct wire_name *sorts, struct db_page *ret);
/* Query values as a JSON array's text in the request's memory; *ret NULL when there are none. */
bool api_query_strings(struct http_req *req, const char *name, const char **ret);
bool api_query_ints(struct http_req *req, const char *name, const char **ret);
/* As numbers; ret_text may ask for names without their prefix instead: prefix_len > 0. */
bool api_query_enums(struct http_req *req, const char *name, const struct wire_name *names,
                     size_t prefix_len, const char **ret);
bool api_query_enum(struct http_req *req, const char *name, const struct wire_name *names,
                    int *ret);
bool api_query_flag(struct http_req *req, const char *name, int *ret); /* -1 when absent */
bool api_query_i64(struct http_req *req, const char *name, int64_t fallback, int64_t *ret);
bool api_query_time(struct http_req *req, const char *name, int64_t *ret); /* 0 when absent */

/* True when the statement failed. */
bool api_failed(struct http_req *req, const struct db_result *r);
/* True too where r has no row of the experiment or trial c->id; what: which of them it is. */
bool api_missing(struct api_call *c, const char *what, const struct db_result *r);
void api_not_found(struct http_req *req);
/* db_cb; arg is the request. The first column is the answer; no row, or null: 404. */
void api_reply_doc(void *arg, const struct db_result *r);
/* Of db_trial_read(); arg is an api_call whose id is the trial's. {"trial"}. */
void api_on_trial(void *arg, const struct db_result *r);
/* db_done_cb; arg is the request. {} when done. */
void api_reply_done(void *arg, int rc, const struct det_err *err);
/* driver_cb; arg is the request. {} when done. */
void api_reply_core(void *arg, const struct core_reply *r);
void api_reply_json(struct http_req *req, json_t *j); /* takes j */

/* Rows of enum db_list_col as {key: [...], "pagination": {...}}; state(sh, id, text), if given,
 * puts the state in front of each document. strict: an offset out of bounds is an error. */
typedef const char *api_state_fn(struct shell *sh, int64_t id, const char *text);
void api_reply_list(const struct api_call *c, const struct db_result *r, api_state_fn *state,
                    bool strict);
/* {"<state in front>" + the document of a row's columns from `members` on}: db_doc.h. */
void api_put_row(struct buf *out, const char *state, const struct db_result *r, int row,
                 int members);
/* The same of an experiment's EXP_* columns, whole for its owner and administrators. Every other
 * row, and every list, is without the secrets of configurations (expconf_hide.h), whoever asks. */
void api_put_experiment(struct buf *out, const struct http_req *req, const char *state,
                        const struct db_result *r);
/* 200 with a document that may hold configurations, without their secrets. */
void api_reply_hidden(struct http_req *req, const char *doc);
/* The page of an in-memory list of total entries: [*start, *end). */
bool api_slice(struct http_req *req, const struct db_page *p, size_t total, size_t *start,
               size_t *end);
json_t *api_pagination(const struct db_page *p, size_t start, size_t end, size_t total);

/* The state shown ("RUNNING") of what the database calls `text`; what is active and unknown to the
 * core runs elsewhere. */
const char *api_exp_state(struct shell *sh, int64_t id, const char *text);
const char *api_trial_state(struct shell *sh, int64_t id, const char *text);
const struct core *api_core(struct shell *sh);
const char *api_device_type(enum core_device d); /* "TYPE_CUDA" */
/* The prefix that states have on the wire. */
#define API_STATE "STATE_"

/* A task's token may only act for its own: false (answered 403) when it is another's. */
bool api_own_trial(struct http_req *req, int64_t trial_id);
bool api_own_alloc(struct http_req *req, const char *alloc_id);
bool api_own_task(struct http_req *req, const char *task_id);
bool api_own_experiment(struct http_req *req, int64_t exp_id);

#endif
