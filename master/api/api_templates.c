/* Templates: checked and normalised when written, so that an experiment merges what is known to be
 * well formed. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_templates.h"
#include "expconf.h"
#include "shell.h"
#include <ctype.h>
#include <string.h>

enum { NAME_MAX_BYTES = 80 };

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

void api_get_template(struct shell *sh, struct http_req *req)
{
    db_template_read(sh->db, http_param(req, "templateName"), api_reply_doc, req);
}

struct write_call {
    struct http_req *req;
    enum db_template_how how;
};

static void on_written(void *arg, const struct db_result *r)
{
    struct write_call *c = arg;
    if (strcmp(db_sqlstate(r), "23503") == 0)
        http_fail(c->req, DET_ENOENT, "template.workspaceId: there is no such workspace");
    else if (db_rc(r) == 0 && db_rows(r) == 0 && c->how == TEMPLATE_NEW)
        http_fail(c->req, DET_EEXIST, "a template of this name is there already");
    else
        api_reply_doc(c->req, r);
}

/* config (borrowed) under the path's name. */
static void template_write(struct shell *sh, struct write_call *c, const char *name,
                           const json_t *config, int64_t workspace_id)
{
    struct det_err err;
    JSON_OWN part = NULL;
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_BYTES || isspace((unsigned char)name[0]) || strchr(name, '/')) {
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
    db_template_write(sh->db, c->how, name, text, workspace_id, on_written, c);
}

/* The body is the template itself; its name may only repeat the path's. */
static void template_post(struct shell *sh, struct http_req *req, enum db_template_how how)
{
    struct write_call *c = http_mem(req, sizeof *c);
    struct det_err err;
    int64_t workspace_id = 0;
    const char *name = http_param(req, "template.name");
    *c = (struct write_call){req, how};
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *named = wire_get(body, "name"), *w = wire_get(body, "workspaceId");
    if (w && wire_i64(w, "template.workspaceId", &workspace_id, &err) < 0)
        http_fail_err(req, &err);
    else if (named && (!json_is_string(named) || strcmp(json_string_value(named), name)))
        http_fail(req, DET_EINVAL, "template.name: differs from the name in the path");
    else if (workspace_id < 0 || workspace_id > INT32_MAX || (how == TEMPLATE_PUT && workspace_id))
        http_fail(req, DET_EINVAL, "template.workspaceId: leave it out when replacing a template");
    else
        template_write(sh, c, name, wire_get(body, "config"), workspace_id);
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
    *c = (struct write_call){req, TEMPLATE_CHANGE};
    JSON_OWN body = api_body(req);
    if (body)
        template_write(sh, c, http_param(req, "templateName"), body, 0);
}

static void on_deleted(void *arg, const struct db_result *r)
{
    if (api_failed(arg, r))
        return;
    if (db_rows(r) == 0)
        api_not_found(arg);
    else
        http_reply(arg, 200, "{}");
}

void api_delete_template(struct shell *sh, struct http_req *req)
{
    db_template_delete(sh->db, http_param(req, "templateName"), on_deleted, req);
}
