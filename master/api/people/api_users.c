/* User management. */
#include "api_handlers.h"
#include "api_util.h"
#include "auth.h"
#include "db_task_read.h"
#include "db_users.h"
#include "shell.h"
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define NAME_MAX_BYTES 127

static void on_users(void *arg, const struct db_result *r)
{
    api_reply_list(arg, r, NULL, true);
}

void api_get_users(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct db_user_filter f = {.name = http_query(req, "name")};
    c->key = "users";
    if (api_page(req, wire_user_sort, &c->page) && api_query_flag(req, "active", &f.active) &&
        api_query_flag(req, "admin", &f.admin))
        db_user_list(sh->db, &f, &c->page, on_users, c);
}

/* A change that may wait for its password's hash. Strings live in the request. */
struct user_change {
    struct shell *sh;
    struct http_req *req;
    int64_t id; /* 0: a new one */
    struct db_user_edit edit;
};

/* Whoever changes a password of their own stays. */
static const char *spare_session(const struct user_change *u)
{
    return u->req->who.user_id == u->id ? u->req->who.session : NULL;
}

static void on_changed(void *arg, const struct db_result *r)
{
    struct user_change *u = arg;
    if (db_state(r) == DB_STATE_TAKEN) {
        http_fail(u->req, DET_EINVAL, "user already exists: \"%.127s\"", u->edit.username);
        return;
    }
    if (api_failed(u->req, r))
        return;
    if (db_rows(r) == 0) {
        api_not_found(u->req);
        return;
    }
    auth_forget_user(u->sh->auth, db_i64(r, 0, 0));
    if (u->edit.password || u->edit.active == 0) /* as in the table */
        http_drop(u->sh->http, &(struct http_ended){.user_id = u->id, .keep = spare_session(u)});
    struct buf out = BUF_INIT;
    buf_addf(&out, "{\"user\":%s}", db_text(r, 0, 1));
    http_reply_buf(u->req, 200, &out);
    buf_finish(&out);
}

static void change_write(struct user_change *u)
{
    if (u->id)
        db_user_edit(u->sh->db, u->id, &u->edit, spare_session(u), on_changed, u);
    else
        db_user_create(u->sh->db, &u->edit, on_changed, u);
}

static void on_hash(void *arg, const char *text)
{
    struct user_change *u = arg;
    if (!text) {
        http_fail(u->req, DET_EIO, "the password could not be hashed");
        return;
    }
    u->edit.password = http_strdup(u->req, text);
    change_write(u);
}

/* A blank password lets nobody in, so it is refused where it is meant to be one. */
static void change_begin(struct user_change *u, const char *password, bool is_hashed)
{
    if (!password)
        change_write(u);
    else if (!*password)
        http_fail(u->req, DET_EINVAL, "password: must not be blank");
    else
        auth_hash(u->sh, password, is_hashed, on_hash, u);
}

static bool name_ok(struct http_req *req, const char *name)
{
    size_t n = name ? strlen(name) : 0;
    bool good = n >= 2 && n <= NAME_MAX_BYTES;
    for (size_t i = 0; i < n; i++)
        good = good && (unsigned char)name[i] > ' ' && name[i] != 127 && name[i] != '/';
    if (!good)
        http_fail(req, DET_EINVAL, "username: 2 to %d characters without blanks, controls and '/'",
                  NAME_MAX_BYTES);
    return good;
}

struct user_body {
    const char *username, *display_name, *password;
    int admin, active, remote, is_hashed;
    json_t *agent;
};
#define U(member) offsetof(struct user_body, member)
static const struct wire_field user_fields[] = {
    {"username", WIRE_STR, U(username), 0, NULL},
    {"displayName", WIRE_STR, U(display_name), 0, NULL},
    {"password", WIRE_STR, U(password), 0, NULL},
    {"admin", WIRE_BOOL, U(admin), 0, NULL},
    {"active", WIRE_BOOL, U(active), 0, NULL},
    {"remote", WIRE_BOOL, U(remote), 0, NULL},
    {"isHashed", WIRE_BOOL, U(is_hashed), 0, NULL},
    {"agentUserGroup", WIRE_OBJECT, U(agent), 0, NULL},
};
struct agent_user_body {
    int64_t uid, gid;
    const char *user, *group;
};
static const struct wire_field agent_user_fields[] = {
    {"agentUid", WIRE_I32, offsetof(struct agent_user_body, uid), WIRE_REQUIRED, NULL},
    {"agentGid", WIRE_I32, offsetof(struct agent_user_body, gid), WIRE_REQUIRED, NULL},
    {"agentUser", WIRE_STR, offsetof(struct agent_user_body, user), WIRE_REQUIRED, NULL},
    {"agentGroup", WIRE_STR, offsetof(struct agent_user_body, group), WIRE_REQUIRED, NULL},
};

