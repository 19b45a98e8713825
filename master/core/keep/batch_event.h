/* A core event that owns what it points to, so that it may wait in a queue. */
#ifndef CORE_BATCH_EVENT_H
#define CORE_BATCH_EVENT_H

#include "core.h"

struct batch_event {
    struct batch_event *next;
    struct core_event ev;
    void *whose;     /* who waits for its answer; the caller's */
    bool is_refused; /* it is not to be stepped */
    char **strings;  /* owned copies */
    size_t strings_n, strings_cap;
    void *arrays[4];
    json_t *json[3];
};
/* What create.submission and cont point to stays the caller's; configurations are counted. */
struct batch_event *batch_event_copy(const struct core_event *ev, void *whose);
void batch_event_destroy(struct batch_event *e);

#endif
