#include "db_objects.h"

#include "db_migrate.h"
#include "db_state.h"
#include "mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DET_DEFINE_CLEANUP(PGresult *, PQclear)

#define TABLE                                                                                      \
    "CREATE TABLE IF NOT EXISTS functions_laid (what text PRIMARY KEY, hash text NOT NULL, "       \
    "number integer NOT NULL)"
#define LAID "SELECT what, hash, number FROM functions_laid ORDER BY what COLLATE \"C\" DESC"
#define KEEP                                                                                       \
    "INSERT INTO functions_laid VALUES ($1, $2, 0) "                                               \
    "ON CONFLICT (what) DO UPDATE SET hash = excluded.hash"
/* What an index, a partition key, a constraint or a generated column keeps values of (up to 14 the
 * column itself depends on the function, later its expression). */
#define STORED                                                                                     \
    "SELECT DISTINCT p.oid, p.proname, md5(p.prosrc) FROM pg_depend d "                            \
    "JOIN pg_proc p ON p.oid = d.refobjid LEFT JOIN pg_attrdef e "                                 \
    "ON d.classid = 'pg_attrdef'::regclass AND e.oid = d.objid LEFT JOIN pg_attribute a "          \
    "ON a.attrelid = e.adrelid AND a.attnum = e.adnum "                                            \
    "WHERE d.refclassid = 'pg_proc'::regclass AND p.pronamespace = "                               \
    "current_schema()::regnamespace "                                                              \
    "AND (d.classid IN ('pg_class'::regclass, 'pg_constraint'::regclass) OR a.attgenerated <> "    \
    "'') "                                                                                         \
    "ORDER BY p.oid"
/* While they are laid their bodies may name what comes later: so they are looked at here. */
#define CHECK                                                                                      \
    "SELECT CASE l.lanname WHEN 'sql' THEN fmgr_sql_validator(p.oid)::text "                       \
    "ELSE plpgsql_validator(p.oid)::text END "                                                     \
    "FROM functions_laid f JOIN pg_proc p ON f.what = 'function ' || p.proname "                   \
    "JOIN pg_language l ON l.oid = p.prolang WHERE p.pronamespace = "                              \
    "current_schema()::regnamespace"

int db_objects_code(const PGresult *failed)
{
    const char *state = PQresultErrorField(failed, PG_DIAG_SQLSTATE);
    bool in_the_way = state && db_state_find(state)->state == DB_STATE_LOCKED;
    return in_the_way ? DET_ETIMEOUT : DET_EIO;
}

/* Rows or a command; the words of PostgreSQL after `what`. */
static int ask_rows(PGconn *pg, const char *what, const char *sql, PGresult **ret,
                    struct det_err *err)
{
    PGresult *r = PQexec(pg, sql);
    ExecStatusType st = PQresultStatus(r);
    if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK) {
        int code = db_objects_code(r);
        PQclear(r);
        return det_fail(err, code, "db/functions: %s: %s", what, PQerrorMessage(pg));
    }
    *ret = r;
    return 0;
}

static int run_statement(PGconn *pg, const char *what, const char *sql, struct det_err *err)
{
    det_cleanup(PQclearp) PGresult *r = NULL;
    return ask_rows(pg, what, sql, &r, err);
}

static int row_of(const PGresult *laid, const char *what)
{
    for (int i = 0; i < PQntuples(laid); i++)
        if (strcmp(PQgetvalue(laid, i, 0), what) == 0)
            return i;
    return -1;
}

static bool is_laid(const PGresult *laid, const struct db_object *o)
{
    int i = row_of(laid, o->what);
    return i >= 0 && strcmp(PQgetvalue(laid, i, 1), o->hash) == 0;
}

/* A trigger that the migrations left is not made again: that would take its table from a leader who
 * writes meanwhile. */
static bool is_there(const PGresult *laid, const struct db_object *o)
{
    return is_laid(laid, o) || (o->left && row_of(laid, o->what) < 0);
}

static bool is_known(const char *what)
{
    for (int i = 0; i < db_objects_n; i++)
        if (strcmp(db_objects[i].what, what) == 0)
            return true;
    return false;
}

static int number_of(const PGresult *laid)
{
    return PQntuples(laid) ? (int)strtol(PQgetvalue(laid, 0, 2), NULL, 10) : 0;
}

