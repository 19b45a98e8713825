/* The `core` columns: JSON that only the core reads. */
#include "save.h"

#include "alike.h"
#include "avoid.h"
#include "exp.h"
#include "queue.h"

#include <string.h>

/* Text of others, whatever bytes it has. */
static void add_lossy(struct buf *out, const char *key, const char *text)
{
    JSON_OWN j = json_lossy(text, strlen(text));
    json_add(out, key, j);
}

void save_exp_core(struct buf *out, struct exp *e, int64_t now_ms)
{
    buf_add_ch(out, '{');
    if (e->warm_start)
        json_add_str(out, "warm_start", e->warm_start);
    if (e->owner)
        json_add_str(out, "owner", e->owner);
    if (e->held)
        add_lossy(out, "held", e->held);
    if (e->mistaken >= ALIKE_TRIALS)
        json_add_flag(out, "judged", e->is_judged);
    if (e->todo_at < e->todo.ops.n)
        json_add_flag(out, "trials_owed", true);
    e->waited_ms = queue_waited_ms(e->group, now_ms);
    if (e->waited_ms > 0)
        json_add_int(out, "waited_ms", e->waited_ms);
    buf_add_ch(out, '}');
}

/* Some number that a core writes: 0 to most, else `absent`. Enumerations index tables, and times
 * are added to the clock. */
static int64_t int_within(const json_t *j, const char *key, int64_t most, int64_t absent)
{
    int64_t v = json_int(j, key, absent);
    return v >= 0 && v <= most ? v : absent;
}

enum { COUNT_MAX = 1000000, PORT_MAX = 1000000 };
#define WAIT_MAX_MS (INT64_C(1) << 50)

void load_exp_core(struct exp *e, const json_t *j)
{
    e->warm_start = det_strdup(json_str(j, "warm_start", NULL));
    e->owner = det_strdup(json_str(j, "owner", NULL));
    e->held = det_strdup(json_str(j, "held", NULL));
    e->is_judged = json_flag(j, "judged", false);
    e->is_judging_unsaid = !json_object_get(j, "judged");
    e->todo_owed = json_flag(j, "trials_owed", false);
    e->waited_ms = int_within(j, "waited_ms", WAIT_MAX_MS, 0);
}

void save_trial_core(struct buf *out, const struct trial *t)
{
    buf_add_ch(out, '{');
    if (t->op != OP_NONE)
        json_add_int(out, "op_length", t->op_length);
    if (t->op_last)
        json_add_int(out, "op_last", t->op_last);
    json_add_flag(out, "op_complete", t->op == OP_DONE || t->op == OP_REDO);
    json_add_flag(out, "op_redo", t->op == OP_REDO);
    json_add_flag(out, "closed", t->closed);
    if (t->closed_for)
        add_lossy(out, "closed_for", t->closed_for);
    if (t->invalid_for)
        add_lossy(out, "invalid_for", t->invalid_for);
    json_add_flag(out, "run_fresh", t->run_fresh);
    json_add_int(out, "exit_reason", t->exit_reason);
    json_add_int(out, "transients", t->transients);
    if (t->lost)
        add_lossy(out, "lost", t->lost);
    if (t->no_retry)
        add_lossy(out, "no_retry", t->no_retry);
    if (t->mistake) {
        add_lossy(out, "mistake", t->mistake);
        add_lossy(out, "mistake_at", t->mistake_at);
    }
    if (t->start_rounds > 0)
        json_add_int(out, "start_rounds", t->start_rounds);
    if (t->has_run)
        json_add_flag(out, "has_run", true);
    JSON_OWN avoids = t->avoids.n > 0 ? avoid_json(t) : NULL;
    if (avoids)
        json_add(out, "avoids", avoids);
    buf_add_ch(out, '}');
}

/* Rows of before there were reasons. */
static void load_excluded(struct trial *t, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)))
            vec_push(&t->avoids,
                     (struct avoid){.agent = det_strdup(json_string_value(json_array_get(list, i))),
                                    .source = AVOID_POLICY,
                                    .text = det_strdup("excluded by a log policy"),
                                    .is_out = true,
                                    .until_ms = INT64_MAX});
}

void load_trial_core(struct trial *t, const json_t *j)
{
    t->op_length = json_int(j, "op_length", -1);
    t->op_last = json_int(j, "op_last", 0);
    t->op = json_flag(j, "op_redo", false)       ? OP_REDO
            : json_flag(j, "op_complete", false) ? OP_DONE
            : t->op_length >= 0                  ? OP_OPEN
                                                 : OP_NONE;
    t->closed = json_flag(j, "closed", false);
    t->closed_for = det_strdup(json_str(j, "closed_for", NULL));
    t->invalid_for = det_strdup(json_str(j, "invalid_for", NULL));
    t->run_fresh = json_flag(j, "run_fresh", false);
    t->exit_reason = (int)int_within(j, "exit_reason", SEARCH_EXIT_COUNT - 1, -1);
    t->transients = (int)int_within(j, "transients", COUNT_MAX, 0);
    t->lost = det_strdup(json_str(j, "lost", NULL));
    t->no_retry = det_strdup(json_str(j, "no_retry", NULL));
    t->mistake = det_strdup(json_str(j, "mistake", NULL));
    t->mistake_at = t->mistake ? det_strdup(json_str(j, "mistake_at", "")) : NULL;
    t->start_rounds = (int)int_within(j, "start_rounds", COUNT_MAX, 0);
    t->has_run = json_flag(j, "has_run", false);
    avoid_load(t, json_arr(j, "avoids"));
    load_excluded(t, json_arr(j, "excluded"));
}

