#include "db_authority.h"

#include "mem.h"

#include <libpq-fe.h>

DET_DEFINE_CLEANUP(PGconn *, PQfinish)
DET_DEFINE_CLEANUP(PGresult *, PQclear)

static PGresult *ask(const char *conninfo, const char *sql, const char *const *values, int n,
                     struct det_err *err)
{
    det_cleanup(PQfinishp) PGconn *pg = PQconnectdb(conninfo);
    if (PQstatus(pg) != CONNECTION_OK) {
        det_fail(err, DET_EUNAVAIL, "connect to PostgreSQL (--db): %s", PQerrorMessage(pg));
        return NULL;
    }
    PGresult *r = PQexecParams(pg, sql, n, NULL, values, NULL, NULL, 0);
    ExecStatusType st = PQresultStatus(r);
    if (st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK)
        return r;
    det_fail(err, DET_EIO, "the table authority: %s", PQerrorMessage(pg));
    PQclear(r);
    return NULL;
}

int db_authority_read(const char *conninfo, struct db_authority *ret, struct det_err *err)
{
    det_cleanup(PQclearp) PGresult *r = ask(
        conninfo, "SELECT certificate, key, vouches, formers FROM authority_chain", NULL, 0, err);
    if (!r)
        return err->code;
    if (PQntuples(r) > 0) {
        buf_add_str(&ret->cert, PQgetvalue(r, 0, AUTHORITY_CERT));
        buf_add_str(&ret->key, PQgetvalue(r, 0, AUTHORITY_KEY));
        buf_add_str(&ret->vouches, PQgetvalue(r, 0, AUTHORITY_VOUCHES));
        buf_add_str(&ret->formers, PQgetvalue(r, 0, AUTHORITY_FORMERS));
    }
    return 0;
}

int db_authority_keep(const char *conninfo, const char *cert, const char *key, struct det_err *err)
{
    const char *values[] = {cert, key};
    det_cleanup(PQclearp) PGresult *r = ask(
        conninfo, "INSERT INTO authority (certificate, key) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        values, 2, err);
    return r ? 0 : err->code;
}

void db_authority_replace(struct db *db, const struct db_succession *s, db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_str_arg(DB_ARGS, s->old), s->cert);
    db_write(db, "SELECT certificate, key, vouches, formers FROM authority_replace($1, $2, $3, $4)",
             db_str_arg(db_str_arg(a, s->key), s->vouch), cb, arg);
}
