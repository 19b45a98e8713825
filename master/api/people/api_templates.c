/* Templates: checked and normalised when written, so that an experiment merges what is known to be
 * well formed. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_templates.h"
#include "expconf.h"
#include "shell.h"
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { NAME_MAX_BYTES = 80 };

static void template_not_found(struct http_req *req, const char *name)
{
    http_fail(req, DET_ENOENT, "template \"%.80s\" not found", name);
}

static void on_list(void *arg, const struct db_result *r)
{
    api_reply_list(arg, r, NULL, false);
}

void api_get_templates(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    c->key = "templates";
    if (api_page(req, wire_template_sort, &c->page))
        db_template_list(sh->db, http_query(req, "name"), &c->page, on_list, c);
}

static void on_read(void *arg, const struct db_result *r)
{
    if (db_rc(r) == 0 && db_rows(r) == 0)
        template_not_found(arg, http_param(arg, "templateName"));
    else
        api_reply_doc(arg, r);
}

void api_get_template(struct shell *sh, struct http_req *req)
{
    db_template_read(sh->db, http_param(req, "templateName"), on_read, req);
}

struct write_call {
    struct http_req *req;
    enum db_template_how how;
    const char *name; /* of the path */
    int64_t workspace_id;
};

static void on_written(void *arg, const struct db_result *r)
{
    struct write_call *c = arg;
    if (db_state(r) == DB_STATE_MISSING)
        http_fail(c->req, DET_ENOENT, "template.workspaceId: workspace %" PRId64 " not found",
                  c->workspace_id);
    else if (db_rc(r) == 0 && db_rows(r) == 0 && c->how == TEMPLATE_NEW)
        http_fail(c->req, DET_EEXIST, "template \"%.80s\" is there already", c->name);
    else if (db_rc(r) == 0 && db_rows(r) == 0)
        template_not_found(c->req, c->name);
    else
        api_reply_doc(c->req, r);
}

/* Writes config (borrowed). */
static void template_write(struct shell *sh, struct write_call *c, const json_t *config)
{
    struct det_err err;
    JSON_OWN part = NULL;
    size_t n = strlen(c->name);
    if (n == 0 || n > NAME_MAX_BYTES || isspace((unsigned char)c->name[0]) ||
        strchr(c->name, '/')) {
        http_fail(c->req, DET_EINVAL, "template.name: 1 to %d bytes without '/'", NAME_MAX_BYTES);
        return;
    }
    if (!json_is_object(config)) {
        http_fail(c->req, DET_EINVAL, "template.config: expected an object");
        return;
    }
    if (expconf_partial(config, &part, &err) < 0) {
        http_fail_err(c->req, &err);
        return;
    }
    det_cleanup(freep) char *text = json_text(part);
    const struct db_template_origin o = {c->workspace_id, c->req->who.user_id};
    db_template_write(sh->db, c->how, c->name, text, &o, on_written, c);
}

/* The body is the template itself; its name may only repeat the path's. */
static void template_post(struct shell *sh, struct http_req *req, enum db_template_how how)
{
    struct write_call *c = http_mem(req, sizeof *c);
    struct det_err err;
    *c = (struct write_call){req, how, http_param(req, "template.name"), 0};
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *named = wire_get(body, "name"), *w = wire_get(body, "workspaceId");
    if (w && wire_i64(w, "template.workspaceId", &c->workspace_id, &err) < 0)
        http_fail_err(req, &err);
    else if (named && (!json_is_string(named) || strcmp(json_string_value(named), c->name)))
        http_fail(req, DET_EINVAL, "template.name: differs from the name in the path");
    else if (c->workspace_id < 0 || c->workspace_id > INT32_MAX ||
             (how == TEMPLATE_PUT && c->workspace_id))
        http_fail(req, DET_EINVAL, "template.workspaceId: leave it out when replacing a template");
    else
        template_write(sh, c, wire_get(body, "config"));
}

void api_post_template(struct shell *sh, struct http_req *req)
{
    template_post(sh, req, TEMPLATE_NEW);
}

void api_put_template(struct shell *sh, struct http_req *req)
{
    template_post(sh, req, TEMPLATE_PUT);
}

/* The body is the new configuration. */
void api_patch_template(struct shell *sh, struct http_req *req)
{
    struct write_call *c = http_mem(req, sizeof *c);
    *c = (struct write_call){req, TEMPLATE_CHANGE, http_param(req, "templateName"), 0};
    JSON_OWN body = api_body(req);
    if (body)
        template_write(sh, c, body);
}

static void on_deleted(void *arg, const struct db_result *r)
{
    if (api_failed(arg, r))
        return;
    if (db_rows(r) == 0)
        template_not_found(arg, http_param(arg, "templateName"));
    else
        http_reply(arg, 200, "{}");
}

void api_delete_template(struct shell *sh, struct http_req *req)
{
    db_template_delete(sh->db, http_param(req, "templateName"), on_deleted, req);
}
