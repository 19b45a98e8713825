#include "gc.h"

#include "driver.h"
#include "log.h"
#include "masterconf.h"
#include "mem.h"

#include <math.h>

enum { ROUND_MS = 30000 };

struct gc {
    struct shell *sh;
    uv_timer_t timer;
    bool rescanned, began;
    int users; /* the timer until it is closed, and the owner */
};

/* False: nothing came; but for a master that stops it is logged. */
static bool has_come(const struct db_result *r, const char *what)
{
    int rc = db_rc(r);
    if (rc < 0 && rc != DET_ECANCELED && rc != DET_EUNAVAIL)
        log_warning("%s: %s; it is tried again", what, db_error(r)->text);
    return rc == 0;
}

/* ---- asking agents ---- */

static json_t *parse_column(const struct db_result *r, int i, int column)
{
    return json_parse(db_text(r, i, column), db_text_len(r, i, column), NULL);
}

static void ask_collection(struct shell *sh, const struct db_result *r, int i)
{
    JSON_OWN config = parse_column(r, i, OPEN_CONFIG);
    JSON_OWN uuids = parse_column(r, i, OPEN_UUIDS);
    JSON_OWN globs = db_is_null(r, i, OPEN_GLOBS) ? NULL : parse_column(r, i, OPEN_GLOBS);
    struct core_event ev = {.kind = CORE_EV_EXP_GC, .exp_id = db_i64(r, i, OPEN_EXP)};
    ev.gc = (struct core_gc){.exp_id = ev.exp_id,
                             .owner_id = db_i64(r, i, OPEN_OWNER),
                             .job_id = db_text(r, i, OPEN_JOB),
                             .config = config,
                             .uuids = uuids,
                             .action = db_text(r, i, OPEN_ACTION),
                             .globs = globs};
    driver_post(sh->driver, &ev, NULL, NULL);
}

static void on_open(void *arg, const struct db_result *r)
{
    if (!has_come(r, "the journal of checkpoint collection cannot be read"))
        return;
    for (int i = 0; i < db_rows(r); i++)
        ask_collection(arg, r, i);
}

void gc_carry_out(struct shell *sh, int64_t exp_id)
{
    db_gc_open(sh->db, exp_id, on_open, sh);
}

/* ---- judging ---- */

static struct gc_keep keep_of(const struct db_result *r, int i)
{
    return (struct gc_keep){.experiment_best = db_i64(r, i, GC_KEEP_EXP),
                            .trial_best = db_i64(r, i, GC_KEEP_TRIAL),
                            .trial_latest = db_i64(r, i, GC_KEEP_NEW),
                            .smaller_is_better = db_bool(r, i, GC_SMALLER)};
}

/* One past the last row of the experiment of row i. */
static int end_of(const struct db_result *r, int i)
{
    int n = i;
    while (n < db_rows(r) && db_i64(r, n, GC_EXP) == db_i64(r, i, GC_EXP))
        n++;
    return n;
}

static int64_t pick_setting(int64_t other, int64_t own)
{
    return other >= 0 ? other : own;
}

struct gc_checkpoint *gc_judge(const struct db_result *r, const struct gc_keep *keep)
{
    int n = db_rows(r);
    struct gc_checkpoint *v = det_zalloc(((size_t)n + 1) * sizeof *v);
    for (int i = 0; i < n; i++)
        v[i] = (struct gc_checkpoint){
            .uuid = db_text(r, i, GC_UUID),
            .trial_id = db_i64(r, i, GC_TRIAL),
            .steps = db_i64(r, i, GC_STEPS),
            .report_us = db_i64(r, i, GC_TIME_US),
            .metric = db_is_null(r, i, GC_METRIC) ? (double)NAN : db_f64(r, i, GC_METRIC),
            .held = (unsigned)db_i64(r, i, GC_HELD)};
    for (int i = 0, end; i < n; i = end) {
        struct gc_keep own = keep_of(r, i);
        if (keep)
            own = (struct gc_keep){pick_setting(keep->experiment_best, own.experiment_best),
                                   pick_setting(keep->trial_best, own.trial_best),
                                   pick_setting(keep->trial_latest, own.trial_latest),
                                   own.smaller_is_better};
        end = end_of(r, i);
        gc_policy(v + i, (size_t)(end - i), &own);
    }
    return v;
}

