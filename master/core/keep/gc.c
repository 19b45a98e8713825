/* Checkpoints are deleted by zero-slot tasks on agents; an experiment's rows follow its
 * checkpoints: all that may be many in portions, then its own with the rest. */
#include "exp.h"

#include "agent.h"
#include "alloc.h"
#include "effects.h"
#include "names.h"
#include "pool.h"
#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 1000 };

/* From what no other collection shares; not from the wall clock, which decides nothing. */
static void task_id(struct core *c, const struct core_gc *in, char *out, size_t size)
{
    char text[200], uuid[UUID_STR_MAX];
    snprintf(text, sizeof text, "collect %s %s %lld %llu", c->nonce, in->job_id ? in->job_id : "",
             (long long)c->epoch, (unsigned long long)++c->last_gc);
    name_uuid(text, uuid);
    snprintf(out, size, "%lld.%s", (long long)in->exp_id, uuid);
}

static struct pool *pool_of(const struct core *c, const json_t *config)
{
    struct pool *p = pool_find(c, json_str(json_obj(config, "resources"), "resource_pool", ""));
    return p ? p : pool_find(c, NULL);
}

/* What a collection needs of the configuration, and its row keeps. */
static json_t *trim_config(const json_t *config)
{
    json_t *storage = json_object_get(config, "checkpoint_storage");
    const char *pool = json_str(json_obj(config, "resources"), "resource_pool", "");
    json_t *j = json_make("{s:s, s:{s:s}}", "name", json_str(config, "name", ""), "resources",
                          "resource_pool", pool);
    json_set(j, "checkpoint_storage", json_incref(storage));
    return j;
}

json_t *gc_work(json_t *uuids, const char *action, json_t *globs, json_t *trees)
{
    json_t *j = json_make("{s:O, s:s}", "uuids", uuids, "action", action ? action : "purge");
    if (globs)
        json_set(j, "globs", json_incref(globs));
    if (trees)
        json_set(j, "trees", json_incref(trees));
    return j;
}

/* Where the harness keeps TensorBoard's files of an experiment (loop_tensorboard.c). */
static json_t *trees_of(const struct core *c, const struct core_gc *in)
{
    if (!in->has_files || !*c->cluster_id)
        return NULL;
    det_cleanup(freep) char *place =
        det_asprintf("%s/tensorboard/experiment/%lld", c->cluster_id, (long long)in->exp_id);
    return json_make("[s]", place);
}

static struct alloc *request_alloc(struct core *c, const struct core_gc *in, struct exp *e)
{
    char id[80];
    task_id(c, in, id, sizeof id);
    JSON_OWN config = trim_config(in->config);
    JSON_OWN trees = trees_of(c, in);
    JSON_OWN work = gc_work(in->uuids, in->action, in->globs, trees);
    struct alloc_request r = {.kind = KIND_GC,
                              .exp = e,
                              .task_id = id,
                              .exp_id = in->exp_id,
                              .owner_id = in->owner_id,
                              .run_id = 1,
                              .pool = pool_of(c, in->config),
                              .gc_config = config,
                              .gc_work = work};
    return alloc_request(c, &r);
}

static int check_request(const struct core_gc *in, struct det_err *err)
{
    if (in->exp_id < 1 || !json_is_object(in->config) || !json_is_array(in->uuids))
        return det_fail(err, DET_EINVAL,
                        "collection needs an experiment, its configuration and uuids");
    return 0;
}

/* Collections that the deletion makes pointless. */
static void end_others(struct core *c, const struct exp *e)
{
    for (size_t i = 0; i < c->allocs.n; i++) {
        struct alloc *a = c->allocs.v[i];
        if (a->kind == KIND_GC && a->exp_id == e->id && a != e->gc)
            alloc_kill(c, a, KILL_USER, "its experiment is being deleted");
    }
}

/* The rows go once no collection is left that has one of them. Of what the database refuses nothing
 * is purged. */
void gc_delete_idle(struct core *c, struct exp *e)
{
    if (e->state != EXP_DELETING || e->gc || e->is_purging)
        return;
    for (size_t i = 0; i < c->allocs.n; i++) {
        const struct alloc *a = c->allocs.v[i];
        if (a->kind == KIND_GC && a->exp_id == e->id && a->state != ALLOC_TERMINATED)
            return;
    }
    if (e->parked) {
        exp_goto(c, e, EXP_DELETED);
        return;
    }
    e->is_purging = true;
    fx_add(c->out, CORE_PURGE)->exp_id = e->id;
}

