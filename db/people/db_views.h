/* Views of the page: its addresses with a name, each its owner's alone or shown in a workspace. A
 * user sees his own and those that are shown; the others are not there for him. */
#ifndef DB_DB_VIEWS_H
#define DB_DB_VIEWS_H

#include "db_list.h"

/* enum db_list_col, his own first; name: a substring, whatever the case (NULL: all). */
void db_view_list(struct db *db, int64_t user_id, const char *name, const struct db_page *p,
                  db_cb *cb, void *arg);
/* {"view"}; no row: none that he sees. */
void db_view_read(struct db *db, int64_t user_id, int64_t id, db_cb *cb, void *arg);

enum { VIEW_KEEP = -1, VIEW_PRIVATE = 0 };
struct db_view_words {
    const char *name, *address; /* NULL: as it is */
    int64_t workspace_id;       /* or VIEW_KEEP, VIEW_PRIVATE */
};
/* {"view"}, all words given. 23505: he has one of the name. No row: he has `most` already. */
void db_view_create(struct db *db, int64_t user_id, const struct db_view_words *w, int most,
                    db_cb *cb, void *arg);
/* {"view"}. 23505: its owner has another of the name. No row: none that user_id sees. */
void db_view_edit(struct db *db, int64_t user_id, int64_t id, const struct db_view_words *w,
                  db_cb *cb, void *arg);
/* A row if it was there, and he saw it. */
void db_view_delete(struct db *db, int64_t user_id, int64_t id, db_cb *cb, void *arg);

#endif
