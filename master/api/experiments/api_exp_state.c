/* Changes of experiments' states: one by its path, or many by ids or filters. */
#include "access.h"
#include "api_exp_act.h"
#include "api_handlers.h"
#include "api_util.h"
#include "db_exp_read.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BULK_MAX 10000

static void on_one(void *arg, int code, const char *text)
{
    if (code < 0)
        http_fail(arg, code, "%s", text);
    else
        http_reply(arg, 200, "{}");
}

static void act_on_one(struct shell *sh, struct http_req *req, enum exp_act act, const char *param)
{
    int64_t id;
    if (api_id(req, param, &id))
        exp_act(sh, act, id, 0, on_one, req);
}

/* Many: each has its own result, and the answer comes with the last. */
struct bulk {
    struct shell *sh;
    struct http_req *req;
    const struct rule *rule;
    enum exp_act act;
    int64_t project_id; /* EXP_ACT_MOVE */
    json_t *results;    /* in the order asked */
    size_t left;
};
struct bulk_one {
    struct bulk *bulk;
    size_t i;
};

static void bulk_drop(struct bulk *b)
{
    json_decref(b->results);
    free(b);
}

static void bulk_end(struct bulk *b)
{
    api_reply_json(b->req, json_make("{s:o}", "results", b->results));
    free(b);
}

static void on_bulk_one(void *arg, int code, const char *text)
{
    det_cleanup(freep) struct bulk_one *o = arg;
    struct bulk *b = o->bulk;
    json_set(json_array_get(b->results, o->i), "error", json_string(code < 0 ? text : ""));
    if (--b->left == 0)
        bulk_end(b);
}

static void bulk_one(struct bulk *b, size_t i, const json_t *refused)
{
    struct bulk_one *o = det_alloc(sizeof *o);
    *o = (struct bulk_one){b, i};
    int64_t id = json_int(json_array_get(b->results, i), "id", 0);
    if (refused)
        on_bulk_one(o, (int)json_int(refused, "code", 0), json_str(refused, "text", ""));
    else
        exp_act(b->sh, b->act, id, b->project_id, on_bulk_one, o);
}

static void on_bulk_asked(void *arg, const json_t *refused)
{
    struct bulk *b = arg;
    size_t n = b->left = json_array_size(b->results);
    if (!refused) {
        bulk_drop(b);
        return;
    }
    if (n == 0)
        bulk_end(b);
    for (size_t i = 0; i < n; i++) {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, json_int(json_array_get(b->results, i), "id", 0));
        bulk_one(b, i, json_object_get(refused, id));
    }
}

/* Every id is in results already. */
static void bulk_run(struct bulk *b)
{
    JSON_OWN ids = json_array();
    for (size_t i = 0; i < json_array_size(b->results); i++) {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, json_int(json_array_get(b->results, i), "id", 0));
        json_array_append_new(ids, json_string(id));
    }
    access_ask(b->req, &(struct access_ask){b->rule, SUBJECT_EXP, on_bulk_asked, b}, ids);
}

static void bulk_add(struct bulk *b, int64_t id)
{
    json_array_append_new(b->results, json_make("{s:I,s:s}", "id", (json_int_t)id, "error", ""));
}

static void on_found(void *arg, const struct db_result *r)
{
    struct bulk *b = arg;
    if (db_rc(r) < 0) {
        http_fail_err(b->req, db_error(r));
        bulk_drop(b);
        return;
    }
    for (int i = 0; i < db_rows(r); i++)
        bulk_add(b, db_i64(r, i, 0));
    bulk_run(b);
}

struct filters_body {
    const char *description, *name;
    json_t *labels, *states, *user_ids, *excluded;
    int archived;
    int64_t project_id;
};
#define F(member) offsetof(struct filters_body, member)
static const struct wire_field filters_fields[] = {
    {"description", WIRE_STR, F(description), 0, NULL},
    {"name", WIRE_STR, F(name), 0, NULL},
    {"labels", WIRE_ARRAY, F(labels), 0, NULL},
    {"states", WIRE_ARRAY, F(states), 0, NULL},
    {"userIds", WIRE_ARRAY, F(user_ids), 0, NULL},
    {"excludedExperimentIds", WIRE_ARRAY, F(excluded), 0, NULL},
    {"archived", WIRE_BOOL, F(archived), 0, NULL},
    {"projectId", WIRE_I32, F(project_id), 0, NULL},
};

/* The states an action is for when none are named. */
static const char *const natural_states[EXP_ACT_COUNT] = {
    [EXP_ACT_ACTIVATE] = "[\"PAUSED\"]",
    [EXP_ACT_PAUSE] = "[\"ACTIVE\"]",
    [EXP_ACT_CANCEL] = "[\"ACTIVE\",\"PAUSED\",\"STOPPING_CANCELED\",\"STOPPING_KILLED\","
                       "\"STOPPING_COMPLETED\",\"STOPPING_ERROR\"]",
    [EXP_ACT_KILL] = "[\"ACTIVE\",\"PAUSED\",\"STOPPING_CANCELED\",\"STOPPING_KILLED\","
                     "\"STOPPING_COMPLETED\",\"STOPPING_ERROR\"]",
    [EXP_ACT_ARCHIVE] = "[\"COMPLETED\",\"CANCELED\",\"ERROR\"]",
    [EXP_ACT_UNARCHIVE] = "[\"COMPLETED\",\"CANCELED\",\"ERROR\"]",
    [EXP_ACT_DELETE] = "[\"COMPLETED\",\"CANCELED\",\"ERROR\",\"DELETE_FAILED\"]",
};

