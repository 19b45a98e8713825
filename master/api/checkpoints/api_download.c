/*
 * GET /checkpoints/{uuid}: a checkpoint as one archive. The master never touches another host's
 * store, so it serves what is in a shared_fs or directory store of its own host. A thread packs it
 * while it is sent: of a checkpoint of any size the master holds READY_BYTES.
 */
#include "api_handlers.h"
#include "api_util.h"
#include "tgz.h"
#include "db_gc.h"
#include "fsx.h"
#include "log.h"
#include "shell.h"
#include "uuid.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIN_S = 3600, /* at most, while it is sent; collected meanwhile, the rest of it is missing */
    READY_BYTES = 1 << 20,
    DOWNLOADS_MAX = 16 /* at a time */
};

struct download {
    struct shell *sh;
    struct http_req *req; /* NULL once it is answered */
    struct http_stream *stream;
    char uuid[UUID_STR_MAX], until[64]; /* until: of the pin that keeps it from being deleted */
    char *root;
    bool zip;
    bool failed; /* the thread's alone: what ends the archive is not wanted */
    uv_thread_t thread;
    uv_async_t async; /* something changed below */
    uv_mutex_t lock;  /* of all below */
    uv_cond_t room;
    struct buf ready; /* packed, not yet sent */
    bool done, cut;   /* by the thread; nobody takes more */
    int rc;
    struct det_err err;
};

/* ---- the thread ---- */

struct packing {
    struct archive_writer *w;
    int dirfd;
};

static int pack_file(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct packing *p = arg;
    det_cleanup(freep) char *name = det_strndup(path, strlen(path) - (is_dir ? 1 : 0));
    det_cleanup(det_closep) int fd =
        is_dir ? -1 : fsx_open_beneath(p->dirfd, path, O_RDONLY, 0, err);
    struct stat st = {0};
    if (!is_dir && (fd < 0 || fstat(fd, &st) < 0))
        return fd < 0 ? fd : det_fail_errno(err, DET_EIO, errno, "%s", path);
    struct archive_file f = {
        .path = name, .is_dir = is_dir, .mode = is_dir ? 0755 : 0644, .len = (size_t)st.st_size};
    return is_dir ? archive_writer_add(p->w, &f, err) : archive_writer_add_fd(p->w, &f, fd, err);
}

/* Waits for room. */
static int on_packed(void *arg, const void *p, size_t n)
{
    struct download *d = arg;
    uv_mutex_lock(&d->lock);
    while (d->ready.len >= READY_BYTES && !d->cut)
        uv_cond_wait(&d->room, &d->lock);
    bool goes_on = !d->cut && !d->failed;
    if (goes_on)
        buf_add(&d->ready, p, n);
    uv_mutex_unlock(&d->lock);
    uv_async_send(&d->async);
    return goes_on ? 0 : -1;
}

static int pack_checkpoint(struct download *d, struct det_err *err)
{
    det_cleanup(det_closep) int root = fsx_open_dir(AT_FDCWD, d->root, err);
    det_cleanup(det_closep) int dir = root < 0 ? -1 : fsx_open_dir(root, d->uuid, err);
    if (dir < 0)
        return det_fail(err, DET_EUNIMPL,
                        "checkpoint %s is not on the master's host; its storage is "
                        "%.300s on the agents' hosts",
                        d->uuid, d->root);
    struct packing p = {.w = archive_writer_create_to(d->zip, on_packed, d), .dirfd = dir};
    int rc = fsx_walk(dir, pack_file, &p, err);
    d->failed = rc < 0;
    int end = archive_writer_end(p.w, rc == 0 ? err : NULL);
    return rc < 0 ? rc : end;
}

static void download_run(void *arg)
{
    struct download *d = arg;
    struct det_err err = {0};
    int rc = pack_checkpoint(d, &err);
    uv_mutex_lock(&d->lock);
    d->rc = rc;
    d->err = err;
    d->done = true;
    uv_mutex_unlock(&d->lock);
    uv_async_send(&d->async);
}

/* ---- the loop ---- */

static void on_unpinned(void *arg, const struct db_result *r)
{
    /* a pin that could not be ended ends by itself */
}

static void download_free(struct download *d)
{
    d->sh->downloads--;
    db_ckpt_unpin(d->sh->db, d->uuid, d->until, on_unpinned, NULL);
    uv_mutex_destroy(&d->lock);
    uv_cond_destroy(&d->room);
    buf_finish(&d->ready);
    free(d->root);
    free(d);
}

static void on_closed(uv_handle_t *h)
{
    download_free(h->data);
}

