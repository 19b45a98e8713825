/*
 * GET /checkpoints/{uuid}: a checkpoint as one archive. The master never touches another host's
 * store, so it serves what is in a shared_fs or directory store of its own host.
 */
#include "api_handlers.h"
#include "api_util.h"
#include "tgz.h"
#include "db_gc.h"
#include "fsx.h"
#include "shell.h"
#include "uuid.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIN_S = 600 };

#define CHECKPOINT_MAX ((size_t)512 << 20) /* above it the storage is the better way */

struct download {
    struct shell *sh;
    struct http_req *req;
    uv_work_t work;
    char uuid[UUID_STR_MAX], until[64]; /* until: of the pin that keeps it from being deleted */
    char *root;
    struct buf out;
    bool zip;
    int rc;
    struct det_err err;
};

struct packing {
    struct archive_writer *w;
    int dirfd;
    size_t total;
};

static int pack_file(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct packing *p = arg;
    struct buf data = BUF_INIT;
    int rc = 0;
    if (!is_dir)
        rc = fsx_read_file(p->dirfd, path, CHECKPOINT_MAX, &data, err);
    p->total += data.len;
    if (rc == 0 && p->total > CHECKPOINT_MAX)
        rc = det_fail(err, DET_ETOOBIG,
                      "the checkpoint is larger than %zu MiB: read it from its storage",
                      CHECKPOINT_MAX >> 20);
    det_cleanup(freep) char *name = det_strndup(path, strlen(path) - (is_dir ? 1 : 0));
    struct archive_file f = {.path = name,
                             .is_dir = is_dir,
                             .mode = is_dir ? 0755 : 0644,
                             .data = buf_str(&data),
                             .len = data.len};
    if (rc == 0)
        rc = archive_writer_add(p->w, &f, err);
    buf_finish(&data);
    return rc;
}

static void download_work(uv_work_t *work)
{
    struct download *d = container_of(work, struct download, work);
    det_cleanup(det_closep) int root = fsx_open_dir(AT_FDCWD, d->root, &d->err);
    det_cleanup(det_closep) int dir = root < 0 ? -1 : fsx_open_dir(root, d->uuid, &d->err);
    if (dir < 0) {
        d->rc = det_fail(&d->err, DET_EUNIMPL,
                         "checkpoint %s is not on the master's host; its storage is "
                         "%.300s on the agents' hosts",
                         d->uuid, d->root);
        return;
    }
    struct packing p = {.w = d->zip ? archive_writer_create_zip(&d->out)
                                    : archive_writer_create(&d->out),
                        .dirfd = dir};
    d->rc = fsx_walk(dir, pack_file, &p, &d->err);
    int end = archive_writer_end(p.w, d->rc == 0 ? &d->err : NULL);
    if (d->rc == 0)
        d->rc = end;
}

static void on_unpinned(void *arg, const struct db_result *r)
{
    /* a pin that could not be ended ends by itself */
}

static void download_free(struct download *d)
{
    db_ckpt_unpin(d->sh->db, d->uuid, d->until, on_unpinned, NULL);
    buf_finish(&d->out);
    free(d->root);
    free(d);
}

static void download_done(uv_work_t *work, int status)
{
    struct download *d = container_of(work, struct download, work);
    char disposition[80];
    snprintf(disposition, sizeof disposition, "attachment; filename=\"%s.%s\"", d->uuid,
             d->zip ? "zip" : "tgz");
    if (status < 0)
        http_fail(d->req, DET_EUNAVAIL, "%s", uv_strerror(status));
    else if (d->rc < 0)
        http_fail_err(d->req, &d->err);
    else
        http_reply_with(
            d->req,
            &(struct http_answer){.status = 200,
                                  .content_type = d->zip ? "application/zip" : "application/gzip",
                                  .disposition = disposition},
            buf_str(&d->out), d->out.len);
    download_free(d);
}

/* The directory that holds the store's checkpoints; NULL for stores without one. Caller frees. */
static char *store_root(const json_t *storage)
{
    const char *type = json_str(storage, "type", "");
    if (!strcmp(type, "directory"))
        return det_strdup(json_str(storage, "container_path", NULL));
    const char *host = json_str(storage, "host_path", NULL),
               *sub = json_str(storage, "storage_path", NULL);
    if (strcmp(type, "shared_fs") || !host)
        return NULL;
    if (sub && *sub == '/')
        return det_strdup(sub);
    return sub && *sub ? det_asprintf("%s/%s", host, sub) : det_strdup(host);
}

static bool wants(struct http_req *req, const char *type)
{
    const char *accept = http_header(req, "Accept");
    return accept && strstr(accept, type);
}

static void on_found(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(c->req, DET_ENOENT, "checkpoint %.60s not found, or deleted",
                  http_param(c->req, "checkpointUuid"));
        return;
    }
    JSON_OWN storage =
        json_parse(db_text(r, 0, PIN_STORAGE), db_text_len(r, 0, PIN_STORAGE), NULL);
    char *root = store_root(storage);
    if (!root) {
        http_fail(c->req, DET_EUNIMPL,
                  "checkpoints of this kind of storage are not served by the master");
        return;
    }
    struct download *d = det_zalloc(sizeof *d);
    d->sh = c->sh;
    d->req = c->req;
    d->root = root;
    snprintf(d->until, sizeof d->until, "%s", db_text(r, 0, PIN_UNTIL));
    d->zip = !wants(c->req, "application/gzip");
    memcpy(d->uuid, http_param(c->req, "checkpointUuid"), sizeof d->uuid);
    if (uv_queue_work(c->sh->loop, &d->work, download_work, download_done) < 0) {
        http_fail(c->req, DET_EUNAVAIL, "no worker thread");
        download_free(d);
    }
}

void api_download_checkpoint(struct shell *sh, struct http_req *req)
{
    const char *uuid = http_param(req, "checkpointUuid");
    if (!uuid_is_valid(uuid))
        http_fail(req, DET_EINVAL, "\"%.60s\" is not a UUID", uuid);
    else if (!wants(req, "application/gzip") && !wants(req, "application/zip"))
        http_reply(req, 415,
                   "{\"message\":\"Accept: application/gzip or application/zip is needed\"}");
    else
        db_ckpt_pin(sh->db, uuid, PIN_S, on_found, api_call(sh, req));
}