static char *filter_list(const json_t *j)
{
    return json_array_size(j) ? json_text(j) : NULL;
}

static int filter_states(const json_t *j, json_t **ret, struct det_err *err)
{
    *ret = json_array();
    for (size_t i = 0; i < json_array_size(j); i++) {
        int n;
        if (wire_enum(json_array_get(j, i), "filters.states", wire_exp_state, &n, err) < 0)
            return DET_EINVAL;
        const char *name = wire_name_of(wire_exp_state, n) + strlen(API_STATE);
        json_array_append_new(*ret, json_string(n >= 13 ? "ACTIVE" : name));
    }
    return 0;
}

static int bulk_find(struct bulk *b, const json_t *j, struct det_err *err)
{
    struct filters_body f = {.archived = -1};
    JSON_OWN states = NULL;
    int rc = wire_decode(j, "filters", filters_fields, DET_ARRAY_LEN(filters_fields), &f, err);
    if (rc == 0)
        rc = filter_states(f.states, &states, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *labels = filter_list(f.labels), *named = filter_list(states);
    det_cleanup(freep) char *users = filter_list(f.user_ids), *excluded = filter_list(f.excluded);
    struct db_exp_filter q = {.name = f.name,
                              .description = f.description,
                              .labels = labels,
                              .archived = f.archived,
                              .user_ids = users,
                              .project_id = f.project_id,
                              .states = named ? named : natural_states[b->act],
                              .not_ids = excluded};
    db_exp_find(b->sh->db, &q, on_found, b);
    return 0;
}

static int bulk_ids(struct bulk *b, const json_t *ids, struct det_err *err)
{
    if (json_array_size(ids) > BULK_MAX)
        return det_fail(err, DET_EINVAL, "experimentIds: at most %d", BULK_MAX);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        int64_t id;
        int rc = wire_i64(json_array_get(ids, i), "experimentIds", &id, err);
        if (rc < 0)
            return rc;
        bulk_add(b, id);
    }
    bulk_run(b);
    return 0;
}

/* Where a move goes to; false: answered. */
static bool read_destination(struct http_req *req, const json_t *body, int64_t *ret)
{
    struct det_err err;
    const json_t *to = wire_get(body, "destinationProjectId");
    *ret = 0;
    if (!to) {
        http_fail(req, DET_EINVAL, "destinationProjectId is required");
        return false;
    }
    if (wire_i64(to, "destinationProjectId", ret, &err) < 0) {
        http_fail_err(req, &err);
        return false;
    }
    return true;
}

static void act_on_many(struct shell *sh, struct http_req *req, enum exp_act act,
                        enum route_id route)
{
    struct det_err err;
    int64_t project_id = 0;
    JSON_OWN body = api_body(req);
    if (!body || (act == EXP_ACT_MOVE && !read_destination(req, body, &project_id)))
        return;
    const json_t *ids = api_list(req, body, "experimentIds");
    if (!ids)
        return;
    struct bulk *b = det_zalloc(sizeof *b);
    *b = (struct bulk){.sh = sh,
                       .req = req,
                       .rule = &rules_all[route],
                       .act = act,
                       .project_id = project_id,
                       .results = json_array()};
    const json_t *filters = wire_get(body, "filters");
    int rc = filters ? bulk_find(b, filters, &err) : bulk_ids(b, ids, &err);
    if (rc < 0) {
        http_fail_err(req, &err);
        bulk_drop(b);
    }
}

#define ACT(name, names, act, param)                                                               \
    void api_##name(struct shell *sh, struct http_req *req)                                        \
    {                                                                                              \
        act_on_one(sh, req, act, param);                                                           \
    }                                                                                              \
    void api_##names(struct shell *sh, struct http_req *req)                                       \
    {                                                                                              \
        act_on_many(sh, req, act, ROUTE_##names);                                                  \
    }
ACT(activate_experiment, activate_experiments, EXP_ACT_ACTIVATE, "id")
ACT(pause_experiment, pause_experiments, EXP_ACT_PAUSE, "id")
ACT(cancel_experiment, cancel_experiments, EXP_ACT_CANCEL, "id")
ACT(kill_experiment, kill_experiments, EXP_ACT_KILL, "id")
ACT(archive_experiment, archive_experiments, EXP_ACT_ARCHIVE, "id")
ACT(unarchive_experiment, unarchive_experiments, EXP_ACT_UNARCHIVE, "id")
ACT(delete_experiment, delete_experiments, EXP_ACT_DELETE, "experimentId")

/* What is moved is made anew where it goes to. */
struct move {
    struct http_req *req;
    int64_t id, project_id; /* id 0: many, which the body names */
};

static void perform_move(void *arg)
{
    const struct move *m = arg;
    if (m->id)
        exp_act(m->req->sh, EXP_ACT_MOVE, m->id, m->project_id, on_one, m->req);
    else
        act_on_many(m->req->sh, m->req, EXP_ACT_MOVE, ROUTE_move_experiments);
}

static void move_begin(struct http_req *req, int64_t id)
{
    struct move *m = http_mem(req, sizeof *m);
    *m = (struct move){.req = req, .id = id};
    JSON_OWN body = api_body(req);
    if (!body || !read_destination(req, body, &m->project_id))
        return;
    const struct rule *making = &rules_all[ROUTE_create_experiment];
    access_ask_one(req, &(struct access_one){making, SUBJECT_PROJECT, perform_move, m},
                   m->project_id);
}

void api_move_experiment(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "experimentId", &id))
        move_begin(req, id);
}

void api_move_experiments(struct shell *sh, struct http_req *req)
{
    move_begin(req, 0);
}
