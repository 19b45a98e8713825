#include "origins.h"

#include "map.h"
#include "mem.h"

#include <stdlib.h>
#include <string.h>

struct kept {
    int64_t project_id, until_ms;
    char doc[];
};
/* Of a project that somebody makes experiments in, or deletes. */
struct use {
    size_t makers;
    bool is_going, is_gone;
};
struct origins {
    struct map *by_key;  /* struct kept */
    struct imap *by_use; /* struct use, by project */
    uint64_t turn;
};

struct origins *origins_create(void)
{
    struct origins *os = det_zalloc(sizeof *os);
    os->by_key = map_create();
    os->by_use = imap_create();
    return os;
}

static void forget_all(struct origins *os)
{
    const char *key;
    void *v;
    for (size_t it = 0; map_next(os->by_key, &it, &key, &v);)
        free(v);
    map_destroy(os->by_key);
    os->by_key = map_create();
    os->turn++;
}

void origins_destroy(struct origins *os)
{
    if (!os)
        return;
    forget_all(os);
    map_destroy(os->by_key);
    uint64_t id;
    void *use;
    for (size_t it = 0; imap_next(os->by_use, &it, &id, &use);)
        free(use);
    imap_destroy(os->by_use);
    free(os);
}

/* NULL: depends on more than the place. A name may hold any byte but NUL: its length tells it from
 * the next. */
static char *key_of(const struct db_exp_origin *o)
{
    if (o->parent_id || o->source_trial_id || o->source_uuid)
        return NULL;
    return det_asprintf("%lld %lld %zu %s %s", (long long)o->user_id, (long long)o->project_id,
                        o->workspace ? strlen(o->workspace) : 0, o->workspace ? o->workspace : "",
                        o->project ? o->project : "");
}

bool origins_find(const struct origins *os, const struct db_exp_origin *o, int64_t now_ms,
                  struct origin *ret)
{
    det_cleanup(freep) char *key = key_of(o);
    const struct kept *k = key ? map_get(os->by_key, key) : NULL;
    if (!k || k->until_ms <= now_ms)
        return false;
    *ret = (struct origin){k->project_id, k->doc};
    return true;
}

uint64_t origins_turn(const struct origins *os)
{
    return os->turn;
}

void origins_keep(struct origins *os, const struct db_exp_origin *o, uint64_t turn,
                  const struct origin *found, int64_t now_ms)
{
    det_cleanup(freep) char *key = key_of(o);
    if (!key || turn != os->turn)
        return;
    if (map_size(os->by_key) >= ORIGINS_MAX)
        forget_all(os);
    size_t n = strlen(found->doc) + 1;
    struct kept *k = det_alloc(sizeof *k + n);
    *k = (struct kept){found->project_id, now_ms + ORIGINS_MS};
    memcpy(k->doc, found->doc, n);
    free(map_put(os->by_key, key, k));
}

static struct use *use_of(struct origins *os, int64_t project_id)
{
    struct use *u = imap_get(os->by_use, (uint64_t)project_id);
    if (!u) {
        u = det_zalloc(sizeof *u);
        imap_put(os->by_use, (uint64_t)project_id, u);
    }
    return u;
}

static void drop_unused(struct origins *os, int64_t project_id)
{
    struct use *u = use_of(os, project_id);
    if (u->makers == 0 && !u->is_going && !u->is_gone)
        free(imap_del(os->by_use, (uint64_t)project_id));
}

bool origins_begin_making(struct origins *os, int64_t project_id)
{
    struct use *u = use_of(os, project_id);
    bool may = !u->is_going && !u->is_gone;
    u->makers += may;
    return may;
}

void origins_end_making(struct origins *os, int64_t project_id)
{
    use_of(os, project_id)->makers--;
    drop_unused(os, project_id);
}

bool origins_begin_deletion(struct origins *os, int64_t project_id)
{
    struct use *u = use_of(os, project_id);
    bool may = u->makers == 0 && !u->is_going;
    u->is_going |= may;
    return may;
}

void origins_end_deletion(struct origins *os, int64_t project_id, bool is_gone)
{
    struct use *u = use_of(os, project_id);
    u->is_going = false;
    u->is_gone |= is_gone;
    drop_unused(os, project_id);
}

void origins_on_request(struct origins *os, const struct http_req *req)
{
    static const char *const roots[] = {"/api/v1/workspaces", "/api/v1/projects", "/api/v1/users"};
    if (!os || !req->route || req->method == HTTP_GET)
        return;
    for (size_t i = 0; i < DET_ARRAY_LEN(roots); i++)
        if (!strncmp(req->route->pattern, roots[i], strlen(roots[i])))
            forget_all(os);
}
