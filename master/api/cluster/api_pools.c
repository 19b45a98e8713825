/* Resource pools. */
#include "api_handlers.h"
#include "api_util.h"
#include "masterconf.h"
#include "shell.h"
#include <string.h>

/* Slots of one type over the agents of a pool: the type shown is the one that most slots have. */
static const char *slot_type(const struct core *core, const char *pool)
{
    size_t n[3] = {0};
    struct core_agent_view a;
    struct core_slot_view s;
    for (size_t i = 0; core_agent_at(core, i, &a); i++)
        for (size_t k = 0; !strcmp(a.pool, pool) && core_slot_at(core, a.id, k, &s); k++)
            n[s.type]++;
    if (n[CORE_CUDA] && n[CORE_CUDA] >= n[CORE_ROCM])
        return "TYPE_CUDA";
    return n[CORE_ROCM] ? "TYPE_ROCM" : n[CORE_CPU] ? "TYPE_CPU" : "TYPE_UNSPECIFIED";
}

/* -1 when the agents differ or there are none. */
static int64_t slots_per_agent(const struct core *core, const char *pool)
{
    int64_t n = -1;
    struct core_agent_view a;
    for (size_t i = 0; core_agent_at(core, i, &a); i++) {
        if (strcmp(a.pool, pool))
            continue;
        if (n >= 0 && n != (int64_t)a.slots)
            return -1;
        n = (int64_t)a.slots;
    }
    return n;
}

static const char *scheduler_type(const struct core_pool_options *o)
{
    switch (o->scheduler) {
    case CORE_PRIORITY: return "SCHEDULER_TYPE_PRIORITY";
    case CORE_ROUND_ROBIN:
    case CORE_FIFO: /* the nearest that clients know */ return "SCHEDULER_TYPE_ROUND_ROBIN";
    case CORE_FAIR_SHARE: break;
    }
    return "SCHEDULER_TYPE_FAIR_SHARE";
}

static json_t *details_json(const struct core_pool_options *o)
{
    json_t *j = json_make("{s:n,s:n,s:n}", "aws", "gcp", "priorityScheduler");
    if (o->scheduler == CORE_PRIORITY)
        json_set(j, "priorityScheduler",
                 json_make("{s:b,s:i,s:[]}", "preemption", o->preemption, "defaultPriority",
                           o->default_priority, "k8Priorities"));
    return j;
}

/* What only clouds have. */
static json_t *cloud_fields(void)
{
    json_t *j = json_make("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "imageId", "", "instanceType",
                          "", "masterUrl", "", "masterCertName", "", "startupScript", "",
                          "containerStartupScript", "", "agentDockerNetwork", "",
                          "agentDockerRuntime", "", "agentDockerImage", "");
    json_object_update_new(j, json_make("{s:s,s:f,s:f,s:s,s:i,s:i,s:b,s:s}", "agentFluentImage", "",
                                        "maxIdleAgentPeriod", 0.0, "maxAgentStartingPeriod", 0.0,
                                        "accelerator", "", "minAgents", 0, "maxAgents", 0,
                                        "preemptible", 0, "location", "on-prem"));
    return j;
}

static json_t *pool_json(const struct shell *sh, const struct core *core,
                         const struct core_pool_view *p)
{
    const struct masterconf *conf = sh->conf;
    bool is_default = !strcmp(p->name, conf->default_pool);
    int aux = p->o->max_aux_containers;
    json_t *j = cloud_fields();
    json_object_update_new(
        j, json_make("{s:s,s:s,s:s,s:I,s:I,s:I,s:s,s:I,s:I,s:b,s:b}", "name", p->name,
                     "description", p->o->description, "type", "RESOURCE_POOL_TYPE_STATIC",
                     "numAgents", (json_int_t)p->agents, "slotsAvailable", (json_int_t)p->slots,
                     "slotsUsed", (json_int_t)p->slots_used, "slotType", slot_type(core, p->name),
                     "auxContainerCapacity", (json_int_t)p->agents * aux, "auxContainersRunning",
                     (json_int_t)p->aux_running, "defaultComputePool", is_default, "defaultAuxPool",
                     is_default));
    json_object_update_new(
        j,
        json_make("{s:I,s:i,s:s,s:s,s:o,s:{s:I,s:I,s:I}}", "slotsPerAgent",
                  (json_int_t)slots_per_agent(core, p->name), "auxContainerCapacityPerAgent", aux,
                  "schedulerType", scheduler_type(p->o), "schedulerFittingPolicy",
                  p->o->fitting == CORE_FIT_WORST ? "FITTING_POLICY_WORST" : "FITTING_POLICY_BEST",
                  "details", details_json(p->o), "stats", "queuedCount", (json_int_t)p->jobs_queued,
                  "scheduledCount", (json_int_t)p->jobs_scheduled, "pausedCount",
                  (json_int_t)p->jobs_paused));
    return j;
}

void api_get_resource_pools(struct shell *sh, struct http_req *req)
{
    const struct core *core = api_core(sh);
    struct core_pool_view v;
    struct db_page p;
    size_t n = 0, start, end;
    if (!api_page(req, NULL, &p))
        return;
    while (core_pool_at(core, n, &v))
        n++;
    if (!api_slice(req, &p, n, &start, &end))
        return;
    json_t *list = json_array();
    for (size_t i = start; i < end && core_pool_at(core, i, &v); i++)
        json_array_append_new(list, pool_json(sh, core, &v));
    api_reply_json(req, json_make("{s:o,s:o}", "resourcePools", list, "pagination",
                                  api_pagination(&p, start, end, n)));
}
