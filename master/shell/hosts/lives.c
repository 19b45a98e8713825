#include "lives.h"

#include "clk.h"
#include "db_lives.h"
#include "driver.h"
#include "log.h"
#include "map.h"
#include "mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSED_MAX = 10000 };

struct refused {
    int64_t at_us;
    char text[sizeof((struct det_err *)0)->text];
};
struct lives {
    struct shell *sh;
    struct db_life *v; /* by epoch; the last one leads */
    size_t n;
    const struct db_life *newest; /* that began a new life; NULL: none did */
    struct map *refused;          /* by agent */
};

struct lives *lives_create(struct shell *sh, struct db_life *lives, size_t n)
{
    struct lives *l = det_zalloc(sizeof *l);
    *l = (struct lives){.sh = sh, .v = lives, .n = n, .refused = map_create()};
    for (size_t i = 0; i < n; i++)
        l->newest = lives[i].is_new ? &lives[i] : l->newest;
    if (l->newest == &lives[n - 1])
        log_warning("a new life begins: the database %s; what ran is given up and starts again, "
                    "and ids skip to the next thousand",
                    l->newest->is_chosen ? "was chosen with det-master new-life"
                                         : "was restored or moved");
    return l;
}

void lives_destroy(struct lives *l)
{
    const char *key;
    void *v;
    if (!l)
        return;
    for (size_t it = 0; map_next(l->refused, &it, &key, &v);)
        free(v);
    map_destroy(l->refused);
    free(l->v);
    free(l);
}

static const struct db_life *now_of(const struct lives *l)
{
    return &l->v[l->n - 1];
}

static int by_epoch(const void *a, const void *b)
{
    const struct db_life *x = a, *y = b;
    return (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

static const struct db_life *find_life(const struct lives *l, int64_t epoch)
{
    const struct db_life key = {.epoch = epoch};
    return bsearch(&key, l->v, l->n, sizeof *l->v, by_epoch);
}

static int64_t last_batch(const struct lives *l, const struct db_life *x)
{
    return x == now_of(l) ? driver_batch(l->sh->driver) : x->last_batch;
}

const char *lives_nonce(const struct lives *l)
{
    return now_of(l)->nonce;
}

bool lives_has(const struct lives *l, int64_t epoch, const char *mark, int64_t batch)
{
    if (epoch == 0)
        return !l->newest;
    const struct db_life *x = find_life(l, epoch);
    return x && strncmp(x->nonce, mark, LIVES_MARK_MAX - 1) == 0 && batch <= last_batch(l, x);
}

void lives_now(const struct lives *l, int64_t *ret_epoch, char ret_mark[LIVES_MARK_MAX],
               int64_t *ret_batch)
{
    *ret_epoch = now_of(l)->epoch;
    *ret_batch = driver_batch(l->sh->driver);
    snprintf(ret_mark, LIVES_MARK_MAX, "%.*s", LIVES_MARK_MAX - 1, now_of(l)->nonce);
}

json_t *lives_json(const struct lives *l)
{
    struct link_life now = {.cluster = l->sh->cluster_id,
                            .nonce = now_of(l)->nonce,
                            .epoch = now_of(l)->epoch,
                            .batch = driver_batch(l->sh->driver)};
    core_last_ids(driver_core(l->sh->driver), &now.exp, &now.trial);
    now.exp = now.exp < LINK_IDS_MAX ? now.exp : LINK_IDS_MAX;
    now.trial = now.trial < LINK_IDS_MAX ? now.trial : LINK_IDS_MAX;
    return link_life_json(&now);
}

static bool is_ours(const struct lives *l, const struct link_life *seen)
{
    const struct db_life *x = find_life(l, seen->epoch);
    return x && strcmp(x->nonce, seen->nonce) == 0 && seen->batch <= last_batch(l, x);
}

#define REMEDY                                                                                     \
    "If this database is the one to go on with, end the other master, run det-master new-life "    \
    "with this one's settings, and start this one again; else give the agent the other master's "  \
    "address"

static int judge_life(const struct lives *l, const struct link_life *seen, bool has_tasks,
                      struct det_err *err)
{
    if (strcmp(seen->cluster, l->sh->cluster_id) != 0)
        return !has_tasks
                   ? 0
                   : det_fail(err, DET_ESTALE,
                              "it has tasks of cluster %.64s, this master serves cluster %s: "
                              "end them with det-agent --end-tasks on its host, or give it "
                              "the other master's address",
                              seen->cluster, l->sh->cluster_id);
    if (is_ours(l, seen) || (l->newest && l->newest->is_chosen))
        return 0;
    const struct db_life *x = find_life(l, seen->epoch);
    if (x && strcmp(x->nonce, seen->nonce) == 0)
        return det_fail(err, DET_ESTALE,
                        "it has served batch %" PRId64 " of leadership %" PRId64
                        ", of which this database has %" PRId64
                        ": the database was restored from an older copy. " REMEDY,
                        seen->batch, seen->epoch, last_batch(l, x));
    return det_fail(
        err, DET_ESTALE,
        "it has served a leadership %" PRId64
        " that this database does not come from: it was restored from an older copy, or "
        "another master serves another copy of it. " REMEDY,
        seen->epoch);
}

static void note_refused(struct lives *l, const char *agent_id, const char *text)
{
    struct refused *r = map_get(l->refused, agent_id);
    if (!r && map_size(l->refused) >= REFUSED_MAX)
        return;
    if (!r) {
        r = det_zalloc(sizeof *r);
        map_put(l->refused, agent_id, r);
    }
    if (strcmp(r->text, text) != 0)
        log_with(LOG_ERROR, LOG_FIELDS("agent", agent_id), "refused: %s", text);
    r->at_us = clk_wall_us();
    snprintf(r->text, sizeof r->text, "%s", text);
}

static void skip_ids(struct lives *l, const struct link_life *seen)
{
    driver_post(l->sh->driver,
                &(struct core_event){
                    .kind = CORE_EV_IDS_SEEN, .exp_id = seen->exp, .trial_id = seen->trial},
                NULL, NULL);
}

int lives_judge(struct lives *l, const char *agent_id, const struct link_life *seen, bool has_tasks,
                struct det_err *err)
{
    int rc = judge_life(l, seen, has_tasks, err);
    if (rc < 0)
        note_refused(l, agent_id, err->text);
    else
        free(map_del(l->refused, agent_id));
    if (strcmp(seen->cluster, l->sh->cluster_id) == 0)
        skip_ids(l, seen);
    return rc;
}

json_t *lives_refused(const struct lives *l)
{
    json_t *all = json_array();
    const char *id;
    void *v;
    for (size_t it = 0; map_next(l->refused, &it, &id, &v);) {
        const struct refused *r = v;
        json_array_append_new(all, json_make("{s:s, s:I, s:s}", "agentId", id, "atUs",
                                             (json_int_t)r->at_us, "reason", r->text));
    }
    return all;
}
