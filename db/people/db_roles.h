/* Groups of users, and who has which role where. */
#ifndef DB_DB_ROLES_H
#define DB_DB_ROLES_H

#include "db_list.h"

/* add and remove: JSON lists of users' ids. {"group"}, null: no such group; 23505: the name is
 * taken; 23503: no such user. */
struct db_group_edit {
    int64_t id;       /* 0: a new one */
    const char *name; /* NULL: leave */
    const char *add, *remove;
};
void db_group_edit(struct db *db, const struct db_group_edit *g, db_cb *cb, void *arg);
void db_group_read(struct db *db, int64_t id, db_cb *cb, void *arg);   /* {"group"} */
void db_group_delete(struct db *db, int64_t id, db_cb *cb, void *arg); /* a row if it was there */
/* enum db_list_col; name NULL: any, user_id 0: whoever is in it. */
void db_group_list(struct db *db, const char *name, int64_t user_id, const struct db_page *p,
                   db_cb *cb, void *arg);
/* users into the groups of add and out of those of remove: JSON lists of ids. */
void db_groups_assign(struct db *db, const char *users, const char *add, const char *remove,
                      db_cb *cb, void *arg);

/* list: [{"role", "user" or "group", "workspace" or null}]. 23503: one of them is not there. */
void db_roles_add(struct db *db, const char *list, db_cb *cb, void *arg);
/* P0002: one is not assigned, and nothing is changed. */
void db_roles_remove(struct db *db, const char *list, db_cb *cb, void *arg);
/* Whose assignments; 0 is any. A user's are his own and those of his groups. */
struct db_role_filter {
    int64_t role_id, user_id, group_id;
};
enum db_role_col { ROLE_ID, ROLE_USER, ROLE_GROUP, ROLE_WORKSPACE }; /* ordered by the first */
void db_roles_list(struct db *db, const struct db_role_filter *f, db_cb *cb, void *arg);
/* Given in one workspace, not by the whole cluster, to whose name holds `name` (NULL: to all). One
 * row more, whose role is 0: PLACE_GROUPS and PLACE_USERS, JSON lists of them; no row: there is no
 * such workspace. */
enum { PLACE_GROUPS = ROLE_WORKSPACE + 1, PLACE_USERS };
void db_roles_of_place(struct db *db, int64_t workspace_id, const char *name, db_cb *cb, void *arg);

#endif
