#include "gc.h"

#include "db_gc.h"
#include "driver.h"
#include "json.h"
#include "log.h"
#include "mem.h"

struct job {
    struct shell *sh;
    int64_t exp_id;
};

static void on_unwanted(void *arg, const struct db_result *r)
{
    det_cleanup(freep) struct job *j = arg;
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

void gc_wanted(struct shell *sh, int64_t exp_id)
{
    struct job *j = det_alloc(sizeof *j);
    *j = (struct job){sh, exp_id};
    db_gc_unwanted(sh->db, exp_id, on_unwanted, j);
}
