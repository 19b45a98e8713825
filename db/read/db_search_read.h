/* The log of an experiment's search, whole. */
#ifndef DB_DB_SEARCH_READ_H
#define DB_DB_SEARCH_READ_H

#include "db.h"

/* Columns, all of one moment: config, last snapshot (null: none) and its seq, events as
 * [[seq, event]..] and trials as [[id, request id, seed, hyperparameters]..], JSON texts. No row
 * when there is no such experiment. */
enum db_search_col { SEARCH_CONFIG, SEARCH_SNAPSHOT, SEARCH_SEQ, SEARCH_EVENTS, SEARCH_TRIALS };
void db_search_log(struct db *db, int64_t exp_id, db_cb *cb, void *arg);

#endif
