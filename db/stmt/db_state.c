#include "db_state.h"

#include "det/err.h"

#include <string.h>

/* clang-format off */
/* A code stands before its class: the first that fits counts. */
static const struct db_meaning meanings[] = {
    {"DE001", DB_STATE_DEPOSED,    DET_EPERM,    DB_BLAME_LEADER},
    {"DE002", DB_STATE_OTHER,      DET_ESTALE,   DB_BLAME_UNKNOWN},
    {"DE003", DB_STATE_OTHER,      DET_ENOENT,   DB_BLAME_UNKNOWN},
    {"DE004", DB_STATE_OTHER,      DET_ESTATE,   DB_BLAME_UNKNOWN},
    {"DE005", DB_STATE_DONE,       DET_EEXIST,   DB_BLAME_UNKNOWN},
    {"DE006", DB_STATE_OTHER,      DET_EIO,      DB_BLAME_LEADER},
    {"08",    DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_SERVER},
    {"0A000", DB_STATE_UNPREPARED, DET_EUNAVAIL, DB_BLAME_UNKNOWN},
    {"21",    DB_STATE_OTHER,      DET_EIO,      DB_BLAME_DATA},
    {"22",    DB_STATE_OTHER,      DET_EINVAL,   DB_BLAME_DATA},
    {"23503", DB_STATE_MISSING,    DET_ENOENT,   DB_BLAME_DATA},
    {"23505", DB_STATE_TAKEN,      DET_EEXIST,   DB_BLAME_DATA},
    {"23",    DB_STATE_OTHER,      DET_EINVAL,   DB_BLAME_DATA},
    {"25006", DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_SERVER},
    {"25",    DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_UNKNOWN},
    {"26000", DB_STATE_UNPREPARED, DET_EUNAVAIL, DB_BLAME_UNKNOWN},
    {"26",    DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_UNKNOWN},
    {"38",    DB_STATE_OTHER,      DET_EIO,      DB_BLAME_DATA},
    {"39",    DB_STATE_OTHER,      DET_EIO,      DB_BLAME_DATA},
    {"40P01", DB_STATE_LOCKED,     DET_EUNAVAIL, DB_BLAME_SERVER},
    {"40",    DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_SERVER},
    {"42",    DB_STATE_OTHER,      DET_EIO,      DB_BLAME_SCHEMA},
    {"44",    DB_STATE_OTHER,      DET_EIO,      DB_BLAME_DATA},
    {"53200", DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_STRAIN},
    {"53",    DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_SERVER},
    {"54",    DB_STATE_OTHER,      DET_EINVAL,   DB_BLAME_DATA},
    {"55P03", DB_STATE_LOCKED,     DET_EUNAVAIL, DB_BLAME_SERVER},
    {"57014", DB_STATE_OVERTIME,   DET_EUNAVAIL, DB_BLAME_MOMENT},
    {"57",    DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_SERVER},
    {"58030", DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_STRAIN},
    {"58",    DB_STATE_OTHER,      DET_EUNAVAIL, DB_BLAME_SERVER},
    {"P0002", DB_STATE_NO_ROWS,    DET_EIO,      DB_BLAME_DATA},
    {"P0",    DB_STATE_OTHER,      DET_EIO,      DB_BLAME_DATA},
    {"",      DB_STATE_OTHER,      DET_EIO,      DB_BLAME_UNKNOWN},
};
/* clang-format on */

const struct db_meaning *db_state_find(const char *sqlstate)
{
    const struct db_meaning *m = meanings;
    while (strncmp(sqlstate, m->prefix, strlen(m->prefix)) != 0)
        m++;
    return m;
}
