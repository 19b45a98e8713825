#include "snapshot.h"

#include "agent.h"
#include "alloc.h"
#include "avoid.h"
#include "fit.h"
#include "pool.h"
#include <stdio.h>

uint64_t snapshot_random(struct snapshot *s, uint64_t below)
{
    uint64_t x = s->rng += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % below;
}

static bool chance(struct snapshot *s, int percent)
{
    return snapshot_random(s, 100) < (uint64_t)percent;
}

/* While there are no agents nothing starts. */
static void add_jobs(struct snapshot *s)
{
    static const int sizes[] = {1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 16, 0};
    size_t n = 1 + snapshot_random(s, 10);
    for (size_t i = 0; i < n; i++) {
        char config[320];
        int k = sizes[snapshot_random(s, DET_ARRAY_LEN(sizes))];
        bool capped = s->w.o.scheduler == CORE_FAIR_SHARE && chance(s, 25);
        int max = capped ? k + (int)snapshot_random(s, 12) : -1;
        snprintf(
            config, sizeof config,
            "{\"resources\":{\"slots_per_trial\":%d,\"weight\":%g,\"priority\":%d%s%d},"
            "\"searcher\":{\"name\":\"random\",\"max_trials\":%d,\"max_concurrent_trials\":0}}",
            k, 0.5 + (double)snapshot_random(s, 4), 40 + (int)snapshot_random(s, 3),
            max < 0 ? ",\"ignored\":" : ",\"max_slots\":", max, 1 + (int)snapshot_random(s, 9));
        world_create(&s->w, config);
    }
}

static void add_agents(struct snapshot *s)
{
    static const int sizes[] = {1, 2, 2, 4, 4, 4, 8, 3, 0};
    size_t n = 1 + snapshot_random(s, 9);
    for (size_t i = 0; i < n; i++) {
        struct core_slot_in in[8];
        char id[32];
        int k = sizes[snapshot_random(s, DET_ARRAY_LEN(sizes))];
        snprintf(id, sizeof id, "agent%zu", i);
        for (int j = 0; j < k; j++)
            in[j] = (struct core_slot_in){.id = j, .brand = "", .uuid = ""};
        struct core_hello h = {
            .version = "1", .pool = "", .addr = id, .slots = in, .slots_n = (size_t)k};
        agent_update(s->w.core, agent_get(s->w.core, id), &h);
    }
}

static void place_some(struct snapshot *s)
{
    struct core *c = s->w.core;
    struct placement p = {0};
    int percent = (int)snapshot_random(s, 101);
    for (size_t i = 0; i < c->allocs.n; i++) {
        struct alloc *a = c->allocs.v[i];
        if (chance(s, percent) && fit_place(&a->pool->fit, a, &p)) {
            alloc_place(c, a, p.nodes.v, p.nodes.n);
            a->is_ready = chance(s, 60);
        }
    }
    vec_free(&p.nodes);
}

static void end_some(struct snapshot *s)
{
    struct core *c = s->w.core;
    for (size_t i = 0; i < c->allocs.n; i++) {
        struct alloc *a = c->allocs.v[i];
        if (a->state != ALLOC_PENDING && chance(s, 15))
            alloc_preempt(c, a, KILL_USER, "asked to");
    }
}

static void disturb_agents(struct snapshot *s)
{
    struct core *c = s->w.core;
    struct det_err err;
    for (size_t i = 0; i < c->agents.n; i++) {
        struct agent *a = c->agents.v[i];
        struct core_agent_set set = {.agent_id = a->id, .slot = -1, .drain = chance(s, 60)};
        if (a->slots.n && chance(s, 30))
            set.slot = (int)snapshot_random(s, a->slots.n);
        if (chance(s, 12))
            det_ignore(agent_set(c, &set, &err), "a drain may be refused");
        else if (chance(s, 8))
            agent_goto(c, a, AGENT_LOST);
    }
}

static void exclude_some(struct snapshot *s)
{
    struct core *c = s->w.core;
    for (size_t i = 0; i < c->allocs.n; i++) {
        struct trial *t = c->allocs.v[i]->trial;
        if (t && c->allocs.v[i]->state == ALLOC_PENDING && chance(s, 5))
            avoid_add(c, t, c->agents.v[snapshot_random(s, c->agents.n)]->id, AVOID_POLICY, "no",
                      0);
    }
}

void snapshot_make(struct snapshot *s, uint64_t seed, const struct core_options *o)
{
    *s = (struct snapshot){.rng = seed};
    world_init(&s->w, o);
    add_jobs(s);
    s->w.core->out = &s->fx;
    add_agents(s);
    place_some(s);
    end_some(s);
    disturb_agents(s);
    if (chance(s, 30))
        exclude_some(s);
}

void snapshot_free(struct snapshot *s)
{
    core_effects_finish(&s->fx);
    world_finish(&s->w);
}
