#include "gcrun.h"

#include "client.h"
#include "failpoint.h"
#include "fsx.h"
#include "log.h"
#include "storage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define GC_BYTES_MAX ((size_t)64 << 20)
#define TOLD_AT_ONCE 50

int gcrun_write(const struct taskspec *s, struct det_err *err)
{
    JSON_OWN j = json_object();
    det_cleanup(freep) char *text = NULL;
    json_set(j, "storage",
             s->task.checkpoint_storage ? json_deep_copy(s->task.checkpoint_storage) : json_null());
    json_set(j, "uuids", json_deep_copy(s->task.gc_uuids));
    text = json_text(j);
    int rc = taskspec_user_enter(s, err);
    if (rc < 0)
        return rc;
    rc = fsx_write_atomic(s->dirfd, "info/gc.json", text, strlen(text), 0600, err);
    taskspec_user_leave(s);
    return rc;
}

static json_t *read_order(struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    const char *dir = getenv("DET_INFO_DIR");
    det_cleanup(freep) char *path = det_asprintf("%s/gc.json", dir ? dir : ".");
    if (fsx_read_file(AT_FDCWD, path, GC_BYTES_MAX, &b, err) < 0)
        return NULL;
    return json_parse(buf_str(&b), b.len, err);
}

static int make_client(struct client **ret, struct det_err *err)
{
    struct client_options o = {.url = client_env_url(),
                               .token_kind = CLIENT_TOKEN_ALLOCATION,
                               .token = getenv("DET_SESSION_TOKEN"),
                               .retries = -1,
                               .retry_ms = 600000,
                               .ca_file = getenv("DET_MASTER_CERT_FILE"),
                               .cert_name = getenv("DET_MASTER_CERT_NAME")};
    return client_create(&o, ret, err);
}

/* These checkpoints have no files any more. Takes and renews *list. */
static int tell(struct client *c, json_t **list, struct det_err *err)
{
    if (json_array_size(*list) == 0)
        return 0;
    FAILPOINT("gc.before_tell");
    JSON_OWN body = json_object();
    json_set(body, "checkpoints", *list);
    *list = json_array();
    return client_json(c, "PATCH", "/api/v1/checkpoints", body, NULL, err);
}

static int collect(struct client *c, struct storage *st, const json_t *uuids, struct det_err *err)
{
    JSON_OWN gone = json_array();
    int failed = 0, rc = 0;
    for (size_t i = 0; i < json_array_size(uuids) && rc == 0; i++) {
        const char *uuid = json_string_value(json_array_get(uuids, i));
        FAILPOINT("gc.before_delete");
        if (storage_delete(st, uuid, err) < 0) {
            log_error("checkpoint %s cannot be deleted: %s", uuid, err->text);
            failed++;
            continue;
        }
        log_info("checkpoint %s deleted", uuid);
        json_array_append_new(gone,
                              json_make("{s:s, s:{s:{}}}", "uuid", uuid, "resources", "resources"));
        if (json_array_size(gone) >= TOLD_AT_ONCE)
            rc = tell(c, &gone, err);
    }
    if (rc == 0)
        rc = tell(c, &gone, err);
    if (rc == 0 && failed > 0)
        rc = det_fail(err, DET_EIO, "%d of %zu checkpoints could not be deleted", failed,
                      json_array_size(uuids));
    return rc;
}

int gcrun_main(void)
{
    struct det_err err = {0};
    struct client *c = NULL;
    struct storage *st = NULL;
    log_init("det-task", LOG_INFO);
    log_set_task_format();
    JSON_OWN order = read_order(&err);
    int rc = order ? make_client(&c, &err) : DET_EINVAL;
    if (rc == 0)
        rc = storage_open(json_object_get(order, "storage"), &st, &err);
    if (rc == 0)
        rc = collect(c, st, json_arr(order, "uuids"), &err);
    if (rc < 0)
        log_error("%s", err.text);
    storage_close(st);
    client_destroy(c);
    return rc < 0;
}
