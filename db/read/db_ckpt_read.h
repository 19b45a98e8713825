/* Checkpoints as the API shows them, and what people and collectors change in them. */
#ifndef DB_DB_CKPT_READ_H
#define DB_DB_CKPT_READ_H

#include "db_list.h"

/* Columns: checkpoint.v1.Checkpoint, experiment id, trial id, checkpoint_storage of the experiment,
 * the versions of models that it is as [{"modelId", "modelName", "version"}]. */
enum db_ckpt_col { CKPT_DOC, CKPT_EXP, CKPT_TRIAL, CKPT_STORAGE, CKPT_VERSIONS };
void db_ckpt_read(struct db *db, const char *uuid, db_cb *cb, void *arg);

struct db_ckpt_filter {
    int64_t exp_id, trial_id; /* one of them, the other 0 */
    const char *states;       /* JSON array or NULL */
    const char *metric;       /* sort by this validation metric; NULL: by p->sort */
};
/* enum db_list_col, whether the experiment or trial is there, then checkpoint.v1.Checkpoint without
 * its state as members (db_doc.h), LIST_DOC meaning nothing. */
enum { CKPT_LIST_PARENT = LIST_COLS, CKPT_LIST_MEMBERS };
void db_ckpt_list(struct db *db, const struct db_ckpt_filter *f, const struct db_page *p, db_cb *cb,
                  void *arg);

/* First row: {"checkpoint"}; none when there is no such checkpoint. */
void db_ckpt_set_metadata(struct db *db, const char *uuid, const char *metadata, db_cb *cb,
                          void *arg);
/* patches: [{"uuid", "resources": {path: bytes}}], the files there are now. An empty map: DELETED;
 * fewer files than before: PARTIALLY_DELETED. First row: how many of the uuids there are. exp_id >
 * 0: only of that experiment. */
void db_ckpt_patch(struct db *db, const char *patches, int64_t exp_id, db_cb *cb, void *arg);
/* A row for each of the uuids (JSON array) that is not there. */
void db_ckpt_missing(struct db *db, const char *uuids, db_cb *cb, void *arg);
/* All checkpoints of one experiment that still have files: columns id, owner, config, JSON array of
 * uuids, one that somebody else holds (null: none), whether it ever reported metrics and may have
 * left files beside them, which versions of models the one that is held is, in words (null: none).
 * A row if the experiment is there. */
enum db_ckpt_rm_col { RM_EXP, RM_OWNER, RM_CONFIG, RM_UUIDS, RM_HELD, RM_HAS_FILES, RM_MODELS };
void db_ckpt_of_experiment(struct db *db, int64_t exp_id, db_cb *cb, void *arg);

#endif