/* Text of others, whatever bytes it has: it goes into a row. */
static void fail_deletion(struct core *c, struct exp *e, const char *what, const char *words)
{
    JSON_OWN said = json_lossy(words, strnlen(words, WORDS_MAX));
    exp_goto(c, e, EXP_DELETE_FAILED);
    e->undeleted = det_asprintf("%s: %s", what, json_string_value(said));
}

void gc_purged(struct core *c, struct exp *e, const char *words)
{
    if (!e->is_purging)
        return;
    e->is_purging = false;
    if (words)
        fail_deletion(c, e, "the database does not let its rows go", words);
    else
        exp_goto(c, e, EXP_DELETED);
}

int gc_delete(struct core *c, const struct core_gc *in, struct det_err *err)
{
    int rc = check_request(in, err);
    struct exp *e = exp_find(c, in->exp_id);
    bool deleted = imap_get(c->deleted, (uint64_t)in->exp_id); /* asked twice at once */
    if (rc < 0 || deleted || (e && e->state == EXP_DELETING))
        return rc;
    if (e)
        return det_fail(err, DET_ESTATE,
                        "experiment %lld is %s: only a finished one can be deleted",
                        (long long)e->id, exp_state_text(e->state));
    exp_revise(c, in->exp_id);
    e = exp_make(c);
    e->id = in->exp_id;
    e->owner_id = in->owner_id;
    e->job_id = det_strdup(in->job_id ? in->job_id : "");
    e->config = json_incref(in->config);
    e->conf.name = json_str(in->config, "name", "");
    e->state = EXP_DELETING;
    e->group->weight = 1;
    e->group->max_slots = -1;
    e->state_only = true;
    e->pool = pool_of(c, in->config);
    exp_enlist(c, e);
    exp_mark(c, e);
    if (json_array_size(in->uuids) || in->has_files)
        e->gc = request_alloc(c, in, e);
    end_others(c, e);
    gc_delete_idle(c, e);
    return 0;
}

/* Deleted, or about to be, with all its checkpoints. */
static bool is_gone(const struct core *c, int64_t exp_id)
{
    const struct exp *e = exp_find(c, exp_id);
    return (e && e->state == EXP_DELETING) || imap_get(c->deleted, (uint64_t)exp_id);
}

int gc_collect(struct core *c, const struct core_gc *in, struct det_err *err)
{
    int rc = check_request(in, err);
    if (rc == 0 && is_gone(c, in->exp_id))
        rc = det_fail(err, DET_ENOENT, "experiment %lld not found; it was deleted",
                      (long long)in->exp_id);
    bool looks = in->action && strcmp(in->action, "list") == 0; /* of no checkpoint in particular */
    if (rc == 0 && (looks || json_array_size(in->uuids) > 0))
        request_alloc(c, in, NULL);
    return rc;
}

static void retry_collection(struct core *c, const struct alloc *a)
{
    int64_t wait_s = a->run_id < 6 ? INT64_C(1) << (a->run_id - 1) : 30;
    struct alloc_request r = {.kind = KIND_GC,
                              .exp = a->exp,
                              .task_id = a->task_id,
                              .exp_id = a->exp_id,
                              .owner_id = a->owner_id,
                              .run_id = a->run_id + 1,
                              .pool = a->pool,
                              .hold_ms = c->now_ms + 1000 * (wait_s < 30 ? wait_s : 30),
                              .gc_config = a->gc_config,
                              .gc_work = a->gc_work};
    struct alloc *next = alloc_request(c, &r);
    if (a->exp)
        a->exp->gc = next;
}

void gc_on_alloc_end(struct core *c, struct alloc *a)
{
    bool undone = a->was_ours || (a->failure.is_set && a->failure.transient);
    if (undone && !a->parked && (a->exp || !is_gone(c, a->exp_id))) {
        retry_collection(c, a);
        return;
    }
    struct exp *e = exp_find(c, a->exp_id);
    if (!e)
        return;
    if (a->exp)
        e->gc = NULL;
    if (a->exp && (a->failure.is_set || a->parked))
        fail_deletion(c, e, "its checkpoints could not be deleted",
                      a->failure.is_set ? a->failure.text
                                        : "the database refused a row of that task");
    gc_delete_idle(c, e);
}
