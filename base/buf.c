#include "buf.h"

#include "mem.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

void buf_finish(struct buf *b)
{
    free(b->p);
    *b = (struct buf)BUF_INIT;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->p)
        b->p[0] = '\0';
}

void buf_reserve(struct buf *b, size_t more)
{
    size_t want;
    if (__builtin_add_overflow(b->len, more, &want) || want == SIZE_MAX)
        abort();
    if (want < b->cap)
        return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap <= want)
        cap = cap > SIZE_MAX / 2 ? want + 1 : cap * 2;
    b->p = det_realloc(b->p, cap);
    b->cap = cap;
    b->p[b->len] = '\0';
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    buf_reserve(b, n);
    if (n)
        memcpy(b->p + b->len, p, n);
    b->len += n;
    b->p[b->len] = '\0';
}

void buf_add_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_i64(struct buf *b, int64_t v)
{
    char text[24], *at = text + sizeof text;
    uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        *--at = '-';
    buf_add(b, at, (size_t)(text + sizeof text - at));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(b, fmt, ap);
    va_end(ap);
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    buf_reserve(b, 64);
    int n = vsnprintf(b->p + b->len, b->cap - b->len, fmt, ap);
    assert(n >= 0);
    if ((size_t)n >= b->cap - b->len) {
        buf_reserve(b, (size_t)n);
        vsnprintf(b->p + b->len, b->cap - b->len, fmt, again);
    }
    b->len += (size_t)n;
    va_end(again);
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->len);
    if (!b->p)
        return;
    memmove(b->p, b->p + n, b->len - n);
    b->len -= n;
    b->p[b->len] = '\0';
}

const char *buf_str(const struct buf *b)
{
    return b->p ? b->p : "";
}

char *buf_steal(struct buf *b)
{
    buf_reserve(b, 0);
    char *p = b->p;
    *b = (struct buf)BUF_INIT;
    return p;
}
