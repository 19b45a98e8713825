#include "agents_parse.h"

#include "mem.h"

#include <string.h>

static int name_index(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return (int)i;
    return -1;
}

static int exit_parse(const json_t *j, struct core_exit *ret, struct det_err *err)
{
    static const char *const reasons[] = {"exited", "killed", "stalled", "start_failed", "lost"};
    const char *reason = json_str(j, "reason", "");
    int i = name_index(reasons, DET_ARRAY_LEN(reasons), reason);
    if (i < 0)
        return det_fail(err, DET_EINVAL, "exit.reason: unknown \"%.40s\"", reason);
    *ret = (struct core_exit){
        .reason = (enum core_exit_reason)i,
        .code = (int)json_int(j, "code", 0),
        .signal = (int)json_int(j, "signal", 0),
        .rank = (int)json_int(j, "rank", -1),
        .text = json_str(j, "text", ""),
    };
    return 0;
}

static int task_parse(const json_t *j, const char *state, struct core_task_in *ret, struct det_err *err)
{
    ret->alloc = json_str(j, "alloc", "");
    ret->container = json_str(j, "container", "");
    if (!*ret->alloc || strlen(ret->alloc) > 95)
        return det_fail(err, DET_EINVAL, "alloc: missing or too long");
    if (!strcmp(state, "starting")) {
        ret->state = CORE_TASK_STARTING;
    } else if (!strcmp(state, "running")) {
        ret->state = CORE_TASK_RUNNING;
    } else if (json_obj(j, "exit")) {
        ret->state = CORE_TASK_ENDED;
        return exit_parse(json_obj(j, "exit"), &ret->exit, err);
    } else {
        return det_fail(err, DET_EINVAL, "state: unknown \"%.40s\", and there is no exit", state);
    }
    return 0;
}

static int slot_parse(const json_t *j, struct core_slot_in *ret, struct det_err *err)
{
    static const char *const types[] = {"cpu", "cuda", "rocm"};
    const char *type = json_str(j, "type", "");
    int i = name_index(types, DET_ARRAY_LEN(types), type);
    int64_t id = json_int(j, "id", -1);
    if (i < 0 || id < 0 || id > 65535)
        return det_fail(err, DET_EINVAL, "slots: id %lld, type \"%.20s\"", (long long)id, type);
    *ret = (struct core_slot_in){(int)id, (enum core_device)i, json_str(j, "brand", ""),
                                 json_str(j, "uuid", "")};
    return 0;
}

static int hello_parse(const json_t *j, struct agent_event *e, struct det_err *err)
{
    const json_t *slots = json_arr(j, "slots"), *tasks = json_arr(j, "tasks");
    size_t ns = json_array_size(slots), nt = json_array_size(tasks);
    if (ns > AGENT_SLOTS_MAX || nt > AGENT_TASKS_MAX)
        return det_fail(err, DET_EINVAL, "hello: %zu slots, %zu tasks: too many", ns, nt);
    e->slots = det_zalloc((ns + 1) * sizeof *e->slots);
    e->tasks = det_zalloc((nt + 1) * sizeof *e->tasks);
    int rc = 0;
    for (size_t i = 0; i < ns && rc == 0; i++)
        rc = slot_parse(json_array_get(slots, i), &e->slots[i], err);
    for (size_t i = 0; i < nt && rc == 0; i++) {
        const json_t *t = json_array_get(tasks, i);
        rc = task_parse(t, json_str(t, "state", ""), &e->tasks[i], err);
    }
    e->is_hello = true;
    e->ev.kind = CORE_EV_AGENT_HELLO;
    e->ev.hello = (struct core_hello){
        .version = json_str(j, "version", ""), .pool = json_str(j, "pool", ""),
        .addr = json_str(j, "addr", ""),       .slots = e->slots,
        .slots_n = ns,                         .tasks = e->tasks,
        .tasks_n = nt,
    };
    return rc;
}

int agent_event_parse(const json_t *j, struct agent_event *ret, struct det_err *err)
{
    *ret = (struct agent_event){.seq = json_int(j, "seq", 0)};
    const char *type = json_str(j, "type", "");
    int rc;
    if (ret->seq < 1)
        rc = det_fail(err, DET_EINVAL, "seq: missing or below 1");
    else if (!strcmp(type, "hello"))
        rc = hello_parse(j, ret, err);
    else if (!strcmp(type, "state") || !strcmp(type, "exit"))
        rc = task_parse(j, json_str(j, "state", ""), &ret->ev.task, err);
    else
        rc = det_fail(err, DET_EINVAL, "type: unknown \"%.40s\"", type);
    if (rc < 0)
        return det_wrap(err, rc, "event %lld", (long long)ret->seq);
    if (!ret->is_hello)
        ret->ev.kind = !strcmp(type, "exit") ? CORE_EV_AGENT_EXIT : CORE_EV_AGENT_STATE;
    ret->ev.alloc_id = ret->is_hello ? NULL : ret->ev.task.alloc;
    ret->ev.container = ret->is_hello ? NULL : ret->ev.task.container;
    return 0;
}

void agent_event_finish(struct agent_event *e)
{
    free(e->slots);
    free(e->tasks);
    e->slots = NULL;
    e->tasks = NULL;
}
