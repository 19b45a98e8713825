#include "mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *or_die(void *p, size_t bytes)
{
    if (!p) {
        fprintf(stderr, "out of memory: %zu bytes\n", bytes);
        abort();
    }
    return p;
}

void *det_alloc(size_t bytes)
{
    return or_die(malloc(bytes ? bytes : 1), bytes);
}

void *det_zalloc(size_t bytes)
{
    return or_die(calloc(1, bytes ? bytes : 1), bytes);
}

void *det_realloc(void *p, size_t bytes)
{
    return or_die(realloc(p, bytes ? bytes : 1), bytes);
}

void *det_reallocarray(void *p, size_t n, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(n, bytes, &total))
        return or_die(NULL, SIZE_MAX);
    return det_realloc(p, total);
}

char *det_strdup(const char *s)
{
    return s ? det_memdup(s, strlen(s) + 1) : NULL;
}

char *det_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = det_alloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *det_asprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return or_die(n < 0 ? NULL : s, 0);
}

void *det_memdup(const void *p, size_t bytes)
{
    void *copy = det_alloc(bytes);
    if (bytes)
        memcpy(copy, p, bytes);
    return copy;
}

void *det_try_alloc(size_t bytes)
{
    return malloc(bytes ? bytes : 1);
}

void det_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1; /* a second close would hit whoever got the number meanwhile */
}
