#include "db_health.h"

#include "clk.h"
#include "db_migrate.h"
#include "db_sql.h"
#include "mem.h"

#include <libpq-fe.h>
#include <stdio.h>

DET_DEFINE_CLEANUP(PGconn *, PQfinish)
DET_DEFINE_CLEANUP(PGresult *, PQclear)

/* One connection attempt of at most 5 s; a number in the conninfo itself wins. */
static PGconn *dial(const char *conninfo)
{
    const char *const keys[] = {"connect_timeout", "dbname", NULL};
    const char *const values[] = {"5", conninfo, NULL};
    return PQconnectdbParams(keys, values, 1);
}

/* The highest number of a table's column; 0 without the table. */
static int find_highest(PGconn *pg, const char *table, const char *column, int *ret,
                        struct det_err *err)
{
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT to_regclass('%s')", table);
    det_cleanup(PQclearp) PGresult *there = PQexec(pg, sql);
    if (PQresultStatus(there) != PGRES_TUPLES_OK)
        return det_fail(err, DET_EIO, "%s", PQerrorMessage(pg));
    if (PQgetisnull(there, 0, 0))
        return 0;
    snprintf(sql, sizeof sql, "SELECT coalesce(max(%s), 0) FROM %s", column, table);
    det_cleanup(PQclearp) PGresult *r = PQexec(pg, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        return det_fail(err, DET_EPERM, "%s", PQerrorMessage(pg));
    *ret = (int)strtol(PQgetvalue(r, 0, 0), NULL, 10);
    return 0;
}

int db_health(const char *conninfo, struct db_health *ret, struct det_err *err)
{
    det_cleanup(PQfinishp) PGconn *pg = dial(conninfo);
    *ret = (struct db_health){.newest = db_migrations_n, .functions_newest = db_objects_number};
    if (PQstatus(pg) != CONNECTION_OK)
        return det_fail(err, DET_EUNAVAIL, "%s", PQerrorMessage(pg));
    int64_t before = clk_wall_us();
    det_cleanup(PQclearp) PGresult *r = PQexec(pg, sql_health);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        return det_fail(err, DET_EIO, "%s", PQerrorMessage(pg));
    int64_t now = before + (clk_wall_us() - before) / 2;
    snprintf(ret->server, sizeof ret->server, "%s", PQgetvalue(r, 0, 0));
    ret->server_number = PQserverVersion(pg);
    ret->may_create = PQgetvalue(r, 0, 1)[0] == 't';
    ret->clock_diff_us = strtoll(PQgetvalue(r, 0, 2), NULL, 10) - now;
    ret->is_led = PQgetvalue(r, 0, 3)[0] == 't';
    ret->syncs = PQgetvalue(r, 0, 4)[0] == 't';
    snprintf(ret->commit, sizeof ret->commit, "%s", PQgetvalue(r, 0, 5));
    int rc = find_highest(pg, "schema_version", "version", &ret->schema, err);
    return rc == 0 ? find_highest(pg, "functions_laid", "number", &ret->functions, err) : rc;
}

/* One answer, "" without rows. */
static int ask_text(PGconn *pg, const char *sql, const char *arg, char *ret, size_t max,
                    struct det_err *err)
{
    const char *const args[] = {arg};
    det_cleanup(PQclearp) PGresult *r = PQexecParams(pg, sql, 1, NULL, args, NULL, NULL, 0);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        return det_fail(err, DET_EIO, "%s", PQerrorMessage(pg));
    snprintf(ret, max, "%s", PQntuples(r) ? PQgetvalue(r, 0, 0) : "");
    return 0;
}

int db_health_store(const char *conninfo, const char *place, char id[DB_STORE_ID_MAX],
                    struct det_err *err)
{
    char table[8];
    det_cleanup(PQfinishp) PGconn *pg = dial(conninfo);
    id[0] = '\0';
    if (PQstatus(pg) != CONNECTION_OK)
        return det_fail(err, DET_EUNAVAIL, "%s", PQerrorMessage(pg));
    int rc = ask_text(pg, "SELECT to_regclass($1)", "stores", table, sizeof table, err);
    if (rc < 0 || !table[0])
        return rc; /* of before there were stores */
    return ask_text(pg, "SELECT coalesce(id::text, '') FROM stores WHERE place = $1", place, id,
                    DB_STORE_ID_MAX, err);
}
