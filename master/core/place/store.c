#include "store.h"

#include "agent.h"
#include "effects.h"
#include "pool.h"
#include "storeplace.h"
#include <string.h>

enum { EXPLAINED_MAX = 8 };

struct store *store_find(const struct core *c, const char *place)
{
    return place ? map_get(c->store_by_place, place) : NULL;
}

void store_mark(struct core *c, struct store *s)
{
    if (!s->dirty)
        vec_push(&c->dirty_stores, s);
    s->dirty = true;
}

struct store *store_of(struct core *c, const json_t *config, int64_t owner_id)
{
    det_cleanup(freep) char *place = NULL;
    if (storeplace_of(json_obj(config, "checkpoint_storage"), &place, NULL) < 0)
        return NULL;
    struct store *s = store_find(c, place);
    if (s)
        return s;
    s = det_zalloc(sizeof *s);
    s->place = det_take(place);
    s->owner_id = owner_id;
    s->used_us = c->now_us;
    s->timer.kind = TIMER_STORE;
    map_put(c->store_by_place, s->place, s);
    vec_push(&c->stores, s);
    store_mark(c, s);
    return s;
}

void store_destroy(struct store *s)
{
    vec_free(&s->pools);
    json_decref(s->known);
    free(s->place);
    free(s->made_on);
    free(s);
}

struct store *store_of_alloc(const struct alloc *a)
{
    return a->exp ? a->exp->group->store : a->store;
}

/* ---- What agents see ---- */

static struct sight *sight_of(const struct store *s, const struct agent *a)
{
    for (size_t i = 0; i < a->sights.n; i++)
        if (a->sights.v[i].store == s)
            return &a->sights.v[i];
    return NULL;
}

const struct sight *store_sight(const struct store *s, const struct agent *a)
{
    return sight_of(s, a);
}

bool store_is_on(const struct store *s, const struct agent *a)
{
    if (!s || !a->looks)
        return true;
    if (!s->id[0])
        return s->is_loose;
    const struct sight *x = sight_of(s, a);
    return x && (x->kind == CORE_STORE_PRESENT || x->kind == CORE_STORE_HIDDEN);
}

bool store_is_nowhere(const struct store *s, const struct pool *p)
{
    bool any = false;
    for (size_t i = 0; i < p->agents.n; i++) {
        const struct agent *a = p->agents.v[i];
        const struct sight *x = sight_of(s, a);
        if (!agent_is_usable(a))
            continue;
        if (store_is_on(s, a) || !x || x->kind == CORE_STORE_UNSEEN)
            return false;
        any = true;
    }
    return any;
}

static void set_sight(struct sight *x, enum core_store_kind kind, const char *text)
{
    char *copy = det_strdup(text ? text : "");
    free(x->text);
    x->text = copy;
    x->kind = kind;
}

/* ---- Orders ---- */

/* known lies in the effects' memory as text, as all they hold. */
static void order_look(struct core *c, const struct agent *a, const struct store *s, bool make)
{
    struct core_store_order o = {.agent_id = fx_str(c->out, a->id),
                                 .place = fx_str(c->out, s->place),
                                 .id = s->id[0] ? fx_str(c->out, s->id) : NULL,
                                 .known = s->known ? fx_json(c->out, s->known) : NULL,
                                 .owner_id = s->owner_id,
                                 .make = make};
    fx_add(c->out, CORE_ORDER_STORE)->store_order = o;
}

static void look_at_store(struct core *c, struct agent *a, struct store *s)
{
    struct sight *x = sight_of(s, a);
    if (a->state != AGENT_UP || !a->looks)
        return;
    if (!x) {
        vec_push(&a->sights, (struct sight){.store = s});
        x = &a->sights.v[a->sights.n - 1];
    }
    set_sight(x, CORE_STORE_UNSEEN, "");
    order_look(c, a, s, false);
}

static void look_in(struct core *c, const struct pool *p, struct store *s)
{
    for (size_t i = 0; i < p->agents.n; i++)
        look_at_store(c, p->agents.v[i], s);
}