static void add_container(struct buf *out, const struct container *k)
{
    buf_add_ch(out, '{');
    json_add_str(out, "id", k->id);
    json_add_str(out, "agent", k->agent_id);
    json_add_int(out, "node", k->node);
    json_add_str(out, "state", alloc_state_text(k->state));
    json_add_flag(out, "daemon", k->daemon);
    json_add_key(out, "slots");
    for (size_t i = 0; i < k->slots.n; i++) {
        buf_add_ch(out, i ? ',' : '[');
        buf_add_i64(out, k->slots.v[i]);
    }
    buf_add_str(out, k->slots.n ? "]}" : "[]}");
}

static void add_failure(struct buf *out, const struct failure *f)
{
    json_add_key(out, "failure");
    buf_add_ch(out, '{');
    json_add_flag(out, "transient", f->transient);
    json_add_int(out, "reason", f->reason);
    json_add_int(out, "code", f->code);
    json_add_int(out, "signal", f->signal);
    json_add_int(out, "rank", f->rank);
    json_add_int(out, "node", f->node);
    add_lossy(out, "text", f->text);
    buf_add_ch(out, '}');
}

static void add_gc(struct buf *out, const struct alloc *a)
{
    json_add_key(out, "gc");
    buf_add_ch(out, '{');
    json_add(out, "config", a->gc_config);
    json_add(out, "work", a->gc_work);
    json_add_flag(out, "deletes", a->exp != NULL);
    buf_add_ch(out, '}');
}

void save_alloc_core(struct buf *out, const struct alloc *a)
{
    buf_add_ch(out, '{');
    json_add_int(out, "seq", (int64_t)a->seq);
    json_add_int(out, "owner", a->owner_id);
    json_add_int(out, "port", a->port);
    if (a->ports)
        json_add_str(out, "ports", a->ports);
    json_add_flag(out, "preempt", a->preempt);
    json_add_flag(out, "acked", a->acked);
    json_add_flag(out, "ours", a->was_ours);
    json_add_flag(out, "unclean", a->unclean);
    json_add_flag(out, "unconfirmed", a->unconfirmed);
    json_add_int(out, "kill", a->kill);
    if (a->is_backfill)
        json_add_flag(out, "backfill", true);
    if (a->hold_ms != INT64_MAX)
        json_add_int(out, "hold_ms", a->hold_for_ms);
    if (a->shield_ms != INT64_MAX)
        json_add_flag(out, "shielded", true);
    if (a->failure.is_set)
        add_failure(out, &a->failure);
    json_add_key(out, "containers");
    for (size_t i = 0; i < a->containers.n; i++) {
        buf_add_ch(out, i ? ',' : '[');
        add_container(out, a->containers.v[i]);
    }
    buf_add_str(out, a->containers.n ? "]" : "[]");
    if (a->gc_work && a->state != ALLOC_TERMINATED)
        add_gc(out, a);
    buf_add_ch(out, '}');
}

static bool can_be(enum machine m, enum alloc_state state)
{
    return state == ALLOC_TERMINATED || edges_may(m, state, ALLOC_TERMINATED);
}

static int load_container(struct alloc *a, const json_t *j, struct det_err *err)
{
    const char *id = json_str(j, "id", ""), *agent = json_str(j, "agent", "");
    enum alloc_state state;
    if (!uuid_is_valid(id) || !*agent || !alloc_state_parse(json_str(j, "state", ""), &state) ||
        !can_be(MACHINE_CONTAINER, state))
        return det_fail(err, DET_ECORRUPT, "container '%s' on agent '%s', state '%s'", id, agent,
                        json_str(j, "state", ""));
    int64_t place = (int64_t)a->containers.n, node = json_int(j, "node", place);
    if (node != place)
        return det_fail(err, DET_ECORRUPT, "container '%s' is node %lld, in place %lld", id,
                        (long long)node, (long long)place);
    struct container *k = det_zalloc(sizeof *k);
    memcpy(k->id, id, UUID_STR_MAX);
    k->alloc = a;
    k->agent_id = det_strdup(agent);
    k->node = (int)node;
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
    int64_t reason = int_within(j, "reason", CORE_EXIT_REASON_COUNT - 1, CORE_LOST);
    *f = (struct failure){.is_set = true,
                          .transient = json_flag(j, "transient", false),
                          .reason = (enum core_exit_reason)reason,
                          .code = (int)json_int(j, "code", 0),
                          .signal = (int)json_int(j, "signal", 0),
                          .rank = (int)json_int(j, "rank", -1),
                          .node = (int)json_int(j, "node", 0),
                          .text = det_strdup(json_str(j, "text", ""))};
}

int load_alloc_core(struct alloc *a, const json_t *j, struct det_err *err)
{
    int64_t kill = json_int(j, "kill", 0), port = json_int(j, "port", -1);
    if (kill < 0 || kill >= KILL_WHY_COUNT || port < -1 || port > PORT_MAX)
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
    a->ports = det_strdup(json_str(j, "ports", NULL));
    a->is_backfill = json_flag(j, "backfill", false);
    a->hold_for_ms = int_within(j, "hold_ms", WAIT_MAX_MS, 0);
    if (a->hold_for_ms > 0)
        a->hold_ms = 0; /* begins anew when all is read */
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
                             json_arr(work, "globs"), json_arr(work, "trees"));
    const json_t *containers = json_arr(j, "containers");
    for (size_t i = 0; i < json_array_size(containers); i++) {
        int rc = load_container(a, json_array_get(containers, i), err);
        if (rc < 0)
            return rc;
    }
    if (a->failure.node < 0 || (size_t)a->failure.node >= a->containers.n)
        a->failure.node = 0;
    return 0;
}
