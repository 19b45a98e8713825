/* lay-schema CONNINFO: the schema of this build's det-master in a new database (tests/lib/pg.sh).
 */
#include "db.h"

#include <stdio.h>

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
    return 0;
}
