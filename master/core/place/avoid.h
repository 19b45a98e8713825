/*
 * Hosts that a trial's next run avoids, each with the reason and who gave it. The scheduler places
 * nothing of the trial there (fit.c), and `det why` names them.
 *
 * A host that could not start the trial (AVOID_START) is left out until it says hello anew, or for
 * AVOID_MS. Where that leaves no host, all of them are tried again after a pause that grows; after
 * AVOID_ROUNDS of these the trial ends with the reason, and one that has never run at once where
 * each of them lacks what the configuration names, unless a host that is off or away could have it:
 * then it waits for that one. What a trial's log policies exclude stays so. Private to master/core.
 */
#ifndef CORE_AVOID_H
#define CORE_AVOID_H

#include "model.h"

#define AVOID_MS     (10 * 60 * 1000)
#define AVOID_ROUNDS 8

#define AVOID_ANY (~0u) /* of enum avoid_source, as BIT()s */

/* Whether it stays away from the agent because of one of these sources. */
bool avoid_is(const struct trial *t, const char *agent_id, unsigned sources);
/* Whether it stays away from any agent. */
bool avoid_any(const struct trial *t, unsigned sources);
size_t avoid_count(const struct trial *t, unsigned sources);
/* From now on, until it is lifted; ms 0: for good. Again: the text is replaced. */
void avoid_add(struct core *c, struct trial *t, const char *agent_id, enum avoid_source source,
               const char *text, int64_t ms);
void avoid_lift(struct core *c, struct trial *t, const char *agent_id, enum avoid_source source);
/* All that is known from these sources, the counts of failures too. */
void avoid_forget(struct trial *t, unsigned sources);

/* A run could not be started for a reason of the host's. True: that was the last try, the trial
 * ends. */
bool avoid_on_failed_start(struct core *c, struct trial *t, const struct alloc *a);
/* It got somewhere: failures to start it are counted anew. */
void avoid_on_progress(struct core *c, struct trial *t);
/* How long its next run is held because no host could start it; 0: not. */
int64_t avoid_pause_ms(const struct trial *t);

void avoid_on_hello(struct core *c, const char *agent_id);
void avoid_on_timer(struct core *c);
/* From what avoid_json() gave, and then, when all is read back: waits begin anew. */
void avoid_load(struct trial *t, const json_t *list);
void avoid_restored(struct core *c, struct trial *t);

/* [{agent, source, text, failures, out, absent}]; a new reference. */
json_t *avoid_json(const struct trial *t);
/* "agent a: no such user (3 times); agent b: .." */
void avoid_text(const struct trial *t, struct buf *out);

#endif
