/* Experiments as the API shows them. */
#ifndef DB_DB_EXP_READ_H
#define DB_DB_EXP_READ_H

#include "db_list.h"

/* Columns: state, then experiment.v1.Experiment without state as members (db_doc.h): configuration,
 * job id, archived and owner first. */
enum db_exp_col {
    EXP_STATE,
    EXP_CONFIG,
    EXP_JOB,
    EXP_ARCHIVED,
    EXP_OWNER,
    EXP_MEMBERS = EXP_CONFIG
};
void db_exp_read(struct db *db, int64_t id, db_cb *cb, void *arg);
/* The same for one that was just stored: waits while PostgreSQL is away. */
void db_exp_read_kept(struct db *db, int64_t id, db_cb *cb, void *arg);

/* Lists are JSON arrays as text, NULL: no such filter. */
struct db_exp_filter {
    const char *name, *description; /* substrings, whatever the case */
    const char *labels;             /* all of them */
    int archived;                   /* 0, 1, -1: both */
    const char *states;             /* texts of the database */
    const char *users, *user_ids;
    int64_t project_id;    /* 0: any */
    const char *id_filter; /* {"lt","lte","gt","gte": n, "incl","notIn": [n]} */
    const char *ids, *not_ids;
};
/* enum db_list_col, whether the project is there, then experiment.v1.Experiment as above, LIST_DOC
 * being null. */
enum { EXP_LIST_PROJECT = LIST_COLS, EXP_LIST_MEMBERS };
void db_exp_list(struct db *db, const struct db_exp_filter *f, const struct db_page *p, db_cb *cb,
                 void *arg);
/* Ids and states that a filter finds, by id. */
void db_exp_find(struct db *db, const struct db_exp_filter *f, db_cb *cb, void *arg);

/* Columns: model definition (bytea), name. */
void db_exp_model_def(struct db *db, int64_t id, db_cb *cb, void *arg);
/* The same in parts: at most DB_PART_BYTES of it from `from` on, of the experiment, or of the one
 * whose task it is. */
#define DB_PART_BYTES ((int64_t)192 << 10) /* a multiple of 3, for base64 */
struct db_part {
    int64_t exp_id;
    const char *task_id; /* NULL: exp_id says of which */
    int64_t from;
};
enum db_part_col { PART_BYTES, PART_SIZE /* of all */, PART_EXP, PART_NAME };
void db_exp_model_def_part(struct db *db, const struct db_part *p, db_cb *cb, void *arg);
/* Columns: {"validationHistory"}. */
void db_exp_history(struct db *db, int64_t id, db_cb *cb, void *arg);
/* Columns: best searcher metric so far (null: none). */
void db_exp_best_metric(struct db *db, int64_t id, db_cb *cb, void *arg);
/* Columns: the searcher's name, the experiment's state. */
void db_exp_searcher(struct db *db, int64_t id, db_cb *cb, void *arg);
/* What of an experiment that is over still tells why: why it could not be deleted, else null. */
enum { EXP_END_STATE, EXP_END_UNDELETED };
void db_exp_end(struct db *db, int64_t id, db_cb *cb, void *arg);
/* {"labels"}, the most used first; project_id 0: all. */
void db_exp_labels(struct db *db, int64_t project_id, db_cb *cb, void *arg);

/* Where an experiment may start from and belong to. Columns: project id (null: none such), archived
 * project or workspace; parent: null none such, else archived; checkpoint uuid of the source trial
 * (its latest) or the source uuid when it is COMPLETED, else null. 0 or NULL: not asked. And what a
 * new experiment there shows of its project and of user_id: a JSON object, null when one is not
 * there. */
struct db_exp_origin {
    int64_t project_id, user_id;
    const char *workspace, *project; /* names, both or neither */
    int64_t parent_id, source_trial_id;
    const char *source_uuid;
};
enum db_origin_col { ORIGIN_PROJECT, ORIGIN_ARCHIVED, ORIGIN_PARENT, ORIGIN_SOURCE, ORIGIN_DOC };
void db_exp_origin(struct db *db, const struct db_exp_origin *o, db_cb *cb, void *arg);

/* {"owner":.., per experiment id}: columns id, username, workspace id; ids is a JSON array. */
void db_exp_owners(struct db *db, const char *ids, db_cb *cb, void *arg);

#endif
