/* An agent's event (proto/link.h) as the core's. */
#ifndef SHELL_AGENTS_EVENT_H
#define SHELL_AGENTS_EVENT_H

#include "core.h"
#include "agentlink.h"

/* Strings are borrowed from e, arrays are new: free by agents_event_finish. ahead_us: how far the
 * agent's clock is ahead of ours; its marks are told by ours. */
void agents_event_init(struct core_event *ev, const char *agent_id, const struct link_event *e,
                       int64_t ahead_us);
void agents_event_finish(struct core_event *ev);

#endif
