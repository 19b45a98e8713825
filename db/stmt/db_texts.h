/* Many values as one argument, an array in PostgreSQL's binary form: in the textual one every quote
 * would be escaped and read back, and every number and time be written and read. Private to db/. */
#ifndef DB_DB_TEXTS_H
#define DB_DB_TEXTS_H

#include "buf.h"

struct db_texts { /* zero-initialised */
    struct buf b; /* the array, once db_texts_end() was called */
    size_t n;
};
/* All that is added to one array is of one of these. */
void db_texts_add(struct db_texts *t, const char *p, size_t len); /* text; p NULL: SQL null */
void db_texts_add_i32(struct db_texts *t, int64_t v);             /* integer; v fits */
void db_texts_add_time(struct db_texts *t, int64_t wall_us);      /* timestamptz */
/* Nothing is added any more. An empty one is text[]. */
void db_texts_end(struct db_texts *t);
void db_texts_finish(struct db_texts *t);

#endif
