/* Tasks: what runs, its context, its accelerators. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_reports.h"
#include "db_task_read.h"
#include "masterconf.h"
#include "shell.h"
#include <stdio.h>
#include <string.h>

static json_t *devices_json(const struct core *core, const struct core_container_view *v)
{
    json_t *list = json_array();
    struct core_slot_view s;
    for (size_t i = 0; core_slot_at(core, v->agent_id, i, &s); i++)
        for (size_t k = 0; k < v->slots_n; k++)
            if (v->slots[k] == s.id)
                json_array_append_new(list,
                                      json_make("{s:i,s:s,s:s,s:s}", "id", s.id, "brand", s.brand,
                                                "uuid", s.uuid, "type", api_device_type(s.type)));
    return list;
}

static json_t *resources_json(const struct core *core, const char *alloc_id)
{
    json_t *list = json_array();
    struct core_container_view v;
    for (size_t i = 0; core_alloc_container(core, alloc_id, i, &v); i++) {
        json_t *devices = json_make("{s:{s:o}}", v.agent_id, "devices", devices_json(core, &v));
        json_array_append_new(list,
                              json_make("{s:s,s:s,s:s,s:o,s:s}", "resourcesId", v.id,
                                        "resourcesType", "docker-container", "allocationId",
                                        alloc_id, "agentDevices", devices, "containerId", v.id));
    }
    return list;
}

static const char *scheduler_name(const struct core *core, const char *pool)
{
    static const char *const names[] = {"fair_share", "priority", "fifo", "round_robin"};
    return names[core_pool_options(core, pool)->scheduler];
}

void api_get_tasks(struct shell *sh, struct http_req *req)
{
    const struct core *core = api_core(sh);
    json_t *map = json_object();
    struct core_alloc_view a;
    char time[CLK_RFC3339_MAX];
    for (size_t i = 0; core_alloc_at(core, i, &a); i++) {
        clk_format(a.requested_us, time);
        json_t *j =
            json_make("{s:s,s:s,s:s,s:s,s:s,s:I,s:o,s:s,s:[]}", "taskId", a.task_id, "allocationId",
                      a.id, "name", a.name, "registeredTime", time, "resourcePool", a.pool,
                      "slotsNeeded", (json_int_t)a.slots, "resources", resources_json(core, a.id),
                      "schedulerType", scheduler_name(core, a.pool), "proxyPorts");
        json_set(j, "priority", json_integer(a.priority));
        json_set(map, a.id, j);
    }
    api_reply_json(req, json_make("{s:o}", "allocationIdToSummary", map));
}

void api_get_tasks_count(struct shell *sh, struct http_req *req)
{
    http_reply(req, 200, "{\"commands\":0,\"notebooks\":0,\"shells\":0,\"tensorboards\":0}");
}

void api_get_task(struct shell *sh, struct http_req *req)
{
    db_task_read(sh->db, http_param(req, "taskId"), api_reply_doc, req);
}

void api_get_task_accelerators(struct shell *sh, struct http_req *req)
{
    db_accelerators_read(sh->db, http_param(req, "taskId"), api_reply_doc, req);
}

struct accelerators_body {
    const char *container, *allocation, *node, *task, *type;
    json_t *uuids;
};
#define A(member) offsetof(struct accelerators_body, member)
static const struct wire_field accelerators_fields[] = {
    {"containerId", WIRE_STR, A(container), 0, NULL},
    {"allocationId", WIRE_STR, A(allocation), 0, NULL},
    {"nodeName", WIRE_STR, A(node), 0, NULL},
    {"taskId", WIRE_STR, A(task), 0, NULL},
    {"acceleratorType", WIRE_STR, A(type), 0, NULL},
    {"acceleratorUuids", WIRE_ARRAY, A(uuids), 0, NULL},
};

void api_post_accelerators(struct shell *sh, struct http_req *req)
{
    const char *id = http_param(req, "allocationId");
    struct accelerators_body b = {"", "", "", "", "", NULL};
    struct det_err err;
    if (!api_own_alloc(req, id))
        return;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    if (wire_decode(wire_get(body, "acceleratorData"), "acceleratorData", accelerators_fields,
                    DET_ARRAY_LEN(accelerators_fields), &b, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    for (size_t i = 0; i < json_array_size(b.uuids); i++)
        if (!json_is_string(json_array_get(b.uuids, i))) {
            http_fail(req, DET_EINVAL, "acceleratorData.acceleratorUuids[%zu]: expected a string",
                      i);
            return;
        }
    det_cleanup(freep) char *uuids = b.uuids ? json_text(b.uuids) : det_strdup("[]");
    const char *dot = strrchr(id, '.'); /* "<task id>.<run id>" */
    det_cleanup(freep) char *task = det_strndup(id, (size_t)(dot - id));
    struct db_accelerators a = {.allocation_id = id,
                                .container_id = b.container,
                                .node_name = b.node,
                                .task_id = *b.task ? b.task : task,
                                .type = b.type,
                                .uuids = uuids};
    db_report_accelerators(sh->db, &a, api_reply_done, req);
}
