/* What happened to trials, row by row: only ever added to. */
#ifndef DB_DB_TIMELINE_H
#define DB_DB_TIMELINE_H

#include "db.h"
#include "rows.h"

/* One statement for all of them; a row that is there already is passed over. n > 0. */
void db_save_timeline(struct db_tx *tx, const struct row_timeline *rows, size_t n);

#endif
