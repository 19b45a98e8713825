/* An experiment's model definition as a tree, and one file of it. */
#include "api_handlers.h"
#include "api_util.h"
#include "tgz.h"
#include "b64.h"
#include "clk.h"
#include "db_exp_read.h"
#include "map.h"
#include "shell.h"
#include "slow.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UNPACKED_MAX ((size_t)1 << 30)
#define FOUND        1

/* The archive of a row; false: answered. */
static bool model_def(struct http_req *req, const struct db_result *r, struct buf *tgz)
{
    struct det_err err;
    if (api_failed(req, r))
        return false;
    if (db_rows(r) == 0) {
        api_not_found(req);
        return false;
    }
    if (db_bytes(r, 0, 0, tgz, &err) == 0)
        return true;
    http_fail_err(req, &err);
    return false;
}

/* ---- tree ---- */

/* While it is made. Folders are found by their paths: one may have very many beside it. */
struct tree {
    json_t *files;
    struct map *folders; /* path -> its node in files */
};

/* The node of a folder below files, made when it is not there. */
static json_t *ensure_folder(struct tree *t, json_t *files, const char *path, const char *name)
{
    json_t *node = map_get(t->folders, path);
    if (node)
        return node;
    node = json_make("{s:s,s:s,s:n,s:i,s:b,s:s,s:[]}", "path", path, "name", name, "modifiedTime",
                     "contentLength", 0, "isDir", 1, "contentType", "", "files");
    json_array_append_new(files, node);
    map_put(t->folders, path, node);
    return node;
}

static const char *content_type(const char *name)
{
    static const struct {
        const char *end, *type;
    } types[] = {{".py", "text/x-python; charset=utf-8"}, {".yaml", "text/yaml; charset=utf-8"},
                 {".yml", "text/yaml; charset=utf-8"},    {".json", "application/json"},
                 {".md", "text/markdown; charset=utf-8"}, {".c", "text/x-c; charset=utf-8"},
                 {".h", "text/x-c; charset=utf-8"},       {".sh", "text/x-sh; charset=utf-8"},
                 {".txt", "text/plain; charset=utf-8"}};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < DET_ARRAY_LEN(types); i++)
        if (!strcmp(dot, types[i].end))
            return types[i].type;
    return "application/octet-stream";
}

static int tree_add(void *arg, const struct archive_file *f, struct det_err *err)
{
    struct tree *t = arg;
    json_t *files = t->files, *node;
    char time[CLK_RFC3339_MAX];
    det_cleanup(freep) char *path = det_strdup(f->path);
    char *name = path;
    for (char *slash = strchr(name, '/'); slash; slash = strchr(name, '/')) {
        *slash = 0;
        node = ensure_folder(t, files, path, name);
        files = json_arr(node, "files");
        *slash = '/';
        name = slash + 1;
    }
    if (!*name)
        return 0;
    clk_format(f->mtime_s * 1000000, time);
    if (f->is_dir) {
        node = ensure_folder(t, files, path, name);
    } else {
        node = json_make("{s:s,s:s,s:n,s:I,s:b,s:s,s:[]}", "path", path, "name", name,
                         "modifiedTime", "contentLength", (json_int_t)f->len, "isDir", 0,
                         "contentType", content_type(name), "files");
        json_array_append_new(files, node);
    }
    json_set(node, "modifiedTime", json_string(time));
    return 0;
}

/* ---- unpacking, on a worker thread: an archive may be large ---- */

struct unpack {
    struct slow_job job;
    struct http_req *req;
    struct buf tgz, found;
    json_t *files;    /* of a tree; else one file is looked for: */
    const char *path; /* in the request's memory */
    bool raw;         /* the bytes themselves, else {"file": base64} */
    int rc;
    struct det_err err;
};

