#include "db_migrate.h"

#include "db.h"
#include "mem.h"
#include "uuid.h"

#include <libpq-fe.h>
#include <stdio.h>

DET_DEFINE_CLEANUP(PGconn *, PQfinish)

static int run(PGconn *pg, const char *what, const char *sql, struct det_err *err)
{
    PGresult *r = PQexec(pg, sql);
    ExecStatusType st = PQresultStatus(r);
    PQclear(r);
    if (st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK)
        return 0;
    return det_fail(err, DET_EIO, "migration %s: %s", what, PQerrorMessage(pg));
}

static int version_read(PGconn *pg, int *ret, struct det_err *err)
{
    PGresult *r = PQexec(pg, "SELECT coalesce(max(version), 0) FROM schema_version");
    int rc = PQresultStatus(r) == PGRES_TUPLES_OK
                 ? 0
                 : det_fail(err, DET_EIO, "read schema_version: %s", PQerrorMessage(pg));
    if (rc == 0)
        *ret = (int)strtol(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return rc;
}

static int apply(PGconn *pg, const struct db_migration *m, struct det_err *err)
{
    char note[128];
    snprintf(note, sizeof note, "INSERT INTO schema_version (version) VALUES (%d)", m->version);
    int rc = run(pg, m->name, "BEGIN", err);
    if (rc == 0)
        rc = run(pg, m->name, m->sql, err);
    if (rc == 0)
        rc = run(pg, m->name, note, err);
    if (rc == 0)
        return run(pg, m->name, "COMMIT", err);
    run(pg, m->name, "ROLLBACK", NULL);
    return rc;
}

/* The cluster's identity and secrets, made once. */
static int identity(PGconn *pg, struct det_err *err)
{
    char id[UUID_STR_MAX], key[65], token[65];
    uuid_random(id);
    random_hex(key, 32);
    random_hex(token, 32);
    const char *v[] = {id, key, token};
    PGresult *r = PQexecParams(pg,
                               "INSERT INTO cluster (cluster_id, token_key, agent_token) "
                               "VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                               3, NULL, v, NULL, NULL, 0);
    int rc = PQresultStatus(r) == PGRES_COMMAND_OK
                 ? 0
                 : det_fail(err, DET_EIO, "write the cluster row: %s", PQerrorMessage(pg));
    PQclear(r);
    return rc;
}

static int migrate_locked(PGconn *pg, struct det_err *err)
{
    int have = 0;
    int rc = run(pg, "table",
                 "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, "
                 "applied_at timestamptz NOT NULL DEFAULT now())",
                 err);
    if (rc == 0)
        rc = version_read(pg, &have, err);
    if (rc == 0 && have > db_migrations_n)
        rc = det_fail(
            err, DET_ESTATE,
            "the database has schema version %d, this det-master knows %d: start the newer "
            "det-master, or restore a backup",
            have, db_migrations_n);
    for (int i = 0; rc == 0 && i < db_migrations_n; i++)
        if (db_migrations[i].version > have)
            rc = apply(pg, &db_migrations[i], err);
    return rc == 0 ? identity(pg, err) : rc;
}

static void ignore_notice(void *arg, const PGresult *r)
{
}

int db_migrate(const char *conninfo, struct det_err *err)
{
    det_cleanup(PQfinishp) PGconn *pg = PQconnectdb(conninfo);
    if (PQstatus(pg) != CONNECTION_OK)
        return det_fail(err, DET_EUNAVAIL, "connect to PostgreSQL (--db): %s", PQerrorMessage(pg));
    PQsetNoticeReceiver(pg, ignore_notice, NULL);
    int rc = run(pg, "session", "SET synchronous_commit = on", err); /* whatever the role's is */
    if (rc == 0)
        rc = run(pg, "lock", "SELECT pg_advisory_lock(4919002)", err);
    return rc == 0 ? migrate_locked(pg, err) : rc; /* the lock ends with the session */
}
