/* The writer: its files, and what earlier ones hold. */
#include "tb.h"

#include "clk.h"
#include "fsx.h"
#include "hash.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GATHER_BYTES ((size_t)64 << 10)
#define FILE_MAX     ((size_t)1 << 30) /* of an earlier event file that is read */
#define HOST_MAX     64

void tb_fail(struct det_tensorboard *w, int code, const char *fmt, ...)
{
    char text[DET_ERR_TEXT_MAX];
    va_list ap;
    if (w->err.code != 0)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    det_fail(&w->err, code, "%s", text);
}

int det_tensorboard_error(const struct det_tensorboard *w, struct det_err *err)
{
    return w && w->err.code != 0 ? det_fail_as(err, w->err.code, &w->err) : 0;
}

const char *det_tensorboard_dir(const struct det_tensorboard *w)
{
    return w ? w->dir : NULL;
}

/* ---- what earlier files hold ---- */

static uint64_t tb_key(const char *dir, const char *tag, size_t tag_bytes, int64_t step)
{
    uint64_t parts[3] = {hash_fnv64(dir, strlen(dir)), hash_fnv64(tag, tag_bytes), (uint64_t)step};
    return hash_fnv64(parts, sizeof parts);
}

struct remembering {
    struct det_tensorboard *w;
    int fd;
    char *dir; /* of the file being read, beneath the writer's */
};

static void on_tag(void *arg, const char *tag, size_t tag_bytes, int64_t step)
{
    struct remembering *r = arg;
    imap_put(r->w->written, tb_key(r->dir, tag, tag_bytes, step), r->w);
}

static int on_file(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct remembering *r = arg;
    det_cleanup(buf_finish) struct buf data = BUF_INIT;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (is_dir || !strstr(name, "tfevents") || bytes > FILE_MAX)
        return 0;
    int rc = fsx_read_file(r->fd, path, FILE_MAX, &data, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *dir = det_strndup(path, slash ? (size_t)(slash - path) : 0);
    r->dir = dir;
    det_ignore(tfevents_read(buf_str(&data), data.len, on_tag, r, NULL),
               "what is whole before the damage counts");
    return 0;
}

int tb_remember(struct det_tensorboard *w, const char *dir, struct det_err *err)
{
    if (!w->written)
        w->written = imap_create();
    det_cleanup(det_closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : det_fail_errno(err, DET_EIO, errno, "open %s", dir);
    struct remembering r = {.w = w, .fd = fd};
    return fsx_walk(fd, on_file, &r, err);
}

bool tb_wanted(struct det_tensorboard *w, const char *dir, const char *tag, int64_t step,
               struct tfevents_value *ret_v)
{
    struct det_err err;
    if (!w || w->err.code != 0)
        return false;
    if (!tag || !*tag) {
        tb_fail(w, DET_EINVAL, "TensorBoard: a value needs a tag");
        return false;
    }
    if (!w->written && tb_remember(w, w->dir, &err) < 0)
        tb_fail(w, err.code, "%s", err.text);
    *ret_v = (struct tfevents_value){(double)clk_wall_us() / 1e6, step, tag};
    return w->err.code == 0 && !imap_get(w->written, tb_key(dir, tag, strlen(tag), step));
}

/* ---- files ---- */

/* events.out.tfevents.<seconds>.<host>.<pid>.<microseconds>. Files of several runs come to lie side
 * by side in a store, and each run may have the same pid: in a namespace of its own. */
static int create_file(struct tb_file *f, const char *dir, struct det_err *err)
{
    char host[HOST_MAX] = "localhost";
    gethostname(host, sizeof host - 1);
    do {
        int64_t us = clk_wall_us();
        free(f->path);
        f->path = det_asprintf("%s/events.out.tfevents.%" PRId64 ".%s.%d.%06d", dir, us / 1000000,
                               host, (int)getpid(), (int)(us % 1000000));
        f->fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    } while (f->fd < 0 && errno == EEXIST);
    return f->fd < 0 ? det_fail_errno(err, DET_EIO, errno, "create %s", f->path) : 0;
}

static int open_file(struct det_tensorboard *w, struct tb_file *f, struct det_err *err)
{
    det_cleanup(freep) char *dir =
        *f->dir ? det_asprintf("%s/%s", w->dir, f->dir) : det_strdup(w->dir);
    int rc = fsx_mkdirs(AT_FDCWD, dir, 0755, err);
    if (rc == 0)
        rc = create_file(f, dir, err);
    if (rc < 0)
        return rc;
    f->bytes = 0;
    tfevents_version(&f->out, (double)clk_wall_us() / 1e6);
    return 0;
}

static struct tb_file *find_file(struct det_tensorboard *w, const char *dir)
{
    for (size_t i = 0; i < w->files.n; i++)
        if (strcmp(w->files.v[i]->dir, dir) == 0)
            return w->files.v[i];
    struct tb_file *f = det_zalloc(sizeof *f);
    f->dir = det_strdup(dir);
    f->fd = -1;
    vec_push(&w->files, f);
    return f;
}

struct tb_file *tb_file(struct det_tensorboard *w, const char *dir)
{
    struct det_err err;
    struct tb_file *f = find_file(w, dir);
    if (!f->path && open_file(w, f, &err) < 0) {
        tb_fail(w, err.code, "%s", err.text);
        return NULL;
    }
    return f;
}

/* A record that went out in part is taken back, so that the file stays whole. */
static void write_out(struct det_tensorboard *w, struct tb_file *f)
{
    struct det_err err;
    if (f->out.len == 0 || w->err.code != 0)
        return;
    if (fsx_write_all(f->fd, f->out.p, f->out.len, &err) < 0) {
        if (ftruncate(f->fd, f->bytes) < 0)
            det_wrap(&err, err.code, "(and its last record is cut short)");
        tb_fail(w, err.code, "%s: %s", f->path, err.text);
    }
    f->bytes += (int64_t)f->out.len;
    buf_clear(&f->out);
}

void tb_wrote(struct det_tensorboard *w, struct tb_file *f)
{
    if (f->out.len >= GATHER_BYTES)
        write_out(w, f);
}

void det_tensorboard_flush(struct det_tensorboard *w)
{
    for (size_t i = 0; w && i < w->files.n; i++)
        write_out(w, w->files.v[i]);
}

void det_tensorboard_close(struct det_tensorboard *w)
{
    det_tensorboard_flush(w);
    for (size_t i = 0; w && i < w->files.n; i++) {
        struct tb_file *f = w->files.v[i];
        det_closep(&f->fd);
        free(det_take(f->path));
        buf_clear(&f->out);
    }
}

/* ---- life ---- */

struct det_tensorboard *det_tensorboard_create(const char *dir, struct det_err *err)
{
    if (!dir || !*dir) {
        det_fail(err, DET_EINVAL, "det_tensorboard_create: a directory is needed");
        return NULL;
    }
    struct det_tensorboard *w = det_zalloc(sizeof *w);
    w->dir = det_strdup(dir);
    return w;
}

void det_tensorboard_destroy(struct det_tensorboard *w)
{
    if (!w)
        return;
    det_tensorboard_close(w);
    for (size_t i = 0; i < w->files.n; i++) {
        buf_finish(&w->files.v[i]->out);
        free(w->files.v[i]->dir);
        free(w->files.v[i]);
    }
    vec_free(&w->files);
    imap_destroy(w->written);
    free(w->dir);
    free(w);
}
