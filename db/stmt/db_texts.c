#include "db_texts.h"

#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <string.h>

enum { INT4_OID = 23, TEXT_OID = 25, TIMESTAMPTZ_OID = 1184 };
/* PostgreSQL counts from 2000-01-01. */
static const int64_t epoch_us = INT64_C(946684800) * 1000000;

static void put_i32(struct buf *out, size_t v)
{
    uint32_t be = htonl((uint32_t)v);
    buf_add(out, &be, sizeof be);
}

enum { COUNT_AT = 12 }; /* in the head, behind dimensions, whether there are nulls, and the type */

static void put_head(struct buf *out, size_t type)
{
    put_i32(out, 1);
    put_i32(out, 1);
    put_i32(out, type);
    put_i32(out, 0);
    put_i32(out, 1); /* the first index */
}

void db_texts_add(struct db_texts *t, const char *p, size_t len)
{
    if (t->n++ == 0)
        put_head(&t->b, TEXT_OID);
    put_i32(&t->b, p ? len : SIZE_MAX); /* -1: null */
    if (p)
        buf_add(&t->b, p, len);
}

void db_texts_add_i32(struct db_texts *t, int64_t v)
{
    assert(v >= INT32_MIN && v <= INT32_MAX);
    if (t->n++ == 0)
        put_head(&t->b, INT4_OID);
    put_i32(&t->b, sizeof(int32_t));
    put_i32(&t->b, (uint32_t)v);
}

void db_texts_add_time(struct db_texts *t, int64_t wall_us)
{
    uint64_t be = htobe64((uint64_t)(wall_us - epoch_us));
    if (t->n++ == 0)
        put_head(&t->b, TIMESTAMPTZ_OID);
    put_i32(&t->b, sizeof be);
    buf_add(&t->b, &be, sizeof be);
}

void db_texts_end(struct db_texts *t)
{
    uint32_t be = htonl((uint32_t)t->n);
    if (t->n == 0)
        put_head(&t->b, TEXT_OID);
    memcpy(t->b.p + COUNT_AT, &be, sizeof be);
}

void db_texts_finish(struct db_texts *t)
{
    buf_finish(&t->b);
}
