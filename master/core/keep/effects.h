/* Appending effects; strings are copied into the effects' own memory. Private to master/core. */
#ifndef CORE_EFFECTS_H
#define CORE_EFFECTS_H

#include "model.h"

/* A new cleared effect; the pointer dies at the next one. */
struct core_effect *fx_add(struct core_effects *out, enum core_effect_kind kind);
void *fx_mem(struct core_effects *out, size_t bytes);           /* cleared */
const char *fx_str(struct core_effects *out, const char *s);    /* NULL in, NULL out */
const char *fx_json(struct core_effects *out, const json_t *j); /* compact text */
/* Answers a request (nothing when it is 0). code 0 or DET_E*. */
void fx_reply(struct core_effects *out, uint64_t request, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A line for the task's log. */
void fx_log(struct core *c, const struct alloc *a, int level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A row of the trial's timeline; nothing for a collection. */
void fx_timeline(struct core *c, const struct alloc *a, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* What a host saw. node: the container's number. */
void fx_mark(struct core *c, const struct alloc *a, int node, const struct core_mark *m);
/* The wall clock at the end of what began then: masters that follow one another have their own
 * clocks, and no end is before its begin. */
int64_t fx_end_us(const struct core *c, int64_t begin_us);
enum { FX_INFO = 3, FX_WARNING = 4, FX_ERROR = 5 };

#endif
