/* Events of an agent, from JSON. */
#ifndef SHELL_AGENTS_PARSE_H
#define SHELL_AGENTS_PARSE_H

#include "core.h"

enum { AGENT_EVENTS_MAX = 1000, AGENT_SLOTS_MAX = 1024, AGENT_TASKS_MAX = 65536 };

struct agent_event {
    int64_t seq;
    bool is_hello;
    struct core_event ev; /* borrows from the JSON; arrays below are owned */
    struct core_slot_in *slots;
    struct core_task_in *tasks;
};
/* DET_EINVAL names the field. */
int agent_event_parse(const json_t *j, struct agent_event *ret, struct det_err *err);
void agent_event_finish(struct agent_event *e);

#endif
