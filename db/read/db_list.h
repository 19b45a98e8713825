/*
 * Lists as the API pages them. The first row always comes and carries the totals; its LIST_ID and
 * LIST_DOC are null when the page is empty. Numbers of the sort orders are the API's enums
 * (wire.h); id breaks ties.
 */
#ifndef DB_DB_LIST_H
#define DB_DB_LIST_H

#include "db.h"

enum db_list_col { LIST_TOTAL, LIST_START, LIST_ID, LIST_STATE, LIST_DOC, LIST_COLS };
struct db_page {
    int64_t offset, limit; /* as asked: 0, -1 and -2 have their meanings */
    int sort;
    bool desc;
};
/* $n..$n+3: sort, desc, offset, limit */
static inline struct db_args *db_page_arg(struct db_args *a, const struct db_page *p)
{
    db_bool_arg(db_i64_arg(a, p->sort), p->desc);
    return db_i64_arg(db_i64_arg(a, p->offset), p->limit);
}

/*
 * The statement's end, after "WITH f AS (SELECT id, state, num, txt ...)": num and txt are what is
 * sorted by, numbers or text. desc, offset, limit: names of the parameters.
 */
#define DB_LIST_ORDER(id, desc)                                                                    \
    "CASE WHEN NOT " desc "::boolean THEN num END, "                                               \
    "CASE WHEN " desc "::boolean THEN num END DESC NULLS LAST, "                                   \
    "CASE WHEN NOT " desc "::boolean THEN txt END, "                                               \
    "CASE WHEN " desc "::boolean THEN txt END DESC NULLS LAST, " id
#define DB_LIST_TAIL(order, offset, limit, all, doc)                                               \
    DB_LIST_TAIL_FROM(order, offset, limit, all, doc, "")
/* The same where the documents are joined: `joined` follows FROM n LEFT JOIN page. */
#define DB_LIST_TAIL_FROM(order, offset, limit, all, doc, joined)                                  \
    ", n AS (SELECT count(*) total FROM f), "                                                      \
    "page AS (SELECT o.*, row_number() OVER () rn FROM (SELECT * FROM f ORDER BY " order " "       \
    "OFFSET (SELECT page_start(total, " offset "::bigint) FROM n) "                                \
    "LIMIT page_size(" limit "::bigint, " all ")) o) "                                             \
    "SELECT n.total, page_start(n.total, " offset "::bigint), page.id, page.state, " doc           \
    " FROM n LEFT JOIN page ON true " joined " ORDER BY page.rn"

#endif