int db_objects_look(PGconn *pg, bool *ret, struct det_err *err)
{
    det_cleanup(PQclearp) PGresult *laid = NULL;
    int rc = run_statement(pg, "table", TABLE, err);
    if (rc == 0)
        rc = ask_rows(pg, "functions_laid", LAID, &laid, err);
    if (rc < 0)
        return rc;
    int number = number_of(laid);
    if (number > db_objects_number)
        return det_fail(err, DET_ESTATE,
                        "the database has functions of number %d, this det-master has %d: start "
                        "the newer det-master, or restore a backup",
                        number, db_objects_number);
    *ret = number < db_objects_number || PQntuples(laid) != db_objects_n;
    for (int i = 0; !*ret && i < db_objects_n; i++)
        *ret = !is_laid(laid, &db_objects[i]);
    return 0;
}

static int keep_object(PGconn *pg, const struct db_object *o, struct det_err *err)
{
    const char *const v[] = {o->what, o->hash};
    det_cleanup(PQclearp) PGresult *r = PQexecParams(pg, KEEP, 2, NULL, v, NULL, NULL, 0);
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        return det_fail(err, DET_EIO, "db/functions: %s: %s", o->what, PQerrorMessage(pg));
    return 0;
}

static int make_new(PGconn *pg, const PGresult *laid, struct det_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < db_objects_n; i++) {
        const struct db_object *o = &db_objects[i];
        if (is_laid(laid, o))
            continue;
        if (!is_there(laid, o))
            rc = run_statement(pg, o->what, o->sql, err);
        if (rc == 0)
            rc = keep_object(pg, o, err);
    }
    return rc;
}

static int drop_object(PGconn *pg, const char *what, struct det_err *err)
{
    char sql[512];
    const char *name = strchr(what, ' ');
    if (!name)
        return det_fail(err, DET_ECORRUPT, "functions_laid has a row of \"%s\"", what);
    snprintf(sql, sizeof sql, "DROP %.*s IF EXISTS%s", (int)(name - what), what, name);
    int rc = run_statement(pg, what, sql, err);
    snprintf(sql, sizeof sql, "DELETE FROM functions_laid WHERE what = '%s'", what);
    return rc == 0 ? run_statement(pg, what, sql, err) : rc;
}

/* Both lists have views, then triggers, then functions. */
static int drop_gone(PGconn *pg, const PGresult *laid, struct det_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < PQntuples(laid); i++)
        if (!is_known(PQgetvalue(laid, i, 0)))
            rc = drop_object(pg, PQgetvalue(laid, i, 0), err);
    for (int i = 0; rc == 0 && db_objects_gone[i]; i++)
        rc = drop_object(pg, db_objects_gone[i], err);
    return rc;
}

/* Both in the order of their oids, which no replacement changes. */
static int check_stored(const PGresult *before, const PGresult *after, struct det_err *err)
{
    for (int i = 0, k = 0; i < PQntuples(before) && k < PQntuples(after); i++) {
        if (strcmp(PQgetvalue(before, i, 0), PQgetvalue(after, k, 0)) != 0)
            continue; /* its index is gone */
        if (strcmp(PQgetvalue(before, i, 2), PQgetvalue(after, k++, 2)) != 0)
            return det_fail(
                err, DET_ESTATE,
                "db/functions: a generated column, an index or a constraint keeps what "
                "%s() gave before: leave it as it is, and give the new one another name",
                PQgetvalue(before, i, 1));
    }
    return 0;
}

static int lay_objects(PGconn *pg, struct det_err *err)
{
    det_cleanup(PQclearp) PGresult *laid = NULL, *before = NULL, *after = NULL;
    char number[64];
    snprintf(number, sizeof number, "UPDATE functions_laid SET number = %d", db_objects_number);
    int rc = ask_rows(pg, "functions_laid", LAID, &laid, err);
    if (rc == 0)
        rc = ask_rows(pg, "pg_depend", STORED, &before, err);
    if (rc == 0)
        rc = make_new(pg, laid, err);
    if (rc == 0)
        rc = ask_rows(pg, "pg_depend", STORED, &after, err);
    if (rc == 0)
        rc = check_stored(before, after, err);
    if (rc == 0)
        rc = drop_gone(pg, laid, err);
    return rc == 0 ? run_statement(pg, "number", number, err) : rc;
}

int db_objects_lay(PGconn *pg, struct det_err *err)
{
    int rc = run_statement(pg, "settings", "SET LOCAL check_function_bodies = off", err);
    if (rc == 0)
        rc = lay_objects(pg, err);
    if (rc == 0)
        rc = run_statement(pg, "settings", "SET LOCAL check_function_bodies = on", err);
    return rc == 0 ? run_statement(pg, "a body", CHECK, err) : rc;
}