static bool is_watched(const struct store *s, const struct pool *p)
{
    for (size_t i = 0; i < s->pools.n; i++)
        if (s->pools.v[i] == p)
            return true;
    return false;
}

static void say_waits(struct core *c, struct store *s, struct alloc *a);
static void say_all(struct core *c, struct store *s);

void store_want(struct core *c, const struct alloc *a)
{
    struct store *s = store_of_alloc(a);
    if (!s)
        return;
    if (!is_watched(s, a->pool)) {
        vec_push(&s->pools, a->pool);
        look_in(c, a->pool, s);
    }
    say_waits(c, s, (struct alloc *)a);
}

void store_forget_agent(struct agent *a)
{
    for (size_t i = 0; i < a->sights.n; i++) {
        if (a->sights.v[i].store->asked == a)
            a->sights.v[i].store->asked = NULL;
        free(a->sights.v[i].text);
    }
    vec_free(&a->sights);
}

void store_greet(struct core *c, struct agent *a)
{
    store_forget_agent(a);
    for (size_t i = 0; i < c->stores.n; i++)
        if (is_watched(c->stores.v[i], a->pool))
            look_at_store(c, a, c->stores.v[i]);
}

/* ---- The first use ---- */

enum { ANSWER_MS = 30000 };

/* A marker is made where nothing is known to lie in the store, or some of it is there. */
static bool may_make(const struct store *s, const struct agent *a)
{
    const struct sight *x = sight_of(s, a);
    if (!x || a->state != AGENT_UP || !a->looks)
        return false;
    return x->kind == CORE_STORE_KNOWN ||
           (x->kind == CORE_STORE_ABSENT && json_array_size(s->known) == 0);
}

static void ask_one(struct core *c, struct store *s)
{
    for (size_t i = 0; i < c->agents.n && !s->id[0] && !s->asked; i++)
        if (may_make(s, c->agents.v[i])) {
            s->asked = c->agents.v[i];
            order_look(c, s->asked, s, true);
            timers_set(&c->timers, &s->timer, c->now_ms + ANSWER_MS);
        }
}

static void end_asking(struct core *c, struct store *s)
{
    s->asked = NULL;
    timers_set(&c->timers, &s->timer, INT64_MAX);
}

void store_on_timer(struct core *c, struct store *s)
{
    struct sight *x = s->asked ? sight_of(s, s->asked) : NULL;
    if (x)
        set_sight(x, CORE_STORE_FAILED, "it was to make the store there and did not answer");
    end_asking(c, s);
    ask_one(c, s);
    say_all(c, s);
}

void store_on_agent_gone(struct core *c, struct agent *a)
{
    store_forget_agent(a);
    for (size_t i = 0; i < c->stores.n; i++) {
        ask_one(c, c->stores.v[i]);
        say_all(c, c->stores.v[i]);
    }
}

static void on_first(struct core *c, struct store *s, struct agent *a, const char *id)
{
    memcpy(s->id, id, sizeof s->id);
    free(s->made_on);
    s->made_on = det_strdup(a->id);
    json_decref(s->known);
    s->known = NULL;
    s->is_loose = false;
    end_asking(c, s);
    store_mark(c, s);
    for (size_t i = 0; i < s->pools.n; i++)
        look_in(c, s->pools.v[i], s);
}

int store_adopt(struct core *c, const struct core_adopt *in, struct det_err *err)
{
    struct store *s = store_find(c, in->place);
    if (!s)
        return det_fail(err, DET_ENOENT,
                        "no checkpoint store at %s; det store list has "
                        "those that were ever used",
                        in->place);
    memset(s->id, 0, sizeof s->id);
    json_decref(s->known);
    s->known = in->known && json_array_size(in->known) ? json_incref((json_t *)in->known) : NULL;
    end_asking(c, s);
    s->is_loose = false;
    store_mark(c, s);
    if (s->pools.n == 0)
        vec_push(&s->pools, c->pools.v[0]);
    for (size_t i = 0; i < s->pools.n; i++)
        look_in(c, s->pools.v[i], s);
    return 0;
}

