#include "gc.h"

#include "db_gc.h"
#include "driver.h"
#include "json.h"
#include "log.h"
#include "mem.h"

struct scan {
    size_t n, at;
    int64_t ids[];
};
struct job {
    struct shell *sh;
    int64_t exp_id;
    struct scan *scan; /* that this is a step of; may be NULL */
};

static void scan_next(struct shell *sh, struct scan *s);

static void collect(const struct job *j, const struct db_result *r)
{
    if (db_rc(r) < 0) {
        log_warning("checkpoints of experiment %lld are not collected: %s", (long long)j->exp_id,
                    db_error(r)->text);
        return;
    }
    if (db_rows(r) != 1)
        return;
    JSON_OWN config = json_parse(db_text(r, 0, GC_CONFIG), db_text_len(r, 0, GC_CONFIG), NULL);
    JSON_OWN uuids = json_parse(db_text(r, 0, GC_UUIDS), db_text_len(r, 0, GC_UUIDS), NULL);
    if (!config || !uuids || json_array_size(uuids) == 0)
        return;
    struct core_event ev = {.kind = CORE_EV_EXP_GC, .exp_id = j->exp_id};
    ev.gc = (struct core_gc){.exp_id = j->exp_id,
                             .owner_id = db_i64(r, 0, GC_OWNER),
                             .job_id = db_text(r, 0, GC_JOB),
                             .config = config,
                             .uuids = uuids};
    driver_post(j->sh->driver, &ev, NULL, NULL);
}

static void on_unwanted(void *arg, const struct db_result *r)
{
    det_cleanup(freep) struct job *j = arg;
    if (db_rc(r) == DET_ECANCELED) { /* the master stops */
        free(j->scan);
        return;
    }
    collect(j, r);
    if (j->scan)
        scan_next(j->sh, j->scan);
}

static void look(struct shell *sh, int64_t exp_id, struct scan *scan)
{
    struct job *j = det_alloc(sizeof *j);
    *j = (struct job){sh, exp_id, scan};
    db_gc_unwanted(sh->db, exp_id, on_unwanted, j);
}

void gc_wanted(struct shell *sh, int64_t exp_id)
{
    look(sh, exp_id, NULL);
}

static void scan_next(struct shell *sh, struct scan *s)
{
    if (s->at == s->n)
        free(s);
    else
        look(sh, s->ids[s->at++], s);
}

static void on_candidates(void *arg, const struct db_result *r)
{
    if (db_rc(r) < 0) {
        if (db_rc(r) != DET_ECANCELED)
            log_warning(
                "finished experiments are not looked through for checkpoints to collect: %s",
                db_error(r)->text);
        return;
    }
    struct scan *s = det_alloc(sizeof *s + (size_t)db_rows(r) * sizeof *s->ids);
    s->n = (size_t)db_rows(r);
    s->at = 0;
    for (size_t i = 0; i < s->n; i++)
        s->ids[i] = db_i64(r, (int)i, 0);
    scan_next(arg, s);
}

void gc_rescan(struct shell *sh)
{
    db_gc_candidates(sh->db, on_candidates, sh);
}
