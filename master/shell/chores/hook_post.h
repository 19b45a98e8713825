/* One POST of an event to a webhook's receiver, signed, on the master's loop. */
#ifndef SHELL_HOOK_POST_H
#define SHELL_HOOK_POST_H

#include "det/err.h"

#include <uv.h>

#define HOOK_POST_MS 10000 /* of one attempt, the answer included */

struct hook_event {
    const char *url, *type; /* "DEFAULT", "SLACK" */
    const char *payload;    /* JSON */
    const char *key;        /* signs it */
};
struct hook_post;
/* why: "" when it was taken, by a 2xx; it has nothing of the URL but its host, and nothing of the
 * answer but its status. Never from within hook_post(). */
typedef void hook_post_done(void *arg, const char *why);
/* Everything is copied. Never NULL. */
struct hook_post *hook_post(uv_loop_t *loop, const struct hook_event *e, hook_post_done *done,
                            void *arg);
void hook_post_cancel(struct hook_post *p); /* done is not called any more */

#endif
