#include "quota.h"

#include <string.h>

void quota_init(struct core *c, const struct core_quota *quotas, size_t n)
{
    c->users = imap_create();
    for (size_t i = 0; i < n; i++)
        vec_push(&c->quotas,
                 (struct quota){strcmp(quotas[i].user, "*") ? det_strdup(quotas[i].user) : NULL,
                                det_strdup(quotas[i].pool), quotas[i].slots});
    c->o.quotas = NULL; /* the caller's */
    c->o.quotas_n = 0;
}

void quota_finish(struct core *c)
{
    uint64_t id;
    void *value;
    for (size_t it = 0; imap_next(c->users, &it, &id, &value);) {
        struct user *u = value;
        vec_free(&u->pools);
        free(u->name);
        free(u);
    }
    imap_destroy(c->users);
    for (size_t i = 0; i < c->quotas.n; i++) {
        free(c->quotas.v[i].user);
        free(c->quotas.v[i].pool);
    }
    vec_free(&c->quotas);
}

struct user *quota_user(struct core *c, int64_t id, const char *name)
{
    struct user *u = imap_get(c->users, (uint64_t)id);
    if (!u) {
        u = det_zalloc(sizeof *u);
        u->id = id;
        u->name = det_strdup("");
        imap_put(c->users, (uint64_t)id, u);
    }
    if (name && *name && strcmp(name, u->name)) {
        char *copy = det_strdup(name);
        free(u->name);
        u->name = copy;
    }
    return u;
}

static struct user_pool *pool_of(struct user *u, struct pool *pool)
{
    for (size_t i = 0; i < u->pools.n; i++)
        if (u->pools.v[i].pool == pool)
            return &u->pools.v[i];
    vec_push(&u->pools, (struct user_pool){.pool = pool});
    return &u->pools.v[u->pools.n - 1];
}

void quota_count(struct core *c, struct user *u, struct pool *pool, int64_t slots)
{
    u->used += slots;
    pool_of(u, pool)->used += slots;
    /* What is free again here may be taken there, where he may have had nothing yet. What is taken
     * here may hold him back there, and those who stand behind him go first. */
    for (size_t i = 0; c->quotas.n && i < c->pools.n; i++)
        if (c->pools.v[i]->pending_n && (slots < 0 || c->pools.v[i] != pool))
            c->pools.v[i]->dirty = true;
}

void quota_taken_back(const struct core *c)
{
    uint64_t id;
    void *value;
    for (size_t it = 0; c->quotas.n && imap_next(c->users, &it, &id, &value);)
        ((struct user *)value)->taking = 0;
}

/* The entry that counts for the user in that pool (NULL: all together), -1: none. */
static int64_t find_entry(const struct core *c, const char *user, const char *pool)
{
    int64_t slots = -1;
    for (size_t i = 0; i < c->quotas.n; i++) {
        const struct quota *q = &c->quotas.v[i];
        bool same_pool = q->pool && pool ? strcmp(q->pool, pool) == 0 : !q->pool && !pool;
        if (!same_pool || (q->user && strcmp(q->user, user)))
            continue;
        slots = q->slots;
        if (q->user)
            return slots;
    }
    return slots;
}

static int64_t min_slots(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t quota_left(const struct core *c, const struct user *u, const struct pool *pool)
{
    if (c->quotas.n == 0)
        return INT64_MAX;
    int64_t here = find_entry(c, u->name, pool->name), all = find_entry(c, u->name, NULL), used = 0;
    for (size_t i = 0; i < u->pools.n; i++)
        used += u->pools.v[i].pool == pool ? u->pools.v[i].used : 0;
    int64_t left = here < 0 ? INT64_MAX : here - used - u->taking;
    return all < 0 ? left : min_slots(left, all - u->used - u->taking);
}

int64_t quota_max(const struct core *c, const char *name, const struct pool *pool)
{
    int64_t here = find_entry(c, name, pool->name), all = find_entry(c, name, NULL);
    return min_slots(here < 0 ? INT64_MAX : here, all < 0 ? INT64_MAX : all);
}

int quota_check(const struct core *c, const char *name, const struct pool *pool, int64_t slots,
                struct det_err *err)
{
    int64_t max = quota_max(c, name ? name : "", pool);
    if (slots <= max)
        return 0;
    return det_fail(err, DET_EINVAL,
                    "resources.slots_per_trial: %lld slots are more than the quota of user %s in "
                    "pool %s, which is %lld; write at most that, or ask an administrator",
                    (long long)slots, name ? name : "", pool->name, (long long)max);
}
