/* What the web page keeps for a user. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_user_settings.h"
#include "shell.h"
#include <stdio.h>
#include <string.h>

enum { SETTINGS_MAX = 1000, VALUE_MAX = 64 << 10 };

struct setting_body {
    const char *key, *path, *value;
};
static const struct wire_field setting_fields[] = {
    {"key", WIRE_STR, offsetof(struct setting_body, key), WIRE_REQUIRED, NULL},
    {"storagePath", WIRE_STR, offsetof(struct setting_body, path), 0, NULL},
    {"value", WIRE_STR, offsetof(struct setting_body, value), 0, NULL},
};

void api_get_user_setting(struct shell *sh, struct http_req *req)
{
    db_user_settings_read(sh->db, req->who.user_id, api_reply_doc, req);
}

void api_reset_user_setting(struct shell *sh, struct http_req *req)
{
    db_user_settings_reset(sh->db, req->who.user_id, api_reply_done, req);
}

static int setting_read(const json_t *j, size_t i, json_t *by_name, struct det_err *err)
{
    char where[48];
    struct setting_body b = {.path = "", .value = ""};
    snprintf(where, sizeof where, "settings[%zu]", i);
    int rc = wire_decode(j, where, setting_fields, DET_ARRAY_LEN(setting_fields), &b, err);
    if (rc < 0)
        return rc;
    if (!*b.key || strlen(b.key) > 200 || strlen(b.path) > 200 || strlen(b.value) > VALUE_MAX)
        return det_fail(err, DET_EINVAL,
                        "%s: a key of 1 to 200 bytes, a storagePath of up to 200 and a value of up "
                        "to %d bytes",
                        where, VALUE_MAX);
    det_cleanup(freep) char *name = det_asprintf("%s\n%s", b.path, b.key);
    json_set(by_name, name,
             json_make("{s:s,s:s,s:s}", "key", b.key, "storagePath", b.path, "value", b.value));
    return 0;
}

void api_post_user_setting(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *list = api_list(req, body, "settings");
    if (!list)
        return;
    JSON_OWN by_name = json_object(); /* of one named twice the last counts */
    JSON_OWN rows = json_array();
    if (json_array_size(list) == 0 || json_array_size(list) > SETTINGS_MAX) {
        http_fail(req, DET_EINVAL, "settings: expected a list of 1 to %d", SETTINGS_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        if (setting_read(json_array_get(list, i), i, by_name, &err) < 0) {
            http_fail_err(req, &err);
            return;
        }
    const char *name;
    json_t *row;
    json_object_foreach(by_name, name, row) json_array_append(rows, row);
    det_cleanup(freep) char *text = json_text(rows);
    db_user_settings_write(sh->db, req->who.user_id, text, api_reply_done, req);
}
