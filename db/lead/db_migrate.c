#include "db_migrate.h"

#include "db.h"
#include "db_objects.h"
#include "log.h"
#include "mem.h"
#include "uuid.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <uv.h>

DET_DEFINE_CLEANUP(PGconn *, PQfinish)

static int run(PGconn *pg, const char *what, const char *sql, struct det_err *err)
{
    PGresult *r = PQexec(pg, sql);
    ExecStatusType st = PQresultStatus(r);
    int code = db_objects_code(r);
    PQclear(r);
    if (st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK)
        return 0;
    return det_fail(err, code, "migration %s: %s", what, PQerrorMessage(pg));
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

static int apply_migration(PGconn *pg, const struct db_migration *m, struct det_err *err)
{
    char note[128];
    snprintf(note, sizeof note, "INSERT INTO schema_version (version) VALUES (%d)", m->version);
    int rc = run(pg, m->name, m->sql, err);
    return rc == 0 ? run(pg, m->name, note, err) : rc;
}

/* Whoever writes to a table that this waits for waits behind it, and a vacuum or the making of an
 * index may hold one for hours. So it gives way before the 2 s of a writer are over, though not
 * before an automatic vacuum does so itself (deadlock_timeout, 1 s). */
#define BEGIN "BEGIN; SET LOCAL lock_timeout = 1500"
enum { AGAIN_MS = 3000 };

/* m: may be NULL. With the last one come the functions, so that nobody finds its tables without
 * them. DET_ETIMEOUT: another time. */
static int try_commit(PGconn *pg, const struct db_migration *m, bool with_objects,
                      struct det_err *err)
{
    const char *what = m ? m->name : "functions";
    int rc = run(pg, what, BEGIN, err);
    if (rc == 0 && m)
        rc = apply_migration(pg, m, err);
    if (rc == 0 && with_objects)
        rc = db_objects_lay(pg, err);
    if (rc == 0)
        return run(pg, what, "COMMIT", err);
    det_ignore(run(pg, what, "ROLLBACK", NULL), "the start fails with rc, and the connection ends");
    return rc;
}

static int commit_migration(PGconn *pg, const struct db_migration *m, bool with_objects,
                            struct det_err *err)
{
    int rc;
    bool is_said = false;
    for (; (rc = try_commit(pg, m, with_objects, err)) == DET_ETIMEOUT; uv_sleep(AGAIN_MS)) {
        if (!is_said)
            log_warning("the start waits until nobody else holds the table, as a dump or a vacuum "
                        "does: %s",
                        err->text);
        is_said = true;
    }
    return rc;
}

/* The cluster's identity and secrets, made once. */
static int make_identity(PGconn *pg, struct det_err *err)
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

static int compare_versions(PGconn *pg, int *have, bool *differ, struct det_err *err)
{
    int rc = run(pg, "table",
                 "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, "
                 "applied_at timestamptz NOT NULL DEFAULT now())",
                 err);
    if (rc == 0)
        rc = version_read(pg, have, err);
    if (rc == 0 && *have > db_migrations_n)
        return det_fail(
            err, DET_ESTATE,
            "the database has schema version %d, this det-master knows %d: start the newer "
            "det-master, or restore a backup",
            *have, db_migrations_n);
    return rc == 0 ? db_objects_look(pg, differ, err) : rc;
}

static int migrate_locked(PGconn *pg, struct det_err *err)
{
    int have = 0;
    bool differ = false;
    int rc = compare_versions(pg, &have, &differ, err);
    for (int i = have; rc == 0 && i < db_migrations_n; i++)
        rc = commit_migration(pg, &db_migrations[i], i == db_migrations_n - 1, err);
    if (rc == 0 && have == db_migrations_n && differ)
        rc = commit_migration(pg, NULL, true, err);
    return rc == 0 ? make_identity(pg, err) : rc;
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