static int file_find(void *arg, const struct archive_file *f, struct det_err *err)
{
    struct unpack *u = arg;
    if (f->is_dir || strcmp(f->path, u->path))
        return 0;
    buf_add(&u->found, f->data, f->len);
    return FOUND;
}

static int tree_make(struct unpack *u)
{
    struct tree t = {.files = u->files, .folders = map_create()};
    int rc = archive_read(u->tgz.p, u->tgz.len, UNPACKED_MAX, tree_add, &t, &u->err);
    map_destroy(t.folders);
    return rc;
}

static void unpack_work(struct slow_job *j)
{
    struct unpack *u = container_of(j, struct unpack, job);
    if (u->tgz.len == 0)
        return;
    u->rc = u->files ? tree_make(u)
                     : archive_read(u->tgz.p, u->tgz.len, UNPACKED_MAX, file_find, u, &u->err);
}

static void file_answer(struct unpack *u)
{
    if (u->raw) {
        http_reply_with(u->req,
                        &(struct http_answer){.status = 200,
                                              .content_type = "application/octet-stream",
                                              .disposition = "attachment"},
                        buf_str(&u->found), u->found.len);
        return;
    }
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"file\":\"");
    b64_encode(&out, buf_str(&u->found), u->found.len);
    buf_add_str(&out, "\"}");
    http_reply_buf(u->req, 200, &out);
    buf_finish(&out);
}

static void unpack_free(struct unpack *u)
{
    json_decref(u->files);
    buf_finish(&u->found);
    buf_finish(&u->tgz);
    free(u);
}

static void unpack_done(struct slow_job *j, int status)
{
    struct unpack *u = container_of(j, struct unpack, job);
    if (u->rc < 0)
        http_fail_err(u->req, &u->err);
    else if (u->files)
        api_reply_json(u->req, json_make("{s:O}", "files", u->files));
    else if (u->rc == FOUND)
        file_answer(u);
    else
        http_fail(u->req, DET_ENOENT, "file \"%.200s\" not found in the model definition", u->path);
    unpack_free(u);
}

struct file_call {
    struct shell *sh;
    struct http_req *req;
    const char *path; /* NULL: the tree */
    bool raw;
};

static void on_model_def(void *arg, const struct db_result *r)
{
    struct file_call *c = arg;
    struct unpack *u = det_zalloc(sizeof *u);
    *u = (struct unpack){.req = c->req, .path = c->path, .raw = c->raw};
    if (!c->path)
        u->files = json_array();
    u->job = (struct slow_job){.work = unpack_work, .done = unpack_done};
    if (model_def(c->req, r, &u->tgz))
        slow_do_now(c->sh->loop, &u->job);
    else
        unpack_free(u);
}

static void files_get(struct shell *sh, struct http_req *req, const char *path, bool raw)
{
    struct file_call *c = http_mem(req, sizeof *c);
    int64_t id;
    *c = (struct file_call){.sh = sh, .req = req, .path = path, .raw = raw};
    if (api_id(req, "experimentId", &id))
        db_exp_model_def(sh->db, id, on_model_def, c);
}

void api_get_model_def_tree(struct shell *sh, struct http_req *req)
{
    files_get(sh, req, NULL, false);
}

static void file_get(struct shell *sh, struct http_req *req, const char *path, bool raw)
{
    if (!path || !*path)
        http_fail(req, DET_EINVAL, "path is required");
    else
        files_get(sh, req, path, raw);
}

void api_get_model_def_file(struct shell *sh, struct http_req *req)
{
    struct {
        const char *path;
    } b = {""};
    static const struct wire_field fields[] = {{"path", WIRE_STR, 0, 0, NULL}};
    json_t *body;
    if (!api_decode(req, fields, 1, &b, &body))
        return;
    char *path = http_strdup(req, b.path);
    json_decref(body);
    file_get(sh, req, path, false);
}

void api_download_file(struct shell *sh, struct http_req *req)
{
    file_get(sh, req, http_query(req, "path"), true);
}
