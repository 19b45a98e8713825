/* lay-schema CONNINFO: the schema of this build's det-master in a new database (tests/lib/pg.sh).
 * The cluster's identity and secrets go again: each copy's first master makes its own.
 */
#include "db.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int forget_identity(const char *conninfo)
{
    PGconn *pg = PQconnectdb(conninfo);
    PGresult *r = PQexec(pg, "DELETE FROM cluster");
    bool gone = PQresultStatus(r) == PGRES_COMMAND_OK && strcmp(PQcmdTuples(r), "1") == 0;
    if (!gone)
        fprintf(stderr, "lay-schema: the cluster's row: %s\n", PQerrorMessage(pg));
    PQclear(r);
    PQfinish(pg);
    return gone ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct det_err err;
    if (argc != 2) {
        fprintf(stderr, "usage: lay-schema CONNINFO\n");
        return 2;
    }
    if (db_migrate(argv[1], &err) < 0) {
        fprintf(stderr, "lay-schema: %s\n", err.text);
        return 1;
    }
    return forget_identity(argv[1]);
}
