/*
 * Where new experiments belong, remembered: a project that was there and not archived, and how the
 * API names it and the user. What may change it (any writing request under /workspaces, /projects
 * and /users) forgets everything, when it comes and when it is answered; nothing is older than
 * ORIGINS_MS, for whoever else changes the tables. Thread: the loop's.
 */
#ifndef SHELL_ORIGINS_H
#define SHELL_ORIGINS_H

#include "db_exp_read.h"
#include "http.h"

enum { ORIGINS_MS = 5000, ORIGINS_MAX = 1000 };

struct origin {
    int64_t project_id;
    const char *doc; /* ORIGIN_DOC of db_exp_origin */
};

struct origins;
struct origins *origins_create(void);
void origins_destroy(struct origins *os);
/* False: ask the database. ret's text is borrowed until the next call. Of user o->user_id. */
bool origins_find(const struct origins *os, const struct db_exp_origin *o, int64_t now_ms,
                  struct origin *ret);
/* Raised whenever something is forgotten: taken before the database is asked, and given with what
 * it answered, so that an answer that was overtaken is not kept. */
uint64_t origins_turn(const struct origins *os);
void origins_keep(struct origins *os, const struct db_exp_origin *o, uint64_t turn,
                  const struct origin *found, int64_t now_ms);
/* An experiment is made in a project from here, where its right has been asked, until its rows are
 * committed, and a project is deleted from here until that is answered: never both. False:
 * the other goes on, or it is to be made in a project that is gone. is_gone: it is, and its id does
 * not come again. */
DET_MUST bool origins_begin_making(struct origins *os, int64_t project_id);
void origins_end_making(struct origins *os, int64_t project_id);
DET_MUST bool origins_begin_deletion(struct origins *os, int64_t project_id);
void origins_end_deletion(struct origins *os, int64_t project_id, bool is_gone);
/* For each request, before its handler and with its answer. os may be NULL. */
void origins_on_request(struct origins *os, const struct http_req *req);

#endif
