/* Tasks: what runs, its context, its accelerators. */
#include "api_handlers.h"
#include "api_util.h"
#include "buf.h"
#include "clk.h"
#include "db_reports.h"
#include "db_task_read.h"
#include "masterconf.h"
#include "shell.h"
#include <stdio.h>
#include <string.h>

/* As text at once, as api_agents.c has it. */
static void write_devices(struct buf *out, const struct core *core,
                          const struct core_container_view *v)
{
    struct core_slot_view s;
    bool first = true;
    for (size_t i = 0; core_slot_at(core, v->agent_id, i, &s); i++)
        for (size_t k = 0; k < v->slots_n; k++)
            if (v->slots[k] == s.id) {
                buf_add_str(out, first ? "{" : ",{");
                first = false;
                json_add_int(out, "id", s.id);
                json_add_str(out, "brand", s.brand);
                json_add_str(out, "uuid", s.uuid);
                json_add_str(out, "type", api_device_type(s.type));
                buf_add_ch(out, '}');
            }
}

static void write_resources(struct buf *out, const struct core *core, const char *alloc_id)
{
    struct core_container_view v;
    for (size_t i = 0; core_alloc_container(core, alloc_id, i, &v); i++) {
        buf_add_str(out, i ? ",{" : "{");
        json_add_str(out, "resourcesId", v.id);
        json_add_str(out, "resourcesType", "docker-container");
        json_add_str(out, "allocationId", alloc_id);
        json_add_key(out, "agentDevices");
        buf_add_ch(out, '{');
        json_write_string(out, v.agent_id, strlen(v.agent_id));
        buf_add_str(out, ":{\"devices\":[");
        write_devices(out, core, &v);
        buf_add_str(out, "]}}");
        json_add_str(out, "containerId", v.id);
        buf_add_ch(out, '}');
    }
}

static const char *scheduler_name(const struct core *core, const char *pool)
{
    static const char *const names[] = {"fair_share", "priority", "fifo", "round_robin"};
    return names[core_pool_options(core, pool)->scheduler];
}

static void write_task(struct buf *out, const struct core *core, const struct core_alloc_view *a)
{
    char time[CLK_RFC3339_MAX];
    clk_format(a->requested_us, time);
    buf_add_ch(out, '{');
    json_add_str(out, "taskId", a->task_id);
    json_add_str(out, "allocationId", a->id);
    json_add_str(out, "name", a->name);
    json_add_str(out, "registeredTime", time);
    json_add_str(out, "resourcePool", a->pool);
    json_add_int(out, "slotsNeeded", (int64_t)a->slots);
    json_add_key(out, "resources");
    buf_add_ch(out, '[');
    write_resources(out, core, a->id);
    buf_add_ch(out, ']');
    json_add_str(out, "schedulerType", scheduler_name(core, a->pool));
    json_add_key(out, "proxyPorts");
    buf_add_str(out, "[]");
    json_add_int(out, "priority", a->priority);
    buf_add_ch(out, '}');
}

void api_get_tasks(struct shell *sh, struct http_req *req)
{
    const struct core *core = api_core(sh);
    struct core_alloc_view a;
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"allocationIdToSummary\":{");
    for (size_t i = 0; core_alloc_at(core, i, &a); i++) {
        if (i)
            buf_add_ch(&out, ',');
        json_write_string(&out, a.id, strlen(a.id));
        buf_add_ch(&out, ':');
        write_task(&out, core, &a);
    }
    buf_add_str(&out, "}}");
    http_reply_buf(req, 200, &out);
    buf_finish(&out);
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
