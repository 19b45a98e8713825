/*
 * Errors. A function that can fail returns 0 or a negative DET_E* code and, as its last argument,
 * takes a caller-owned `struct det_err` (may be NULL) that is written only on failure. Context is
 * prepended while unwinding with det_wrap(), so a message reads from the outside in:
 * "checkpoint 3f0c...: open metadata.json: No such file or directory".
 * This header is the only one of base/ that is installed: it is part of the trial API.
 */
#ifndef DET_ERR_H
#define DET_ERR_H

#include <stddef.h>

/* X(name, number, words) - one list, so that codes, names and words cannot drift apart. */
#define DET_ERRORS(X)                                                                              \
    X(DET_EINVAL, -1, "invalid argument")                                                          \
    X(DET_ENOENT, -2, "not found")                                                                 \
    X(DET_EEXIST, -3, "already exists")                                                            \
    X(DET_EPERM, -4, "permission denied")                                                          \
    X(DET_EAUTH, -5, "not authenticated")                                                          \
    X(DET_ESTATE, -6, "not possible in this state")                                                \
    X(DET_ENOMEM, -7, "out of memory")                                                             \
    X(DET_EIO, -8, "input/output error")                                                           \
    X(DET_ETIMEOUT, -9, "timed out")                                                               \
    X(DET_EUNAVAIL, -10, "unavailable, try again")                                                 \
    X(DET_ESTALE, -11, "belongs to an older run")                                                  \
    X(DET_EUNIMPL, -12, "not supported")                                                           \
    X(DET_ECORRUPT, -13, "corrupt data")                                                           \
    X(DET_ETOOBIG, -14, "too large")                                                               \
    X(DET_EDEVICE, -15, "device error")                                                            \
    X(DET_EPEER, -16, "a peer process is gone")                                                    \
    X(DET_EINVALIDHP, -17, "invalid hyperparameters")                                              \
    X(DET_ECANCELED, -18, "canceled")

enum det_code {
    DET_OK = 0,
#define X(name, number, words) name = number,
    DET_ERRORS(X)
#undef X
};

#define DET_ERR_TEXT_MAX 2044 /* the whole stays as large as it was without `sys` */

struct det_err {
    int code;                    /* the code returned with this text */
    char text[DET_ERR_TEXT_MAX]; /* NUL-terminated; cut at the end if too long */
    int sys;                     /* errno of the system call that failed; 0: none did */
};

/* Begins the prototype of a function that can fail: a caller that does not look is refused by the
 * compiler. */
#define DET_MUST __attribute__((warn_unused_result))

/* For the few results that nobody needs: `why` says so where it is ignored. */
static inline void det_ignore(int rc, const char *why)
{
    (void)rc;
    (void)why;
}

/* Sets *err (if not NULL) and returns `code`, so that a failure is one statement. */
int det_fail(struct det_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* As det_fail for a failed system call: keeps `sys` (an errno) and ends the text with ": " and its
 * words. Whoever must know what went wrong looks at err->sys, never at words. */
int det_fail_errno(struct det_err *err, int code, int sys, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* For it: what a failed open, or the like, of a file means. */
int det_code_of_errno(int sys);
/* Hands on what `from` says, with its `sys`, under the code rc. */
int det_fail_as(struct det_err *err, int rc, const struct det_err *from);
/* Prepends "<context>: " to err's text and returns rc; err->sys stays. */
int det_wrap(struct det_err *err, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The words of a code ("not found"); never NULL. */
const char *det_strerror(int code);

#endif
