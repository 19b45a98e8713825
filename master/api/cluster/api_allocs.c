/* Allocations: what a running task asks of and tells the master. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_task_read.h"
#include "driver.h"
#include "runports.h"
#include "shell.h"
#include "waits.h"
#include <string.h>

#define PREEMPT_DEFAULT_S 60

/* The allocation of the path; NULL when answered. */
static const char *alloc_of(struct http_req *req)
{
    const char *id = http_param(req, "allocationId");
    return api_own_alloc(req, id) ? id : NULL;
}

void api_get_allocation(struct shell *sh, struct http_req *req)
{
    const char *id = alloc_of(req);
    if (id)
        db_allocation_read(sh->db, id, api_reply_doc, req);
}

void api_rendezvous(struct shell *sh, struct http_req *req)
{
    const char *id = alloc_of(req);
    struct runports ports;
    struct det_err err = {0};
    if (!id)
        return;
    if (runports_read(&ports, http_query(req, "ports"), &err) < 0) {
        http_fail(req, err.code, "%s", err.text);
        return;
    }
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    runports_write(&text, &ports);
    waits_rendezvous(sh->waits, req, id, http_param(req, "resourcesId"),
                     text.len ? buf_str(&text) : NULL);
}

void api_preemption_signal(struct shell *sh, struct http_req *req)
{
    const char *id = alloc_of(req);
    int64_t seconds;
    if (!id || !api_query_i64(req, "timeoutSeconds", PREEMPT_DEFAULT_S, &seconds))
        return;
    if (seconds < 0 || seconds > 3600)
        http_fail(req, DET_EINVAL, "timeoutSeconds: 0 to 3600");
    else
        waits_preempt(sh->waits, req, id, seconds * 1000);
}

void api_all_gather(struct shell *sh, struct http_req *req)
{
    struct {
        const char *uuid;
        int64_t peers;
        json_t *data;
    } b = {"", 0, NULL};
    static const struct wire_field fields[] = {
        {"requestUuid", WIRE_STR, 0, WIRE_REQUIRED, NULL},
        {"numPeers", WIRE_I32, sizeof(char *), WIRE_REQUIRED, NULL},
        {"data", WIRE_ANY, sizeof(char *) + sizeof(int64_t), 0, NULL},
    };
    const char *id = alloc_of(req);
    json_t *body;
    if (!id || !api_decode(req, fields, DET_ARRAY_LEN(fields), &b, &body))
        return;
    JSON_OWN none = json_object();
    if (b.peers < 1 || b.peers > 4096 || !*b.uuid)
        http_fail(req, DET_EINVAL, "numPeers: 1 to 4096, and requestUuid must not be empty");
    else
        waits_all_gather(sh->waits, req, id, b.uuid, (int)b.peers, b.data ? b.data : none);
    json_decref(body);
}

/* What the core does not know has ended: saying so again harms nobody. */
static void on_said(void *arg, const struct core_reply *r)
{
    if (r->code == DET_ENOENT)
        http_reply(arg, 200, "{}");
    else
        api_reply_core(arg, r);
}

static void post_event(struct shell *sh, struct http_req *req, enum core_event_kind kind,
                       const char *container)
{
    const char *id = alloc_of(req);
    if (!id)
        return;
    struct core_event ev = {.kind = kind,
                            .alloc_id = id,
                            .container = container,
                            .run_id = req->who.kind == WHO_ALLOC ? req->who.run_id : 0};
    driver_post(sh->driver, &ev, on_said, req);
}

void api_ack_preemption(struct shell *sh, struct http_req *req)
{
    post_event(sh, req, CORE_EV_ACK_PREEMPTION, NULL);
}

void api_mark_daemon(struct shell *sh, struct http_req *req)
{
    post_event(sh, req, CORE_EV_DAEMON, http_param(req, "resourcesId"));
}

void api_allocation_ready(struct shell *sh, struct http_req *req)
{
    post_event(sh, req, CORE_EV_READY, NULL);
}

void api_allocation_waiting(struct shell *sh, struct http_req *req)
{
    post_event(sh, req, CORE_EV_WAITING, NULL);
}
