/* Many values as one argument, text[] in PostgreSQL's binary form: in the textual one every quote
 * would be escaped and read back. Private to db/. */
#ifndef DB_DB_TEXTS_H
#define DB_DB_TEXTS_H

#include "buf.h"

struct db_texts { /* zero-initialised */
    struct buf b; /* the array, once db_texts_end() was called */
    size_t n;
};
void db_texts_add(struct db_texts *t, const char *p, size_t len); /* p NULL: SQL null */
/* Nothing is added any more. */
void db_texts_end(struct db_texts *t);
void db_texts_finish(struct db_texts *t);

#endif
