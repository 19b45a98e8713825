#include "gcrun.h"

#include "client.h"
#include "failpoint.h"
#include "fsx.h"
#include "gclist.h"
#include "log.h"
#include "storage.h"
#include "storeplace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is older than this has no writer: no checkpoint takes a week. */
#define CRASHED_AGE_S ((int64_t)7 * 24 * 3600)

#define GC_BYTES_MAX ((size_t)64 << 20)
#define TOLD_AT_ONCE 50
#define TOLD_BYTES   ((size_t)1 << 20) /* a request of the master's route may have 4 MiB */

int gcrun_write(const struct taskspec *s, struct det_err *err)
{
    JSON_OWN j = json_object();
    det_cleanup(freep) char *text = NULL;
    json_set(j, "storage",
             s->task.checkpoint_storage ? json_deep_copy(s->task.checkpoint_storage) : json_null());
    json_set(j, "uuids", json_deep_copy(s->task.gc_uuids));
    json_set(j, "action", json_string(link_gc_names[s->task.gc_action]));
    json_set(j, "globs", s->task.gc_globs ? json_deep_copy(s->task.gc_globs) : json_array());
    json_set(j, "trees", s->task.gc_trees ? json_deep_copy(s->task.gc_trees) : json_array());
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

/* What is left of these checkpoints. Takes and renews *list. */
static int tell_done(struct client *c, json_t **list, struct det_err *err)
{
    if (json_array_size(*list) == 0)
        return 0;
    FAILPOINT("gc.before_tell");
    JSON_OWN body = json_object();
    json_set(body, "checkpoints", *list);
    *list = json_array();
    return client_json(c, "PATCH", "/api/v1/checkpoints", body, NULL, err);
}

struct work {
    const char *action;
    const json_t *uuids, *globs;
};

static int delete_globs(struct storage *st, const char *uuid, const json_t *globs,
                        struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < json_array_size(globs) && rc == 0; i++)
        rc = storage_delete_glob(st, uuid, json_string_value(json_array_get(globs, i)), err);
    return rc;
}

/* Every action may be repeated: a task that died half way is simply run again. */
static int act_on_checkpoint(struct storage *st, const char *uuid, const struct work *w,
                             struct det_err *err)
{
    if (strcmp(w->action, link_gc_names[LINK_GC_QUARANTINE]) == 0)
        return storage_quarantine(st, uuid, err);
    if (strcmp(w->action, link_gc_names[LINK_GC_RESTORE]) == 0)
        return storage_restore(st, uuid, err);
    if (strcmp(w->action, link_gc_names[LINK_GC_CUT]) == 0)
        return delete_globs(st, uuid, w->globs, err);
    return storage_purge(st, uuid, err);
}

/* {path: bytes} of what is there now; without the directories, which hold nothing by themselves,
 * once no file is left. */
static json_t *files_left(struct storage *st, const char *uuid, struct det_err *err)
{
    int rc = storage_exists(st, uuid, err);
    if (rc == DET_ENOENT)
        return json_object();
    json_t *all = rc < 0 ? NULL : storage_list(st, uuid, err);
    const char *path;
    json_t *bytes;
    json_object_foreach(all, path, bytes)
    {
        if (path[strlen(path) - 1] != '/')
            return all;
    }
    if (all)
        json_object_clear(all);
    return all;
}

static int collect_one(struct storage *st, const char *uuid, const struct work *w, json_t *done,
                       struct det_err *err)
{
    int rc = act_on_checkpoint(st, uuid, w, err);
    if (rc == DET_ENOENT && strcmp(w->action, link_gc_names[LINK_GC_RESTORE]) == 0) {
        log_error("checkpoint %s cannot be restored: its files are gone", uuid);
        rc = 0; /* the master is told that nothing is left */
    }
    json_t *left = rc < 0 ? NULL : files_left(st, uuid, err);
    if (!left)
        return rc < 0 ? rc : DET_EIO;
    log_info("checkpoint %s: %s done", uuid, w->action);
    json_array_append_new(
        done, json_make("{s:s, s:{s:o}}", "uuid", uuid, "resources", "resources", left));
    return 0;
}

static size_t bytes_of(const json_t *entry)
{
    det_cleanup(freep) char *text = json_text(entry);
    return strlen(text);
}

static int collect_all(struct client *c, struct storage *st, const struct work *w,
                       struct det_err *err)
{
    JSON_OWN done = json_array();
    int failed = 0, rc = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < json_array_size(w->uuids) && rc == 0; i++) {
        const char *uuid = json_string_value(json_array_get(w->uuids, i));
        FAILPOINT("gc.before_delete");
        int did = collect_one(st, uuid, w, done, err);
        if (did == DET_EUNAVAIL)
            return did; /* the store went away: nothing more can be known of any of them */
        if (did < 0) {
            log_error("checkpoint %s: %s failed: %s", uuid, w->action, err->text);
            failed++;
            continue;
        }
        size_t n = json_array_size(done);
        bytes += bytes_of(json_array_get(done, n - 1));
        if (n >= TOLD_AT_ONCE || bytes >= TOLD_BYTES) {
            rc = tell_done(c, &done, err);
            bytes = 0;
        }
    }
    if (rc == 0)
        rc = tell_done(c, &done, err);
    if (rc == 0 && failed > 0)
        rc = det_fail(err, DET_EIO, "%s failed for %d of %zu checkpoints", w->action, failed,
                      json_array_size(w->uuids));
    return rc;
}

static int carry_out(struct client *c, struct storage *st, const json_t *order, struct det_err *err)
{
    struct work w = {.action = json_str(order, "action", ""),
                     .uuids = json_arr(order, "uuids"),
                     .globs = json_arr(order, "globs")};
    if (strcmp(w.action, link_gc_names[LINK_GC_LIST]) == 0)
        return gclist_run(c, st, err);
    return collect_all(c, st, &w, err);
}

static int remove_trees(struct storage *st, const json_t *trees, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(trees); i++)
        rc = storage_remove_tree(st, json_string_value(json_array_get(trees, i)), err);
    return rc;
}

/* Collection makes no store: where the root is not there, nothing is known to be gone. */
static int open_store(const json_t *config, struct storage **ret, struct det_err *err)
{
    const char *id = getenv(STORAGE_ID_ENV);
    det_cleanup(freep) char *place = NULL;
    int rc = storeplace_of(config, &place, err);
    if (rc < 0)
        return rc;
    if (!id && access(place, F_OK) < 0 && errno == ENOENT)
        return det_fail(err, DET_EUNAVAIL, "checkpoint store %s is not there; mount it", place);
    return storage_open_store(config, id, ret, err);
}

/* DET_EUNAVAIL may be the master's, too. */
static bool is_away(int rc, struct storage *st)
{
    return rc == DET_EUNAVAIL && (!st || storage_ready(st, NULL) == DET_EUNAVAIL);
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
        rc = open_store(json_object_get(order, "storage"), &st, &err);
    if (rc == 0)
        rc = carry_out(c, st, order, &err);
    if (rc == 0)
        rc = remove_trees(st, json_arr(order, "trees"), &err);
    if (rc == 0 && storage_sweep(st, CRASHED_AGE_S, &err) < 0)
        log_warning("what crashed writers have left could not be removed: %s", err.text);
    if (rc < 0)
        log_error("%s", err.text);
    if (is_away(rc, st))
        storage_note_away(err.text);
    storage_close(st);
    client_destroy(c);
    return rc < 0;
}