struct looked { /* an experiment whose intent is being written */
    struct shell *sh;
    int64_t exp_id;
};

static void on_collected(void *arg, const struct db_result *r)
{
    has_come(r, "the end of a collection cannot be written");
}

static void on_intended(void *arg, const struct db_result *r)
{
    det_cleanup(freep) struct looked *k = arg;
    if (!has_come(r, "checkpoints cannot be marked for collection"))
        return;
    db_gc_collected(k->sh->db, k->exp_id, on_collected, NULL);
    if (db_rows(r) > 0)
        gc_carry_out(k->sh, k->exp_id);
}

static void let_go(struct shell *sh, int64_t exp_id, json_t *uuids)
{
    det_cleanup(freep) char *text = json_text(uuids);
    struct looked *k = det_alloc(sizeof *k);
    *k = (struct looked){sh, exp_id};
    struct db_gc_intent in = {
        .uuids = text, .mask = ~0u >> 1, .rest_s = sh->conf->checkpoint_quarantine_ms / 1000};
    db_gc_intend(sh->db, &in, on_intended, k);
}

void gc_let_go(struct shell *sh, const struct db_result *r, const struct gc_checkpoint *v)
{
    for (int i = 0, end; i < db_rows(r); i = end) {
        JSON_OWN uuids = json_array();
        end = end_of(r, i);
        for (int k = i; k < end; k++)
            if (v[k].why == 0 && *v[k].uuid)
                json_array_append_new(uuids, json_string(v[k].uuid));
        let_go(sh, db_i64(r, i, GC_EXP), uuids);
    }
}

static void on_list(void *arg, const struct db_result *r)
{
    if (!has_come(r, "checkpoints cannot be looked through for collection"))
        return;
    det_cleanup(freep) struct gc_checkpoint *v = gc_judge(r, NULL);
    gc_let_go(arg, r, v);
}

void gc_wanted(struct shell *sh, int64_t exp_id)
{
    db_gc_list(sh->db, &(struct db_gc_scope){.exp_id = exp_id}, on_list, sh);
}

/* ---- rounds ---- */

static void on_rescanned(void *arg, const struct db_result *r)
{
    struct gc *g = arg;
    if (db_rc(r) != 0)
        g->rescanned = false;
    on_list(g->sh, r);
}

static void on_expired(void *arg, const struct db_result *r)
{
    struct gc *g = arg;
    if (!has_come(r, "the quarantine cannot be looked through"))
        return;
    gc_carry_out(g->sh, g->began ? 0 : -1);
    g->began = true;
}

static void on_round(uv_timer_t *t)
{
    struct gc *g = t->data;
    if (!db_is_up(g->sh->db))
        return;
    if (!g->rescanned) {
        g->rescanned = true;
        db_gc_list(g->sh->db, &(struct db_gc_scope){.due = true}, on_rescanned, g);
    }
    db_gc_expire(g->sh->db, on_expired, g);
}

struct gc *gc_create(struct shell *sh)
{
    struct gc *g = det_zalloc(sizeof *g);
    g->sh = sh;
    g->users = 2;
    uv_timer_init(sh->loop, &g->timer);
    g->timer.data = g;
    uv_timer_start(&g->timer, on_round, 0, ROUND_MS);
    return g;
}

static void release_gc(struct gc *g)
{
    if (--g->users == 0)
        free(g);
}

static void on_closed(uv_handle_t *h)
{
    release_gc(h->data);
}

void gc_stop(struct gc *g)
{
    if (g)
        uv_close((uv_handle_t *)&g->timer, on_closed);
}

void gc_destroy(struct gc *g)
{
    if (g)
        release_gc(g);
}
