/* One POST of an event to a webhook's receiver, signed, on the master's loop. */
#ifndef SHELL_HOOK_POST_H
#define SHELL_HOOK_POST_H

#include "det/err.h"

#include <uv.h>

#define HOOK_POST_MS 10000 /* of one attempt, the answer included */

struct webhook_networks;
/* The way to one receiver. Its connection is kept between POSTs: with TLS a new one costs the loop
 * some 20 ms, for the authorities that the system trusts are read. nets is borrowed. Never NULL:
 * what is wrong with the URL each hook_post() says. */
struct hook_line;
struct hook_line *hook_line_open(uv_loop_t *loop, const char *url,
                                 const struct webhook_networks *nets);
void hook_line_close(struct hook_line *l); /* after its posts have ended; NULL ok */

struct hook_event {
    const char *type;    /* "DEFAULT", "SLACK" */
    const char *payload; /* JSON */
    const char *key;     /* signs it */
};
struct hook_post;
/* why: "" when it was taken, by a 2xx; it has nothing of the URL but its host, and nothing of the
 * answer but its status. Never from within hook_post(). */
typedef void hook_post_done(void *arg, const char *why);
/* The event is copied. Never NULL. */
struct hook_post *hook_post(struct hook_line *to, const struct hook_event *e, hook_post_done *done,
                            void *arg);
void hook_post_cancel(struct hook_post *p); /* done is not called any more */

#endif
