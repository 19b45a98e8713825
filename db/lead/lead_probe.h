/*
 * Whether anything still listens where a leader serves: that its sessions are gone may mean that
 * its process is, or only that PostgreSQL ended them. A process that lives, however busy or stopped
 * it is, has its port open, and the kernel takes the connection for it. Private to db/.
 */
#ifndef DB_LEAD_PROBE_H
#define DB_LEAD_PROBE_H

#include <stdbool.h>
#include <uv.h>

struct lead_probe_call;
struct lead_probe {
    uv_loop_t *loop;
    struct lead_probe_call *call; /* under way */
    bool is_refused;              /* the last one: nobody listens there */
};

/* Begins to look at http(s)://HOST:PORT, unless a look is under way. It is answered when is_refused
 * changes; silence (a host that is gone) says nothing. */
void lead_probe_look(struct lead_probe *p, const char *url);
/* Forgets what was seen. Its calls end by themselves, in the loop's next turns. */
void lead_probe_reset(struct lead_probe *p);

#endif
