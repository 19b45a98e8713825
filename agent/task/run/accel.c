#include "accel.h"

#include "log.h"

#include <string.h>

static json_t *accel_json(const struct taskspec *s)
{
    const char *type = "cpu";
    json_t *uuids = json_array();
    for (size_t i = 0; i < s->task.slots_n; i++) {
        const json_t *slot = taskspec_slot(s, i);
        const char *t = json_str(slot, "type", "cpu");
        if (strcmp(t, "cpu") == 0)
            continue;
        type = t;
        json_array_append_new(uuids, json_string(json_str(slot, "uuid", "")));
    }
    json_t *j = json_make("{s:s, s:s, s:s, s:s, s:s}", "containerId", s->container, "allocationId",
                          s->alloc, "nodeName", s->agent_id, "taskId", s->task.task_id,
                          "acceleratorType", type);
    json_set(j, "acceleratorUuids", uuids);
    return j;
}

static void on_done(void *arg, int rc, const struct client_resp *resp, const struct det_err *err)
{
    if (rc < 0)
        log_debug("acceleratorData: %s", err->text);
}

void accel_tell(struct client_uv *http, const struct taskspec *s)
{
    JSON_OWN body = json_object();
    json_set(body, "allocationId", json_string(s->alloc));
    json_set(body, "acceleratorData", accel_json(s));
    det_cleanup(freep) char *text = json_text(body);
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/allocations/%s/acceleratorData", s->alloc);
    struct client_req req = {.method = "POST", .path = path, .body = text};
    client_uv_start(http, &req, on_done, NULL);
}
