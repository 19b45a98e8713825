/* The audit log: who asked to change what. */
#ifndef DB_DB_AUDIT_H
#define DB_DB_AUDIT_H

#include "db.h"

/* Texts are UTF-8, borrowed. */
struct db_audit_row {
    int64_t n; /* of this leadership, each once */
    int64_t user_id;
    const char *username, *address, *operation, *method, *path;
    const char *detail; /* JSON; NULL: none */
    int64_t token_id;   /* 0: by a session */
    int status;         /* of the answer; 0: to come */
};
/* It is committed no later than what is written after it; safe to repeat. */
void db_audit_write(struct db *db, const struct db_audit_row *row, db_cb *cb, void *arg);
void db_audit_answered(struct db *db, int64_t n, int status, db_cb *cb, void *arg);

struct db_audit_filter {
    const char *username, *operation; /* NULL: any */
    int64_t since_us;                 /* 0: from the beginning */
    int64_t before_epoch, before_n;   /* older than this one; 0: from the newest on */
    int64_t limit;
};
/* {"entries": newest first}. */
void db_audit_list(struct db *db, const struct db_audit_filter *f, db_cb *cb, void *arg);
/* Forgets what is older, some of it; rows written tells how much. */
void db_audit_forget(struct db *db, int64_t days, db_cb *cb, void *arg);

#endif
