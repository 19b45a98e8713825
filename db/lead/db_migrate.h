/* What was built in of db/migrations and db/functions (embed_sql.py writes the tables). Private to
 * db/. */
#ifndef DB_DB_MIGRATE_H
#define DB_DB_MIGRATE_H

#include <stdbool.h>
#include <stddef.h>

struct db_migration {
    int version;
    const char *name;
    const char *sql;
};
extern const struct db_migration db_migrations[];
extern const int db_migrations_n;

struct db_object {    /* a function, a view or a trigger */
    const char *what; /* "function NAME", "view NAME", "trigger NAME ON TABLE" */
    const char *hash; /* of sql */
    bool left;        /* by the migrations, just as it is here */
    const char *sql;  /* makes it, or puts this one in the place of the one that is there */
};
extern const struct db_object db_objects[]; /* each may name those before it */
extern const int db_objects_n;
extern const char *const db_objects_gone[]; /* what migrations made and db_objects has not; NULL */
extern const int db_objects_number;         /* that of the newer of two programs is higher */

#endif