static char *keep_text(struct http_req *req, const char *s)
{
    return s ? http_strdup(req, s) : NULL;
}

/* The members of user.v1.User or PatchUser into u->edit. */
static int change_fill(struct user_change *u, const struct user_body *b, struct det_err *err)
{
    struct agent_user_body a = {0};
    u->edit = (struct db_user_edit){.username = keep_text(u->req, b->username),
                                    .display_name = keep_text(u->req, b->display_name),
                                    .admin = b->admin,
                                    .active = b->active,
                                    .remote = b->remote};
    if (!b->agent)
        return 0;
    int rc = wire_decode(b->agent, "agentUserGroup", agent_user_fields,
                         DET_ARRAY_LEN(agent_user_fields), &a, err);
    if (rc < 0)
        return rc;
    if (a.uid < 0 || a.gid < 0)
        return det_fail(err, DET_EINVAL, "agentUserGroup: ids are not negative");
    u->edit.set_agent_user = true;
    u->edit.uid = a.uid;
    u->edit.gid = a.gid;
    u->edit.user_name = keep_text(u->req, a.user);
    u->edit.group_name = keep_text(u->req, a.group);
    return 0;
}

static struct user_change *change_make(struct shell *sh, struct http_req *req, int64_t id)
{
    struct user_change *u = http_mem(req, sizeof *u);
    *u = (struct user_change){
        .sh = sh, .req = req, .id = id, .edit = {.admin = -1, .active = -1, .remote = -1}};
    return u;
}

struct new_user_body {
    json_t *user;
    const char *password;
    int is_hashed;
};
static const struct wire_field new_user_fields[] = {
    {"user", WIRE_OBJECT, offsetof(struct new_user_body, user), WIRE_REQUIRED, NULL},
    {"password", WIRE_STR, offsetof(struct new_user_body, password), 0, NULL},
    {"isHashed", WIRE_BOOL, offsetof(struct new_user_body, is_hashed), 0, NULL},
};

void api_post_user(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    struct user_body b = {.admin = -1, .active = -1, .remote = -1};
    struct new_user_body made = {0};
    JSON_OWN body = NULL;
    if (!api_decode(req, new_user_fields, DET_ARRAY_LEN(new_user_fields), &made, &body))
        return;
    struct user_change *u = change_make(sh, req, 0);
    if (wire_decode(made.user, "user", user_fields, DET_ARRAY_LEN(user_fields), &b, &err) < 0 ||
        change_fill(u, &b, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    if (u->edit.active < 0)
        u->edit.active = 0; /* protobuf's default */
    const char *password = made.password && *made.password ? made.password : NULL;
    if (name_ok(req, u->edit.username)) /* without a password nobody can log in as this user yet */
        change_begin(u, password, made.is_hashed == 1);
}

void api_patch_user(struct shell *sh, struct http_req *req)
{
    struct user_body b = {.admin = -1, .active = -1, .remote = -1};
    struct det_err err;
    int64_t id;
    json_t *body;
    if (!api_id(req, "userId", &id) ||
        !api_decode(req, user_fields, DET_ARRAY_LEN(user_fields), &b, &body))
        return;
    struct user_change *u = change_make(sh, req, id);
    if (!req->who.is_admin && (id != req->who.user_id || b.admin >= 0 || b.active >= 0 || b.agent ||
                               b.username || b.remote >= 0))
        http_fail(req, DET_EPERM, "only an administrator may change this of a user");
    else if (change_fill(u, &b, &err) < 0)
        http_fail_err(req, &err);
    else if (!b.username || name_ok(req, b.username))
        change_begin(u, b.password, b.is_hashed == 1);
    json_decref(body);
}

/* The body is the hashed password as a JSON string. */
void api_set_user_password(struct shell *sh, struct http_req *req)
{
    int64_t id;
    bool empty;
    if (!api_id(req, "userId", &id))
        return;
    if (!req->who.is_admin && id != req->who.user_id) {
        http_fail(req, DET_EPERM, "only an administrator may set another user's password");
        return;
    }
    JSON_OWN j = api_body_any(req, &empty);
    if (!j && !empty)
        return;
    if (!json_is_string(j))
        http_fail(req, DET_EINVAL, "body: expected the password as a JSON string");
    else
        change_begin(change_make(sh, req, id), json_string_value(j), true);
}