/* ---- Reports ---- */

static void wake_pools(struct store *s)
{
    for (size_t i = 0; i < s->pools.n; i++)
        s->pools.v[i]->dirty = true;
}

/* Once into each log, when all agents have looked, none has it and none is making it. */
static void say_waits(struct core *c, struct store *s, struct alloc *a)
{
    if (a->said_store || a->state != ALLOC_PENDING || s->asked || !store_is_nowhere(s, a->pool))
        return;
    struct buf text = BUF_INIT;
    store_explain(s, a->pool, &text);
    fx_log(c, a, FX_WARNING, "Waits: %s", buf_str(&text));
    buf_finish(&text);
    a->said_store = true;
}

static void say_all(struct core *c, struct store *s)
{
    bool any = false;
    for (size_t i = 0; i < s->pools.n; i++)
        any = any || store_is_nowhere(s, s->pools.v[i]);
    for (size_t i = 0; any && i < c->allocs.n; i++)
        if (store_of_alloc(c->allocs.v[i]) == s)
            say_waits(c, s, c->allocs.v[i]);
}

void store_on_seen(struct core *c, struct agent *a, const struct core_store_in *in)
{
    struct store *s = store_find(c, in->place);
    struct sight *x = s ? sight_of(s, a) : NULL;
    bool other = s && s->id[0] && in->kind == CORE_STORE_PRESENT && strcmp(s->id, in->id) != 0;
    if (!x || other) /* not asked, or before it heard of another id: it looks again */
        return;
    if (s->asked == a && in->kind == CORE_STORE_FAILED)
        s->is_loose = json_array_size(s->known) == 0;
    if (s->asked == a && in->kind == CORE_STORE_FAILED)
        end_asking(c, s);
    set_sight(x, in->kind, in->text);
    if (!s->id[0] && in->kind == CORE_STORE_PRESENT && in->id)
        on_first(c, s, a, in->id);
    else if (!s->id[0] && in->kind == CORE_STORE_HIDDEN)
        s->is_loose = json_array_size(s->known) == 0;
    ask_one(c, s);
    wake_pools(s);
    say_all(c, s);
}

/* det-task says on which host; so does whoever tells of a sight. */
static const char *without_host(const char *text, const struct agent *a)
{
    det_cleanup(freep) char *host = det_asprintf("agent %s: ", a->id);
    bool said = text && strncmp(text, host, strlen(host)) == 0;
    return said ? text + strlen(host) : text;
}

/* It looks again at once: until then the run's word counts. */
void store_on_away(struct core *c, struct agent *a, const struct alloc *al, const char *text)
{
    struct store *s = store_of_alloc(al);
    struct sight *x = s && a ? sight_of(s, a) : NULL;
    if (!x)
        return;
    set_sight(x, CORE_STORE_ABSENT, without_host(text, a));
    order_look(c, a, s, false);
    wake_pools(s);
}

/* ---- Words ---- */

static const char *words_of(const struct sight *x)
{
    if (!x || x->kind == CORE_STORE_UNSEEN)
        return "it has not said yet what it sees there";
    return *x->text ? x->text : x->kind == CORE_STORE_PRESENT ? "it is there" : "it is not there";
}

void store_explain(const struct store *s, const struct pool *p, struct buf *out)
{
    size_t told = 0;
    buf_addf(out, "checkpoint store %s is on no agent of pool %s that takes work:", s->place,
             p->name);
    for (size_t i = 0; i < p->agents.n; i++) {
        const struct agent *a = p->agents.v[i];
        if (!agent_is_usable(a) || told++ >= EXPLAINED_MAX)
            continue;
        buf_addf(out, "%s agent %s: %s", told > 1 ? ";" : "", a->id, words_of(sight_of(s, a)));
    }
    if (told > EXPLAINED_MAX)
        buf_addf(out, "; and %zu more", told - EXPLAINED_MAX);
    buf_addf(out,
             ". Mount it there; where it was moved or made anew on purpose: det "
             "store adopt %s",
             s->place);
}