static void download_end(struct download *d)
{
    uv_thread_join(&d->thread);
    if (d->req)
        http_fail_err(d->req, &d->err);
    else if (d->rc == 0)
        http_stream_end(d->stream);
    else
        http_stream_cut(d->stream);
    if (!d->req && d->rc < 0 && !d->cut)
        log_warning("the download of checkpoint %s ended in the middle: %s", d->uuid, d->err.text);
    uv_close((uv_handle_t *)&d->async, on_closed);
}

static void send_packed(void *arg);

static void begin_answer(struct download *d)
{
    char disposition[80];
    snprintf(disposition, sizeof disposition, "attachment; filename=\"%s.%s\"", d->uuid,
             d->zip ? "zip" : "tgz");
    const struct http_answer a = {.content_type = d->zip ? "application/zip" : "application/gzip",
                                  .disposition = disposition};
    struct http_req *req = d->req;
    d->req = NULL;
    d->stream = http_stream_begin_as(req, &a, send_packed, d);
}

/* What is packed goes on its way, if there is room in the stream. */
static void send_packed(void *arg)
{
    struct download *d = arg;
    struct buf ready = BUF_INIT;
    if (uv_is_closing((uv_handle_t *)&d->async))
        return;
    uv_mutex_lock(&d->lock);
    if (d->req && (d->ready.len > 0 || (d->done && d->rc == 0)))
        begin_answer(d);
    d->cut = d->stream && http_stream_is_gone(d->stream);
    if (d->stream && (d->cut || !http_stream_is_full(d->stream))) {
        ready = d->ready;
        d->ready = (struct buf)BUF_INIT;
        uv_cond_signal(&d->room);
    }
    bool ends = d->done && d->ready.len == 0;
    uv_mutex_unlock(&d->lock);
    if (d->stream)
        http_stream_write(d->stream, ready.p, ready.len);
    buf_finish(&ready);
    if (ends)
        download_end(d);
}

static void on_async(uv_async_t *a)
{
    send_packed(a->data);
}

static bool accepts_type(struct http_req *req, const char *type)
{
    const char *accept = http_header(req, "Accept");
    return accept && strstr(accept, type);
}

/* Takes root. */
static void download_begin(struct api_call *c, char *root, const char *until)
{
    const char *uuid = http_param(c->req, "checkpointUuid");
    if (c->sh->downloads >= DOWNLOADS_MAX) {
        db_ckpt_unpin(c->sh->db, uuid, until, on_unpinned, NULL);
        http_fail(c->req, DET_EUNAVAIL,
                  "%d downloads of checkpoints are under way; try again later", DOWNLOADS_MAX);
        free(root);
        return;
    }
    struct download *d = det_zalloc(sizeof *d);
    *d = (struct download){.sh = c->sh, .req = c->req, .root = root};
    snprintf(d->until, sizeof d->until, "%s", until);
    d->zip = !accepts_type(c->req, "application/gzip");
    memcpy(d->uuid, uuid, sizeof d->uuid);
    d->sh->downloads++;
    uv_mutex_init(&d->lock);
    uv_cond_init(&d->room);
    uv_async_init(c->sh->loop, &d->async, on_async);
    d->async.data = d;
    if (uv_thread_create(&d->thread, download_run, d) < 0) {
        http_fail(c->req, DET_EUNAVAIL, "no thread for the download");
        uv_close((uv_handle_t *)&d->async, on_closed);
    }
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
    JSON_OWN storage = json_parse(db_text(r, 0, PIN_STORAGE), db_text_len(r, 0, PIN_STORAGE), NULL);
    char *root = store_root(storage);
    if (!root) {
        db_ckpt_unpin(c->sh->db, http_param(c->req, "checkpointUuid"), db_text(r, 0, PIN_UNTIL),
                      on_unpinned, NULL);
        http_fail(c->req, DET_EUNIMPL,
                  "checkpoints of this kind of storage are not served by the master");
        return;
    }
    download_begin(c, root, db_text(r, 0, PIN_UNTIL));
}

void api_download_checkpoint(struct shell *sh, struct http_req *req)
{
    const char *uuid = http_param(req, "checkpointUuid");
    if (!uuid_is_valid(uuid))
        http_fail(req, DET_EINVAL, "\"%.60s\" is not a UUID", uuid);
    else if (!accepts_type(req, "application/gzip") && !accepts_type(req, "application/zip"))
        http_reply(req, 415,
                   "{\"message\":\"Accept: application/gzip or application/zip is needed\"}");
    else
        db_ckpt_pin(sh->db, uuid, PIN_S, on_found, api_call(sh, req));
}
