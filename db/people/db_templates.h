/* Templates: named parts of configurations that experiments start from. */
#ifndef DB_DB_TEMPLATES_H
#define DB_DB_TEMPLATES_H

#include "db_list.h"

/* enum db_list_col; name: a substring, whatever the case (NULL: all). */
void db_template_list(struct db *db, const char *name, const struct db_page *p, db_cb *cb,
                      void *arg);
/* {"template"}, the configuration; no row: no such template. */
void db_template_read(struct db *db, const char *name, db_cb *cb, void *arg);
struct db_template_origin {
    int64_t workspace_id; /* 0: the first */
    int64_t user_id;      /* who writes: the owner of a new one */
};
/* {"template"} of what is there afterwards. No row: it is there already
 * (TEMPLATE_NEW), or is not there (TEMPLATE_CHANGE). 23503: no such workspace. */
enum db_template_how { TEMPLATE_NEW, TEMPLATE_PUT, TEMPLATE_CHANGE };
void db_template_write(struct db *db, enum db_template_how how, const char *name,
                       const char *config, const struct db_template_origin *o, db_cb *cb,
                       void *arg);
/* A row if it was there. */
void db_template_delete(struct db *db, const char *name, db_cb *cb, void *arg);

#endif
