/* det job: the queue of each resource pool, and what moves in it. A job is named by its id, or by
 * the number of its experiment. */
#include "cli.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *pool, *new_pool, *ahead_of, *behind_of;
    const char *priority, *weight;
} o;

static void job_row(struct table *t, const json_t *job, bool by_priority)
{
    bool is_paused = json_flag(job, "isPaused", false);
    if (is_paused) /* it has no place in the line */
        table_cell(t, "%s", "");
    else
        table_cell(t, "%" PRId64, json_int(json_obj(job, "summary"), "jobsAhead", 0) + 1);
    table_cell(t, "%s", json_str(job, "jobId", ""));
    table_cell(t, "%s", json_str(job, "entityId", ""));
    table_cell(t, "%s", json_str(job, "name", ""));
    if (by_priority)
        table_cell(t, "%" PRId64, json_int(job, "priority", 0));
    else
        table_cell(t, "%g", json_num(job, "weight", 1));
    table_cell(t, "%s", show_time(json_str(job, "submissionTime", NULL)));
    table_cell(t, "%" PRId64 "/%" PRId64, json_int(job, "allocatedSlots", 0),
               json_int(job, "requestedSlots", 0));
    table_cell(t, "%s",
               is_paused ? "PAUSED" : show_state(json_str(json_obj(job, "summary"), "state", "")));
    table_cell(t, "%s", json_str(job, "username", ""));
}

