/* The `core` columns: JSON that only the core reads. */
#include "save.h"

#include "exp.h"

#include <string.h>

json_t *save_exp_core(const struct exp *e)
{
    json_t *j = json_object();
    if (e->warm_start)
        json_set(j, "warm_start", json_string(e->warm_start));
    if (e->owner)
        json_set(j, "owner", json_string(e->owner));
    if (e->todo_at < e->todo.ops.n)
        json_set(j, "trials_owed", json_true());
    return j;
}

void load_exp_core(struct exp *e, const json_t *j)
{
    e->warm_start = det_strdup(json_str(j, "warm_start", NULL));
    e->owner = det_strdup(json_str(j, "owner", NULL));
    e->todo_owed = json_flag(j, "trials_owed", false);
}

static json_t *save_excluded(const struct trial *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->excluded.n; i++)
        json_array_append_new(list, json_string(t->excluded.v[i]));
    return list;
}

json_t *save_trial_core(const struct trial *t)
{
    json_t *j = json_object();
    if (t->has_op)
        json_set(j, "op_length", json_integer(t->op_length));
    if (t->op_last)
        json_set(j, "op_last", json_integer(t->op_last));
    json_set(j, "op_complete", json_boolean(t->op_complete));
    json_set(j, "op_redo", json_boolean(t->op_redo));
    json_set(j, "closed", json_boolean(t->closed));
    json_set(j, "run_fresh", json_boolean(t->run_fresh));
    json_set(j, "exit_reason", json_integer(t->exit_reason));
    json_set(j, "transients", json_integer(t->transients));
    if (t->no_retry)
        json_set(j, "no_retry", json_lossy(t->no_retry, strlen(t->no_retry)));
    if (t->excluded.n > 0)
        json_set(j, "excluded", save_excluded(t));
    return j;
}

void load_trial_core(struct trial *t, const json_t *j)
{
    t->op_length = json_int(j, "op_length", -1);
    t->has_op = t->op_length >= 0;
    t->op_last = json_int(j, "op_last", 0);
    t->op_complete = json_flag(j, "op_complete", false);
    t->op_redo = json_flag(j, "op_redo", false);
    t->closed = json_flag(j, "closed", false);
    t->run_fresh = json_flag(j, "run_fresh", false);
    t->exit_reason = (int)json_int(j, "exit_reason", -1);
    t->transients = (int)json_int(j, "transients", 0);
    t->no_retry = det_strdup(json_str(j, "no_retry", NULL));
    const json_t *list = json_arr(j, "excluded");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)))
            vec_push(&t->excluded, det_strdup(json_string_value(json_array_get(list, i))));
}

static json_t *save_container(const struct container *k)
{
    json_t *slots = json_array();
    for (size_t i = 0; i < k->slots.n; i++)
        json_array_append_new(slots, json_integer(k->slots.v[i]));
    return json_make("{s:s, s:s, s:i, s:s, s:b, s:o}", "id", k->id, "agent", k->agent_id, "node",
                     k->node, "state", alloc_state_text(k->state), "daemon", k->daemon, "slots",
                     slots);
}

static json_t *save_failure(const struct failure *f)
{
    return json_make("{s:b, s:i, s:i, s:i, s:i, s:o}", "transient", f->transient, "reason",
                     (int)f->reason, "code", f->code, "signal", f->signal, "rank", f->rank, "text",
                     json_lossy(f->text, strlen(f->text)));
}

json_t *save_alloc_core(const struct alloc *a)
{
    json_t *containers = json_array(), *j = json_object();
    for (size_t i = 0; i < a->containers.n; i++)
        json_array_append_new(containers, save_container(a->containers.v[i]));
    json_set(j, "seq", json_integer((json_int_t)a->seq));
    json_set(j, "owner", json_integer(a->owner_id));
    json_set(j, "port", json_integer(a->port));
    json_set(j, "preempt", json_boolean(a->preempt));
    json_set(j, "acked", json_boolean(a->acked));
    json_set(j, "ours", json_boolean(a->was_ours));
    json_set(j, "unclean", json_boolean(a->unclean));
    json_set(j, "unconfirmed", json_boolean(a->unconfirmed));
    json_set(j, "kill", json_integer(a->kill));
    if (a->is_backfill)
        json_set(j, "backfill", json_true());
    if (a->shield_ms != INT64_MAX)
        json_set(j, "shielded", json_true());
    if (a->failure.is_set)
        json_set(j, "failure", save_failure(&a->failure));
    json_set(j, "containers", containers);
    if (a->gc_work && a->state != ALLOC_TERMINATED)
        json_set(j, "gc",
                 json_make("{s:O, s:O, s:b}", "config", a->gc_config, "work", a->gc_work, "deletes",
                           a->exp != NULL));
    return j;
}

