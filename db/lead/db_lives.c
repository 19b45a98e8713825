#include "db_lives.h"

#include "mem.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

DET_DEFINE_CLEANUP(PGconn *, PQfinish)
DET_DEFINE_CLEANUP(PGresult *, PQclear)

struct lives_of {
    struct db_life *v;
    size_t n;
};

static void on_lives(void *arg, const struct db_result *r)
{
    struct lives_of *all = arg;
    all->n = (size_t)db_rows(r);
    all->v = det_zalloc((all->n + 1) * sizeof *all->v);
    for (int i = 0; i < db_rows(r); i++) {
        struct db_life *l = &all->v[i];
        l->epoch = db_i64(r, i, 0);
        snprintf(l->nonce, sizeof l->nonce, "%s", db_text(r, i, 1));
        l->last_batch = db_is_null(r, i, 2) ? INT64_MAX : db_i64(r, i, 2);
        l->is_new = db_bool(r, i, 3);
        l->is_chosen = db_bool(r, i, 4);
    }
}

int db_lives_read(struct db *db, struct db_life **ret, size_t *ret_n, struct det_err *err)
{
    struct lives_of all = {0};
    int rc = db_query_now(
        db, "SELECT epoch, nonce, last_batch, is_new, is_chosen FROM lives ORDER BY epoch", NULL,
        on_lives, &all, err);
    *ret = all.v;
    *ret_n = all.n;
    if (rc == 0 && (all.n == 0 || all.v[all.n - 1].epoch != db_epoch(db)))
        rc = det_fail(err, DET_ECORRUPT, "the table lives has no row of this leadership");
    return rc;
}

void db_stray_keep(struct db *db, const struct db_stray *s, db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_str_arg(DB_ARGS, s->agent_id), s->alloc_id);
    db_bool_arg(db_str_arg(db_str_arg(a, s->what), s->body), s->unless_known);
    db_write(db,
             "INSERT INTO strays (agent_id, alloc_id, what, body) SELECT $1, $2, $3, $4 "
             "WHERE (SELECT count(*) FROM strays) < 10000 AND NOT ($5::boolean AND "
             "EXISTS (SELECT FROM allocations WHERE id = $2))",
             a, cb, arg);
}

void db_strays(struct db *db, int64_t limit, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('strays', coalesce(jsonb_agg(x.doc ORDER BY x.id DESC), "
             "'[]'), 'total', (SELECT count(*) FROM strays)) FROM (SELECT id, jsonb_build_object("
             "'id', id, 'time', api_time(at), 'agentId', agent_id, 'allocationId', alloc_id, "
             "'what', what, 'bytes', octet_length(body), 'body', left(body, 2000)) doc FROM strays "
             "ORDER BY id DESC LIMIT $1::bigint) x",
             db_i64_arg(DB_ARGS, limit), cb, arg);
}

void db_strays_drop(struct db *db, const char *alloc_id, db_cb *cb, void *arg)
{
    db_write(
        db,
        "WITH gone AS (DELETE FROM strays WHERE $1::text IS NULL OR alloc_id = $1 RETURNING 1) "
        "SELECT jsonb_build_object('removed', count(*)) FROM gone",
        db_str_arg(DB_ARGS, alloc_id), cb, arg);
}

void db_lives_list(struct db *db, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT coalesce(jsonb_agg(jsonb_build_object('epoch', epoch, 'lastBatch', last_batch, "
        "'begun', api_time(began_at), 'master', url, 'isNew', is_new, 'isChosen', is_chosen) "
        "ORDER BY epoch), '[]') FROM (SELECT * FROM lives ORDER BY epoch DESC LIMIT 100) x",
        NULL, cb, arg);
}

int db_new_life(const char *conninfo, bool *ret_is_led, struct det_err *err)
{
    det_cleanup(PQfinishp) PGconn *pg = PQconnectdb(conninfo);
    if (PQstatus(pg) != CONNECTION_OK)
        return det_fail(err, DET_EUNAVAIL, "connect to PostgreSQL (--db): %s", PQerrorMessage(pg));
    det_cleanup(PQclearp) PGresult *r = PQexec(
        pg, "UPDATE cluster SET new_life_wanted = true RETURNING EXISTS (SELECT FROM pg_locks "
            "WHERE locktype = 'advisory' AND classid = 0 AND objid = 4919001 AND granted AND "
            "database = (SELECT oid FROM pg_database WHERE datname = current_database()))");
    if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) != 1)
        return det_fail(err, DET_EIO, "the database has no cluster that could begin a new life: %s",
                        PQerrorMessage(pg));
    *ret_is_led = PQgetvalue(r, 0, 0)[0] == 't';
    return 0;
}
