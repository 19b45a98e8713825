/* Sends a log spool to the master in batches, as long as it lives; one request at a time. */
#ifndef LOGSHIP_H
#define LOGSHIP_H

#include "client_uv.h"
#include "logspool.h"

struct logship;
/* Both are borrowed. */
struct logship *logship_create(uv_loop_t *loop, struct client_uv *http, struct logspool *spool);
void logship_close(struct logship *s); /* NULL ok */
/* Lines were added: they leave within a tenth of a second. */
void logship_kick(struct logship *s);
/* Calls on_empty once, when nothing is unsent (may be at once, from the loop). NULL: no more. */
void logship_when_empty(struct logship *s, void (*on_empty)(void *arg), void *arg);
/* Called whenever room was made. */
void logship_on_room(struct logship *s, void (*on_room)(void *arg), void *arg);

#endif
