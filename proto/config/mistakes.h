/* What is wrong with a user's file: every mistake with its dotted path, gathered so that one answer
 * names them all. Text is valid UTF-8 whatever the user wrote. */
#ifndef PROTO_MISTAKES_H
#define PROTO_MISTAKES_H

#include "buf.h"
#include "det/err.h"
#include "json.h"
#include <stddef.h>

struct mistakes {
    struct buf text; /* one line a mistake: "path: what is wrong\n" */
    size_t n;
};
#define MISTAKES_INIT                                                                              \
    {                                                                                              \
        BUF_INIT, 0                                                                                \
    }

void mistakes_finish(struct mistakes *m);
/* Only the first 1000 are kept as text; n counts all. path "" names the file as a whole. */
void mistakes_add(struct mistakes *m, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* 0 if there is none; else DET_EINVAL with "title: N mistakes:" and as many lines as fit. */
DET_MUST int mistakes_report(const struct mistakes *m, const char *title, struct det_err *err);
/* Appends at most max bytes of s, whole characters only, control characters as '?', and "..." where
 * it was cut. */
void mistakes_quote(struct buf *out, const char *s, size_t max);
/* Appends what a value is, for "got ...": `"text"`, `5`, `a list`. */
void mistakes_describe(struct buf *out, const json_t *j);

#endif
