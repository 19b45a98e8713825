#include "db_texts.h"

#include <arpa/inet.h>
#include <string.h>

static void put_i32(struct buf *out, size_t v)
{
    uint32_t be = htonl((uint32_t)v);
    buf_add(out, &be, sizeof be);
}

enum { COUNT_AT = 12 }; /* in the head, behind dimensions, whether there are nulls, and the type */

static void put_head(struct buf *out)
{
    enum { TEXT_OID = 25 };
    put_i32(out, 1);
    put_i32(out, 1);
    put_i32(out, TEXT_OID);
    put_i32(out, 0);
    put_i32(out, 1); /* the first index */
}

void db_texts_add(struct db_texts *t, const char *p, size_t len)
{
    if (t->n++ == 0)
        put_head(&t->b);
    put_i32(&t->b, p ? len : SIZE_MAX); /* -1: null */
    if (p)
        buf_add(&t->b, p, len);
}

void db_texts_end(struct db_texts *t)
{
    uint32_t be = htonl((uint32_t)t->n);
    if (t->n == 0)
        put_head(&t->b);
    memcpy(t->b.p + COUNT_AT, &be, sizeof be);
}

void db_texts_finish(struct db_texts *t)
{
    buf_finish(&t->b);
}
