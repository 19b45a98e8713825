/* The model registry: models, and their versions, which are checkpoints. A model is named by a key:
 * its name, whatever the case, or its id as a text. */
#ifndef DB_DB_MODELS_H
#define DB_DB_MODELS_H

#include "db_list.h"

struct db_model_filter {
    const char *name, *description;         /* part of it, whatever the case; NULL: any */
    const char *labels;                     /* JSON arrays as text; NULL: any. All of these */
    const char *users, *user_ids;           /* one of these */
    const char *workspaces, *workspace_ids; /* likewise; names whatever the case */
    int archived;                           /* 0, 1, -1: both */
    int64_t id;                             /* 0: any */
};
/* enum db_list_col. Entries of versions have their model without its texts, labels and metadata. */
void db_model_list(struct db *db, const struct db_model_filter *f, const struct db_page *p,
                   db_cb *cb, void *arg);
void db_model_version_list(struct db *db, const char *key, const struct db_page *p, db_cb *cb,
                           void *arg);
/* {"labels"}, the most used first; workspace_id 0: of all. */
void db_model_labels(struct db *db, int64_t workspace_id, db_cb *cb, void *arg);
/* {"model"}, {"modelVersion"}; no row: none such. */
void db_model_read(struct db *db, const char *key, db_cb *cb, void *arg);
void db_model_version_read(struct db *db, const char *key, int64_t version, db_cb *cb, void *arg);

/* Of a model or a version. In an edit NULL and 0 leave it as it is; what is new has all but
 * `comment`, of a model, and workspace_id, of a version. */
struct db_model_words {
    const char *name, *description, *comment, *notes;
    const char *labels, *metadata; /* JSON as text */
    int64_t workspace_id;
};
/* {"model"} of a new one. 23505: the name is taken. */
void db_model_create(struct db *db, const struct db_model_words *w, int64_t user_id, db_cb *cb,
                     void *arg);
/* One row: whether it is archived (null: there is none), and the document as it is now, null where
 * it was left alone. 23505 as above. */
enum db_model_edit_col { MODEL_EDIT_ARCHIVED, MODEL_EDIT_DOC };
void db_model_edit(struct db *db, const char *key, const struct db_model_words *w, db_cb *cb,
                   void *arg);
void db_model_version_edit(struct db *db, const char *key, int64_t version,
                           const struct db_model_words *w, db_cb *cb, void *arg);
/* A row if it is there. */
void db_model_archive(struct db *db, const char *key, bool archived, db_cb *cb, void *arg);
void db_model_delete(struct db *db, const char *key, db_cb *cb, void *arg);
/* uuid: only if it is this checkpoint; NULL: whichever it is. */
void db_model_version_delete(struct db *db, const char *key, int64_t version, const char *uuid,
                             db_cb *cb, void *arg);
/* The uuid of its checkpoint; no row: no such version. */
void db_model_version_ckpt(struct db *db, const char *key, int64_t version, db_cb *cb, void *arg);

/* A new version of a checkpoint. One row: why not, or {"modelVersion"}. */
enum db_version_why {
    VERSION_MADE,
    VERSION_NO_MODEL,
    VERSION_ARCHIVED,
    VERSION_NO_CHECKPOINT,
    VERSION_NOT_COMPLETED, /* REGISTER_STATE says what it is */
    VERSION_LEAVING        /* it is being removed, by itself or with its experiment */
};
enum db_model_register_col { REGISTER_WHY, REGISTER_STATE, REGISTER_DOC };
void db_model_register(struct db *db, const char *key, const char *uuid,
                       const struct db_model_words *w, int64_t user_id, db_cb *cb, void *arg);

#endif
