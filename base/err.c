#include "det/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where a text that fills its room may end without cutting a UTF-8 character in two: answers carry
 * the text as JSON. */
static size_t whole_chars(const char *text, size_t n)
{
    size_t start = n;
    while (start > 0 && n - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return n;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return n - (start - 1) < want ? start - 1 : n;
}

static void set_text(struct det_err *err, int code, const char *text)
{
    size_t n = strlen(text);
    if (n >= sizeof err->text - 1)
        n = whole_chars(text, sizeof err->text - 1);
    memcpy(err->text, text, n);
    err->text[n] = '\0';
    err->code = code;
}

int det_fail(struct det_err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    char text[DET_ERR_TEXT_MAX]; /* the arguments may point into err->text */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    set_text(err, code, text);
    err->sys = 0;
    return code;
}

/* text += tail, cut at the end of the room. */
static void append_text(char text[DET_ERR_TEXT_MAX], const char *tail)
{
    size_t n = strlen(text);
    size_t more = strnlen(tail, DET_ERR_TEXT_MAX - 1 - n);
    memcpy(text + n, tail, more);
    text[n + more] = '\0';
}

/* The words of fmt, then the cause. */
static void set_cause(struct det_err *err, int code, const char *cause, const char *fmt, va_list ap)
{
    char text[DET_ERR_TEXT_MAX];
    vsnprintf(text, sizeof text, fmt, ap);
    append_text(text, ": ");
    append_text(text, cause);
    set_text(err, code, text);
}

int det_fail_errno(struct det_err *err, int code, int sys, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    set_cause(err, code, strerror(sys), fmt, ap);
    va_end(ap);
    err->sys = sys;
    return code;
}

int det_fail_as(struct det_err *err, int rc, const struct det_err *from)
{
    if (!err)
        return rc;
    *err = *from;
    err->code = rc;
    return rc;
}

int det_wrap(struct det_err *err, int rc, const char *fmt, ...)
{
    if (!err)
        return rc;
    va_list ap;
    va_start(ap, fmt);
    set_cause(err, rc, err->text, fmt, ap);
    va_end(ap);
    return rc;
}

int det_code_of_errno(int sys)
{
    return sys == ENOENT ? DET_ENOENT : sys == EACCES || sys == EPERM ? DET_EPERM : DET_EIO;
}

const char *det_strerror(int code)
{
    switch (code) {
    case DET_OK: return "success";
#define X(name, number, words)                                                                     \
    case name: return words;
        DET_ERRORS(X)
#undef X
    default: return "unknown error";
    }
}