static void print_pool(const json_t *pool, const json_t *jobs, bool with_name)
{
    bool priority = strstr(json_str(pool, "schedulerType", ""), "PRIORITY") != NULL;
    const char *const heads[] = {
        ">#",        "JOB",    ">EXPERIMENT", "NAME", priority ? ">PRIORITY" : ">WEIGHT",
        "SUBMITTED", ">SLOTS", "STATE",       "OWNER"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *job;
    json_array_foreach(jobs, i, job)
    {
        const json_t *full = json_obj(job, "full");
        job_row(t, full ? full : json_obj(job, "limited"), priority);
    }
    if (with_name)
        printf("pool %s\n", json_str(pool, "name", ""));
    table_print(t, "nothing runs and nothing waits");
}

/* All jobs of a pool, page by page. */
static int pool_jobs(struct cli *c, const char *pool, json_t **ret, struct det_err *err)
{
    enum { PAGE = 100 };
    char *word det_cleanup(freep) = cli_escaped(pool);
    *ret = json_array();
    for (size_t offset = 0;; offset += PAGE) {
        JSON_OWN answer = NULL;
        int rc = cli_get(c, &answer, err, "/job-queues-v2?resourcePool=%s&limit=%d&offset=%zu",
                         word, PAGE, offset);
        if (rc < 0)
            return rc;
        json_array_extend(*ret, json_object_get(answer, "jobs"));
        if (json_array_size(json_arr(answer, "jobs")) < PAGE)
            return 0;
    }
}

static int job_list(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/resource-pools") < 0)
        return CLI_FAILED;
    JSON_OWN all = json_array();
    const json_t *pools = json_arr(answer, "resourcePools");
    size_t shown = 0;
    for (size_t i = 0; i < json_array_size(pools); i++) {
        const json_t *pool = json_array_get(pools, i);
        const char *name = json_str(pool, "name", "");
        if (o.pool && strcmp(o.pool, name))
            continue;
        JSON_OWN jobs = NULL;
        if (pool_jobs(c, name, &jobs, err) < 0)
            return CLI_FAILED;
        json_array_extend(all, jobs);
        if (!c->json)
            print_pool(pool, jobs, !o.pool && json_array_size(pools) > 1);
        shown++;
    }
    if (o.pool && !shown) {
        det_fail(err, DET_ENOENT, "resource pool %s not found", o.pool);
        return CLI_FAILED;
    }
    cli_print_json(c, all);
    return 0;
}

/* Numbers stand for experiments; anything else is a job's id. Caller frees *ret. */
static int job_id(struct cli *c, const char *word, char **ret, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (!*word || strspn(word, "0123456789") != strlen(word)) {
        *ret = det_strdup(word);
        return 0;
    }
    int rc = cli_get(c, &answer, err, "/experiments/%s", word);
    if (rc == 0)
        *ret = det_strdup(json_str(json_obj(answer, "experiment"), "jobId", ""));
    return rc;
}

static int put_number(json_t *update, const char *key, const char *text, struct det_err *err)
{
    json_t *n = strcmp(key, "weight") ? cli_whole(text) : cli_number(text);
    if (!n)
        return det_fail(err, DET_EINVAL, "%s: expected a %snumber, got \"%.40s\"", key,
                        strcmp(key, "weight") ? "whole " : "", text);
    json_set(update, key, n);
    return 0;
}

/* Its keys may be written as those of the API and of Python are: ahead_of. */
static bool is_key(const char *key, const char *name)
{
    for (; *key && (*key == *name || (*key == '_' && *name == '-')); key++)
        name++;
    return *key == *name;
}

/* One change: update gets `key` ("ahead-of" and so on) with the value `text`. */
static int put_change(struct cli *c, json_t *update, const char *key, const char *text,
                      struct det_err *err)
{
    static const char *const places[][2] = {{"ahead-of", "aheadOf"}, {"behind-of", "behindOf"}};
    for (size_t i = 0; i < DET_ARRAY_LEN(places); i++) {
        det_cleanup(freep) char *id = NULL;
        if (!is_key(key, places[i][0]))
            continue;
        int rc = job_id(c, text, &id, err);
        if (rc == 0)
            json_set(update, places[i][1], json_string(id));
        return rc;
    }
    if (strcmp(key, "priority") == 0 || strcmp(key, "weight") == 0)
        return put_number(update, key, text, err);
    if (!is_key(key, "resource-pool"))
        return det_fail(err, DET_EINVAL,
                        "%s: expected priority, weight, resource-pool, ahead-of or behind-of", key);
    json_set(update, "resourcePool", json_string(text));
    return 0;
}

static int send_updates(struct cli *c, json_t *updates, struct det_err *err)
{
    JSON_OWN body = json_object();
    json_object_set(body, "updates", updates);
    return cli_call(c, "POST", "/job-queues", body, NULL, err) < 0 ? CLI_FAILED : 0;
}

static int job_update(struct cli *c, struct det_err *err)
{
    det_cleanup(freep) char *id = NULL;
    JSON_OWN updates = json_array();
    json_t *u = json_object();
    json_array_append_new(updates, u);
    const char *const changes[][2] = {{"priority", o.priority},
                                      {"weight", o.weight},
                                      {"resource-pool", o.new_pool},
                                      {"ahead-of", o.ahead_of},
                                      {"behind-of", o.behind_of}};
    if (job_id(c, cli_arg(c, 0), &id, err) < 0)
        return CLI_FAILED;
    json_set(u, "jobId", json_string(id));
    size_t n = 0;
    for (size_t i = 0; i < DET_ARRAY_LEN(changes); i++) {
        n += changes[i][1] != NULL;
        if (changes[i][1] && put_change(c, u, changes[i][0], changes[i][1], err) < 0)
            return CLI_FAILED;
    }
    if (n != 1) {
        det_fail(err, DET_EINVAL,
                 "say one of --priority, --weight, --resource-pool, --ahead-of and "
                 "--behind-of");
        return CLI_USAGE;
    }
    return send_updates(c, updates, err);
}

/* "JOB.key=value" */
static int job_update_batch(struct cli *c, struct det_err *err)
{
    JSON_OWN updates = json_array();
    const char *arg;
    for (size_t i = 0; (arg = cli_arg(c, i)); i++) {
        const char *dot = strchr(arg, '.'), *is = dot ? strchr(dot, '=') : NULL;
        if (!is || dot == arg) {
            det_fail(err, DET_EINVAL, "%.80s: expected JOB.KEY=VALUE, such as 3.priority=10", arg);
            return CLI_USAGE;
        }
        det_cleanup(freep) char *word = det_strndup(arg, (size_t)(dot - arg)), *id = NULL;
        det_cleanup(freep) char *key = det_strndup(dot + 1, (size_t)(is - dot - 1));
        json_t *u = json_object();
        json_array_append_new(updates, u);
        if (job_id(c, word, &id, err) < 0 || put_change(c, u, key, is + 1, err) < 0)
            return CLI_FAILED;
        json_set(u, "jobId", json_string(id));
    }
    return send_updates(c, updates, err);
}

static const struct opt list_opts[] = {
    {"resource-pool", 'p', OPT_STR, &o.pool, "POOL", "of this pool only"},
    {0},
};
static const struct opt update_opts[] = {
    {"priority", 'p', OPT_STR, &o.priority, "N", "1 to 99; lower goes first"},
    {"weight", 'w', OPT_STR, &o.weight, "W", "its share, above 0"},
    {"resource-pool", 0, OPT_STR, &o.new_pool, "POOL", "move it there, while nothing of it runs"},
    {"ahead-of", 0, OPT_STR, &o.ahead_of, "JOB", "move it before that one"},
    {"behind-of", 0, OPT_STR, &o.behind_of, "JOB", "move it after that one"},
    {0},
};
static const struct verb job_verbs[] = {
    {"list", "ls", "", "the queue of each pool", list_opts, job_list},
    {"update", "u", "JOB", "change its priority, weight, place or pool", update_opts, job_update},
    {"update-batch", NULL, "JOB.KEY=VALUE...", "several changes, all or none", NULL,
     job_update_batch},
    {0},
};
const struct noun noun_job = {"job", "j", NULL, "the queue: list, update", job_verbs};
