#include "db_call.h"

#include "mem.h"

struct call {
    db_judge *judge;
    db_done_cb *cb;
    void *arg;
};

static void on_result(void *arg, const struct db_result *r)
{
    struct call *c = arg;
    struct det_err err = *db_error(r);
    int rc = db_rc(r);
    if (rc == 0 && c->judge)
        rc = c->judge(r, &err);
    if (c->cb)
        c->cb(c->arg, rc, &err);
    free(c);
}

static struct call *call_new(db_judge *judge, db_done_cb *cb, void *arg)
{
    struct call *c = det_alloc(sizeof *c);
    *c = (struct call){judge, cb, arg};
    return c;
}

void db_call_write(struct db *db, const char *sql, const struct db_args *args, db_judge *judge,
                   db_done_cb *cb, void *arg)
{
    db_write(db, sql, args, on_result, call_new(judge, cb, arg));
}

void db_call_commit(struct db_tx *tx, db_judge *judge, db_done_cb *cb, void *arg)
{
    db_tx_commit(tx, on_result, call_new(judge, cb, arg));
}

int db_judge_fence(const struct db_result *r, struct det_err *err)
{
    if (db_affected(r) > 0)
        return 0;
    return det_fail(err, DET_ESTALE, "the report belongs to a run of the trial that has ended");
}
