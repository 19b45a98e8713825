/* The migrations that were built in (embed_sql.py writes the table). Private to db/. */
#ifndef DB_DB_MIGRATE_H
#define DB_DB_MIGRATE_H

struct db_migration {
    int version;
    const char *name;
    const char *sql;
};
extern const struct db_migration db_migrations[];
extern const int db_migrations_n;

#endif
