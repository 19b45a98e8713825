#include "gclist.h"

#include "log.h"
#include "mem.h"

#include <stdlib.h>
#include <string.h>

/* Names in one question; checkpoints, which may have many files each, in one report. */
enum { NAMES_AT_ONCE = 1000, TOLD_AT_ONCE = 20 };

#define PATH "/api/v1/checkpoint-stores/found"

/* Takes all members of body. */
static int post_body(struct client *c, const char *place, json_t *body, json_t **ret_answer,
                     struct det_err *err)
{
    JSON_OWN j = body;
    json_set(j, "place", json_string(place));
    return client_json(c, "POST", PATH, j, ret_answer, err);
}

/* What its writer said of it, but for the hashes, which are as long as its list of files. */
static json_t *trim_metadata(json_t *metadata)
{
    static const char *const ours[] = {"uuid", STORAGE_HASHES, "sha256", STORAGE_TASK,
                                       STORAGE_CLUSTER};
    for (size_t i = 0; i < DET_ARRAY_LEN(ours); i++)
        json_object_del(metadata, ours[i]);
    return metadata;
}

/* Another cluster that shares the store knows it; one of before checkpoints said so is nobody's. */
static bool is_of_another(const json_t *metadata)
{
    const char *theirs = json_str(metadata, STORAGE_CLUSTER, "");
    const char *ours = getenv("DET_CLUSTER_ID");
    return *theirs && ours && strcmp(theirs, ours) != 0;
}

/* NULL: it went away meanwhile, is another cluster's, or cannot be read; then the log says why. */
static json_t *describe_checkpoint(struct storage *st, const json_t *name)
{
    struct det_err err = {0};
    const char *uuid = json_str(name, "uuid", "");
    JSON_OWN j = storage_describe(st, uuid, json_flag(name, "aside", false), &err);
    if (!j) {
        if (err.code != DET_ENOENT)
            log_error("checkpoint %s: %s", uuid, err.text);
        return NULL;
    }
    json_t *metadata = json_obj(j, "metadata");
    if (is_of_another(metadata)) {
        log_info("checkpoint %s is of the cluster %s, and passed over", uuid,
                 json_str(metadata, STORAGE_CLUSTER, ""));
        return NULL;
    }
    JSON_OWN task = json_string(json_str(metadata, STORAGE_TASK, ""));
    json_object_update(j, (json_t *)name);
    json_set(j, "taskId", json_incref(task));
    json_set(j, "metadata", metadata ? json_incref(trim_metadata(metadata)) : json_object());
    return json_incref(j);
}

static int tell_checkpoints(struct client *c, const char *place, json_t **list, struct det_err *err)
{
    if (json_array_size(*list) == 0)
        return 0;
    json_t *body = json_make("{s:o}", "checkpoints", det_take(*list));
    *list = json_array();
    return post_body(c, place, body, NULL, err);
}

/* Those of the names that the master does not know. */
static int ask_unknown(struct client *c, const char *place, const json_t *names, size_t from,
                       json_t **ret, struct det_err *err)
{
    json_t *uuids = json_array();
    for (size_t i = from; i < json_array_size(names) && i < from + NAMES_AT_ONCE; i++)
        json_array_append(uuids, json_object_get(json_array_get(names, i), "uuid"));
    return post_body(c, place, json_make("{s:o}", "names", uuids), ret, err);
}

static bool holds_uuid(const json_t *uuids, const char *uuid)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)uuids, i, one)
    {
        if (strcmp(json_string_value(one) ? json_string_value(one) : "", uuid) == 0)
            return true;
    }
    return false;
}

static int list_some(struct client *c, struct storage *st, const json_t *names, size_t from,
                     struct det_err *err)
{
    const char *place = storage_root(st);
    JSON_OWN answer = NULL;
    JSON_OWN list = json_array();
    int rc = ask_unknown(c, place, names, from, &answer, err);
    const json_t *unknown = json_arr(answer, "unknown");
    for (size_t i = from; rc == 0 && i < json_array_size(names) && i < from + NAMES_AT_ONCE; i++) {
        const json_t *name = json_array_get(names, i);
        json_t *one =
            holds_uuid(unknown, json_str(name, "uuid", "")) ? describe_checkpoint(st, name) : NULL;
        if (one)
            json_array_append_new(list, one);
        if (json_array_size(list) >= TOLD_AT_ONCE)
            rc = tell_checkpoints(c, place, &list, err);
    }
    return rc < 0 ? rc : tell_checkpoints(c, place, &list, err);
}

int gclist_run(struct client *c, struct storage *st, struct det_err *err)
{
    JSON_OWN names = storage_names(st, err);
    int rc = names ? 0 : err->code;
    for (size_t i = 0; rc == 0 && i < json_array_size(names); i += NAMES_AT_ONCE)
        rc = list_some(c, st, names, i, err);
    if (rc == 0) /* a store that went away meanwhile was not looked through */
        rc = storage_ready(st, err);
    return rc < 0 ? rc
                  : post_body(c, storage_root(st), json_make("{s:b}", "done", true), NULL, err);
}
