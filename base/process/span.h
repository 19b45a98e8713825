/*
 * Spans: what this process did when, for whoever listens (a profiler). A place that takes time
 * says so at its beginning and is measured to the end of the block, in whatever thread:
 *
 *     SPAN(SPAN_LOOP, "train_batch");
 *
 * While nobody listens that is one load and a branch never taken, at either end. Spans of one
 * thread nest, and are told when they end: the inner one first.
 */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum span_cat {
    SPAN_STEP, /* one whole batch */
    SPAN_LOOP, /* the training loop and the trial's hooks */
    SPAN_OP,   /* kernels */
    SPAN_DATA, /* making batches */
    SPAN_COMM, /* between ranks */
    SPAN_CAT_COUNT
};

struct span {
    enum span_cat cat;
    const char *name, *detail; /* detail may be NULL; both borrowed during the call */
    int64_t start_ns, end_ns;  /* monotonic */
    int tid;                   /* the kernel's thread id */
};

/* Called with a lock held, from any thread: brief, and no spans in them. The listener is borrowed
 * until it is taken off. */
struct span_listener {
    void (*on_span)(struct span_listener *self, const struct span *s);
    void (*on_count)(struct span_listener *self, const char *name, int64_t value, int64_t at_ns);
    bool waits; /* asynchronous devices are waited for, so that a kernel's span is its own */
    struct span_listener *next; /* private */
};
void span_listen(struct span_listener *l);
void span_unlisten(struct span_listener *l); /* not listening is fine */

extern atomic_int span_listeners; /* how many */
extern atomic_int span_waiters;   /* of them want to wait */

static inline bool span_on(void)
{
    return __builtin_expect(atomic_load_explicit(&span_listeners, memory_order_relaxed) != 0, 0);
}

int64_t span_now_ns(void);
/* Tells a span that began at start_ns and ends now. */
void span_tell(enum span_cat cat, const char *name, const char *detail, int64_t start_ns);
/* A number over time: "memory". */
void span_count(const char *name, int64_t value);

struct span_scope {
    enum span_cat cat;
    const char *name;
    int64_t start_ns; /* 0: nobody listened */
};
static inline void span_leave(struct span_scope *s)
{
    if (__builtin_expect(s->start_ns != 0, 0))
        span_tell(s->cat, s->name, 0, s->start_ns);
}
#define SPAN(cat, name)                                                                            \
    struct span_scope span_scope_ __attribute__((cleanup(span_leave), unused)) = {                 \
        (cat), (name), span_on() ? span_now_ns() : 0}

#endif
