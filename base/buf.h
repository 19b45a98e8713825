/* A growable byte buffer; always NUL-terminated past `len`, so buf.p is also a C string (never NULL
 * after buf_init with BUF_INIT and at least one append; buf_str() never NULL). */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *p;
    size_t len, cap;
};
#define BUF_INIT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

void buf_finish(struct buf *b); /* frees; b is BUF_INIT again */
void buf_clear(struct buf *b);  /* len = 0, memory kept */
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, const char *s);
static inline void buf_add_ch(struct buf *b, char c)
{
    if (b->cap - b->len < 2)
        buf_reserve(b, 1);
    b->p[b->len++] = c;
    b->p[b->len] = '\0';
}
void buf_add_i64(struct buf *b, int64_t v); /* in decimal */
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap);
void buf_consume(struct buf *b, size_t n); /* drops the first n bytes */
const char *buf_str(const struct buf *b);  /* "" when empty */
char *buf_steal(struct buf *b);            /* caller frees; b is BUF_INIT again */

#endif
