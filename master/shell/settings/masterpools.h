/* resource_pools[] and quotas[] of master.yaml as the core takes them. Private to master/shell. */
#ifndef SHELL_MASTERPOOLS_H
#define SHELL_MASTERPOOLS_H

#include "masterconf.h"
#include "mistakes.h"

/* What the table of settings cannot say: every pool has a name, and none has another's; every quota
 * has a user and a number. */
void masterpools_check(const json_t *raw, struct mistakes *errs);
/* Fills c->core.pools and .quotas from c->tree: what a pool does not say is as it is for all. */
void masterpools_read(struct masterconf *c);
void masterpools_finish(struct masterconf *c);

#endif