static int load_container(struct alloc *a, const json_t *j, struct det_err *err)
{
    const char *id = json_str(j, "id", ""), *agent = json_str(j, "agent", "");
    enum alloc_state state;
    if (!uuid_is_valid(id) || !*agent || !alloc_state_parse(json_str(j, "state", ""), &state))
        return det_fail(err, DET_ECORRUPT, "container '%s' on agent '%s', state '%s'", id, agent,
                        json_str(j, "state", ""));
    struct container *k = det_zalloc(sizeof *k);
    memcpy(k->id, id, UUID_STR_MAX);
    k->alloc = a;
    k->agent_id = det_strdup(agent);
    k->node = (int)json_int(j, "node", 0);
    k->state = state;
    k->daemon = json_flag(j, "daemon", false);
    const json_t *slots = json_arr(j, "slots");
    for (size_t i = 0; i < json_array_size(slots); i++)
        vec_push(&k->slots, (int)json_integer_value(json_array_get(slots, i)));
    vec_push(&a->containers, k);
    a->live += state != ALLOC_TERMINATED;
    return 0;
}

static void load_failure(struct failure *f, const json_t *j)
{
    int64_t reason = json_int(j, "reason", CORE_LOST);
    *f = (struct failure){.is_set = true,
                          .transient = json_flag(j, "transient", false),
                          .reason = reason >= 0 && reason < CORE_EXIT_REASON_COUNT
                                        ? (enum core_exit_reason)reason
                                        : CORE_LOST,
                          .code = (int)json_int(j, "code", 0),
                          .signal = (int)json_int(j, "signal", 0),
                          .rank = (int)json_int(j, "rank", -1),
                          .text = det_strdup(json_str(j, "text", ""))};
}

int load_alloc_core(struct alloc *a, const json_t *j, struct det_err *err)
{
    int64_t kill = json_int(j, "kill", 0), port = json_int(j, "port", -1);
    if (kill < 0 || kill >= KILL_WHY_COUNT || port < -1 || port > 1000000)
        return det_fail(err, DET_ECORRUPT, "kill %lld, port %lld", (long long)kill,
                        (long long)port);
    a->seq = (uint64_t)json_int(j, "seq", 0);
    a->owner_id = json_int(j, "owner", 0);
    a->port = (int)port;
    a->preempt = json_flag(j, "preempt", false);
    a->acked = json_flag(j, "acked", false);
    a->was_ours = json_flag(j, "ours", false);
    a->unclean = json_flag(j, "unclean", false);
    a->unconfirmed = json_flag(j, "unconfirmed", false);
    a->kill = (enum kill_why)kill;
    a->is_backfill = json_flag(j, "backfill", false);
    if (json_flag(j, "shielded", false))
        a->shield_ms = 0; /* begins anew when all is read */
    if (json_obj(j, "failure"))
        load_failure(&a->failure, json_obj(j, "failure"));
    json_t *gc = json_obj(j, "gc");
    /* rows of before there were actions have the uuids alone */
    json_t *work = json_obj(gc, "work") ? json_obj(gc, "work") : gc;
    if (a->kind == KIND_GC && (!json_obj(gc, "config") || !json_arr(work, "uuids")))
        return det_fail(err, DET_ECORRUPT, "a collection without its checkpoints");
    a->deletes = json_flag(gc, "deletes", false);
    a->gc_config = json_incref(json_obj(gc, "config"));
    if (a->kind == KIND_GC)
        a->gc_work = gc_work(json_arr(work, "uuids"), json_str(work, "action", NULL),
                             json_arr(work, "globs"));
    const json_t *containers = json_arr(j, "containers");
    for (size_t i = 0; i < json_array_size(containers); i++) {
        int rc = load_container(a, json_array_get(containers, i), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
