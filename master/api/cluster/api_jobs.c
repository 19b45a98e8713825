/* The job queue: experiments that are not finished, in the order they will be served. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_exp_read.h"
#include "driver.h"
#include "masterconf.h"
#include "shell.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define JOBS_DEFAULT 100

struct jobs_call {
    struct shell *sh;
    struct http_req *req;
    struct db_page page;
    const char *pool, *states; /* states: numbers as JSON, or NULL */
    bool v2;
};

static const struct {
    const char *name;
    int number;
} job_states[] = {
    [CORE_JOB_QUEUED] = {"STATE_QUEUED", 1},
    [CORE_JOB_SCHEDULED] = {"STATE_SCHEDULED", 2},
    [CORE_JOB_BACKFILLED] = {"STATE_SCHEDULED_BACKFILLED", 3},
};

struct job {
    struct core_exp_view v;
    int64_t ahead; /* jobs that are served before it */
};

static json_t *job_json(const struct job *job, const char *username, int64_t workspace_id)
{
    const struct core_exp_view *v = &job->v;
    char time[CLK_RFC3339_MAX], entity[32];
    clk_format(v->submitted_us, time);
    snprintf(entity, sizeof entity, "%" PRId64, v->id);
    json_t *j =
        json_make("{s:{s:s,s:I},s:s,s:s,s:s,s:I,s:s,s:b,s:i,s:o}", "summary", "state",
                  job_states[v->job_state].name, "jobsAhead", (json_int_t)job->ahead, "type",
                  "TYPE_EXPERIMENT", "submissionTime", time, "username", username, "userId",
                  (json_int_t)v->owner_id, "resourcePool", v->pool, "isPreemptible", 1, "priority",
                  v->priority, "weight", json_double(v->weight));
    json_object_update_new(
        j, json_make("{s:s,s:s,s:I,s:I,s:s,s:o,s:I,s:b}", "entityId", entity, "jobId", v->job_id,
                     "requestedSlots", (json_int_t)v->slots_requested, "allocatedSlots",
                     (json_int_t)v->slots_held, "name", v->name ? v->name : "", "progress",
                     json_double(v->progress < 0 ? 0 : v->progress), "workspaceId",
                     (json_int_t)workspace_id, "isPaused", v->is_set_aside));
    return j;
}

static bool is_wanted(const struct jobs_call *c, const struct core_exp_view *v)
{
    if (!c->states)
        return true;
    JSON_OWN list = json_parse(c->states, strlen(c->states), NULL);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_integer_value(json_array_get(list, i)) == job_states[v->job_state].number)
            return true;
    return false;
}

/* The live jobs of the pool, in order; caller frees *ret. */
static size_t jobs_collect(const struct jobs_call *c, struct job **ret)
{
    int64_t *ids = NULL;
    size_t n = core_jobs(api_core(c->sh), c->pool, &ids), k = 0;
    int64_t ahead = 0;
    *ret = det_reallocarray(NULL, n ? n : 1, sizeof **ret);
    for (size_t i = 0; i < n; i++)
        if (core_exp_get(api_core(c->sh), ids[i], &(*ret)[k].v)) {
            const struct core_exp_view v = (*ret)[k].v;
            (*ret)[k].ahead = ahead;
            ahead += !v.is_set_aside;
            k += is_wanted(c, &v);
        }
    free(ids);
    return k;
}

/* Who owns an experiment, from the rows (id, username, workspace). */
static int owner_row(const struct db_result *r, int64_t id)
{
    for (int i = 0; i < db_rows(r); i++)
        if (db_i64(r, i, 0) == id)
            return i;
    return -1;
}

static void on_owners(void *arg, const struct db_result *r)
{
    struct jobs_call *c = arg;
    size_t start, end;
    if (api_failed(c->req, r))
        return;
    struct job *all;
    size_t n = jobs_collect(c, &all);
    if (api_slice(c->req, &c->page, n, &start, &end)) {
        json_t *list = json_array();
        for (size_t i = start; i < end; i++) {
            const struct job *one = &all[c->page.desc ? n - 1 - i : i];
            int row = owner_row(r, one->v.id);
            json_t *job =
                job_json(one, row < 0 ? "" : db_text(r, row, 1), row < 0 ? 0 : db_i64(r, row, 2));
            json_array_append_new(list, c->v2 ? json_make("{s:o}", "full", job) : job);
        }
        api_reply_json(c->req, json_make("{s:o,s:o}", "jobs", list, "pagination",
                                         api_pagination(&c->page, start, end, n)));
    }
    free(all);
}

static void list_jobs(struct shell *sh, struct http_req *req, bool v2)
{
    struct jobs_call *c = http_mem(req, sizeof *c);
    const char *pool = http_query(req, "resourcePool");
    *c = (struct jobs_call){.sh = sh, .req = req, .v2 = v2};
    if (!api_page(req, NULL, &c->page) ||
        !api_query_enums(req, "states", wire_job_state, 0, &c->states))
        return;
    c->pool = pool && *pool ? pool : sh->conf->default_pool;
    if (c->page.limit == 0)
        c->page.limit = JOBS_DEFAULT;
    struct job *all;
    size_t n = jobs_collect(c, &all);
    JSON_OWN ids = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(ids, json_integer(all[i].v.id));
    free(all);
    det_cleanup(freep) char *text = json_text(ids);
    db_exp_owners(sh->db, text, on_owners, c);
}

void api_get_jobs(struct shell *sh, struct http_req *req)
{
    list_jobs(sh, req, false);
}

void api_get_jobs_v2(struct shell *sh, struct http_req *req)
{
    list_jobs(sh, req, true);
}

void api_get_job_queue_stats(struct shell *sh, struct http_req *req)
{
    struct core_pool_view v;
    const char *names;
    if (!api_query_strings(req, "resourcePools", &names))
        return;
    JSON_OWN only = names ? json_parse(names, strlen(names), NULL) : NULL;
    json_t *list = json_array();
    for (size_t i = 0; core_pool_at(api_core(sh), i, &v); i++) {
        bool shown = !only;
        for (size_t k = 0; k < json_array_size(only); k++)
            shown = shown || !strcmp(json_string_value(json_array_get(only, k)), v.name);
        if (shown)
            json_array_append_new(list, json_make("{s:{s:I,s:I,s:I},s:s,s:[]}", "stats",
                                                  "queuedCount", (json_int_t)v.jobs_queued,
                                                  "scheduledCount", (json_int_t)v.jobs_scheduled,
                                                  "pausedCount", (json_int_t)v.jobs_paused,
                                                  "resourcePool", v.name, "aggregates"));
    }
    api_reply_json(req, json_make("{s:o}", "results", list));
}
