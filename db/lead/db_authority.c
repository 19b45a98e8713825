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

int db_authority_read(const char *conninfo, struct buf *cert, struct buf *key, struct det_err *err)
{
    det_cleanup(PQclearp) PGresult *r =
        ask(conninfo, "SELECT certificate, key FROM authority", NULL, 0, err);
    if (!r)
        return err->code;
    if (PQntuples(r) > 0) {
        buf_add_str(cert, PQgetvalue(r, 0, 0));
        buf_add_str(key, PQgetvalue(r, 0, 1));
    }
    return 0;
}

int db_authority_keep(const char *conninfo, const char *cert, const char *key, struct det_err *err)
{
    const char *values[] = {cert, key};
    det_cleanup(PQclearp) PGresult *r =
        ask(conninfo, "INSERT INTO authority (certificate, key) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            values, 2, err);
    return r ? 0 : err->code;
}
