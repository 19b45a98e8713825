/* A core event that owns what it points to, so that it may wait in a queue. */
#ifndef SHELL_DRIVER_EVENT_H
#define SHELL_DRIVER_EVENT_H

#include "driver.h"

struct driver_event {
    struct driver_event *next;
    struct core_event ev;
    driver_cb *cb;
    void *arg;
    char **strings; /* owned copies */
    size_t strings_n, strings_cap;
    void *arrays[3];
    json_t *json[3];
};
/* The create's payload is taken as it is. */
struct driver_event *driver_event_copy(const struct core_event *ev, driver_cb *cb, void *arg);
/* Frees all but the payload. */
void driver_event_free(struct driver_event *e);

#endif
