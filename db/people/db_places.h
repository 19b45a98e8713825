/* Workspaces, their projects, and which project an experiment is in. */
#ifndef DB_DB_PLACES_H
#define DB_DB_PLACES_H

#include "db_list.h"

struct db_place_filter {
    const char *name;             /* whole, whatever the case; NULL: any */
    const char *exact_name;       /* of workspaces */
    int archived;                 /* 0, 1, -1: both */
    const char *users, *user_ids; /* JSON arrays as text; NULL: any */
    int64_t workspace_id;         /* of projects; 0: of all */
};
/* enum db_list_col. */
void db_workspace_list(struct db *db, const struct db_place_filter *f, const struct db_page *p,
                       db_cb *cb, void *arg);
void db_project_list(struct db *db, const struct db_place_filter *f, const struct db_page *p,
                     db_cb *cb, void *arg);
/* Columns id, whether it is archived, name; of either, whichever is given (name whatever the case,
 * NULL: none; id 0: none). No row: none such. */
void db_workspace_find(struct db *db, const char *name, int64_t id, db_cb *cb, void *arg);
/* {"workspace"}, {"project"}; no row: none such. */
void db_workspace_read(struct db *db, int64_t id, db_cb *cb, void *arg);
void db_project_read(struct db *db, int64_t id, db_cb *cb, void *arg);
/* The same of a new one. 23505: the name is taken. No row: the workspace is not there, is archived
 * or immutable. */
void db_workspace_create(struct db *db, const char *name, int64_t user_id, db_cb *cb, void *arg);
void db_project_create(struct db *db, int64_t workspace_id, const char *name,
                       const char *description, int64_t user_id, db_cb *cb, void *arg);
/* Columns of what is done to one that is there: the answer, null where it was not done; whether it
 * is the first, to which nothing is done; whether it is archived, or in what is. No row: none such.
 */
enum db_place_col { PLACE_DOC, PLACE_FIXED, PLACE_ARCHIVED };
/* A text that is NULL stays as it is. DB_STATE_TAKEN: the name. */
void db_workspace_edit(struct db *db, int64_t id, const char *name, db_cb *cb, void *arg);
void db_project_edit(struct db *db, int64_t id, const char *name, const char *description,
                     db_cb *cb, void *arg);
/* Columns: whether it is gone; whether it is the first, which stays; how much of each kind is in
 * it: of a project its experiments, of a workspace its projects, models and templates. No row: none
 * such. DB_STATE_MISSING: something came into it meanwhile. */
enum db_place_gone_col { GONE_DONE, GONE_FIXED, GONE_HELD };
void db_workspace_delete(struct db *db, int64_t id, db_cb *cb, void *arg);
void db_project_delete(struct db *db, int64_t id, db_cb *cb, void *arg);
/* A row if it is there and mutable. */
void db_workspace_archive(struct db *db, int64_t id, bool archived, db_cb *cb, void *arg);
void db_project_archive(struct db *db, int64_t id, bool archived, db_cb *cb, void *arg);

/* Columns: whether the experiment is there, is archived, the project is there, is archived (it or
 * its workspace). Moved if all is well. */
enum db_move_col { MOVE_EXP, MOVE_EXP_ARCHIVED, MOVE_PROJECT, MOVE_PROJECT_ARCHIVED };
void db_exp_move(struct db *db, int64_t exp_id, int64_t project_id, db_cb *cb, void *arg);

#endif
