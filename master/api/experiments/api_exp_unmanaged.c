#include "api_exp_unmanaged.h"

#include "clk.h"
#include "db_unmanaged.h"
#include "driver.h"
#include "mem.h"
#include "shell.h"
#include "uuid.h"

struct making {
    struct shell *sh;
    struct exp_unmanaged in;
    exp_unmanaged_cb *cb;
    void *arg;
    int64_t id;
};

static void making_end(struct making *m, int64_t id, const struct det_err *err)
{
    m->cb(m->arg, id, err);
    free(m);
}

static void find_experiment(struct making *m);

static void on_stored(void *arg, int rc, const struct det_err *err)
{
    struct making *m = arg;
    if (rc == DET_EEXIST && m->in.external_id)
        find_experiment(m); /* somebody was faster */
    else
        making_end(m, m->id, err);
}

static void store_experiment(struct making *m)
{
    char job_id[UUID_STR_MAX];
    uuid_random(job_id);
    const struct row_experiment r = {.is_new = true,
                                     .id = m->id,
                                     .job_id = job_id,
                                     .owner_id = m->in.owner_id,
                                     .project_id = m->in.project_id,
                                     .parent_id = m->in.parent_id,
                                     .config = m->in.config,
                                     .start_us = clk_wall_us(),
                                     .state = EXP_ACTIVE,
                                     .progress = -1,
                                     .resource_pool = m->in.pool,
                                     .weight = 1,
                                     .max_slots = -1,
                                     .queue_position = (double)m->id};
    const struct db_experiment_extra x = {.original_config = m->in.original_config,
                                          .model_def = m->in.model_def,
                                          .model_def_len = m->in.model_def_len};
    db_unmanaged_create(m->sh->db, &r, &x, m->in.external_id, on_stored, m);
}

static void on_id(void *arg, const struct core_reply *r)
{
    struct making *m = arg;
    struct det_err err = {0};
    if (r->code < 0) {
        (void)det_fail(&err, r->code, "%s", core_reply_text(r));
        making_end(m, 0, &err);
        return;
    }
    m->id = r->id;
    store_experiment(m);
}

static void take_id(struct making *m)
{
    driver_post(m->sh->driver, &(struct core_event){.kind = CORE_EV_EXP_ID}, on_id, m);
}

static void on_found(void *arg, const struct db_result *r)
{
    struct making *m = arg;
    if (db_rc(r) < 0 || db_rows(r) > 0)
        making_end(m, db_rc(r) < 0 ? 0 : db_i64(r, 0, 0), db_error(r));
    else
        take_id(m);
}

static void find_experiment(struct making *m)
{
    db_unmanaged_find(m->sh->db, m->in.owner_id, m->in.external_id, on_found, m);
}

void exp_unmanaged_make(struct shell *sh, const struct exp_unmanaged *in, exp_unmanaged_cb *cb,
                        void *arg)
{
    struct making *m = det_alloc(sizeof *m);
    *m = (struct making){.sh = sh, .in = *in, .cb = cb, .arg = arg};
    if (in->external_id)
        find_experiment(m);
    else
        take_id(m);
}
