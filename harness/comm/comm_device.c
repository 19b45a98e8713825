#include "comm_device.h"

#include "buf.h"
#include "mem.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPEN_MS 60000

struct comm_device {
    const struct comm_device_type *type;
    void *self;
};

static const struct comm_device_type *try_module(const char *dir, const char *sub,
                                                 struct det_err *err)
{
    det_cleanup(buf_finish) struct buf path = BUF_INIT;
    buf_addf(&path, "%s%s/det_comm_nccl.so", dir, sub);
    if (access(buf_str(&path), R_OK) < 0)
        return NULL;
    void *module = dlopen(buf_str(&path), RTLD_NOW | RTLD_LOCAL); /* stays: its table lives in it */
    if (!module) {
        det_fail(err, DET_EUNAVAIL, "load %s: %s", buf_str(&path), dlerror());
        return NULL;
    }
    const struct comm_device_type *t = dlsym(module, COMM_DEVICE_SYMBOL);
    if (t && t->version == COMM_DEVICE_VERSION)
        return t;
    det_fail(err, DET_EINVAL, "%s is not of version %d: build it with this program",
             buf_str(&path), COMM_DEVICE_VERSION);
    return NULL;
}

static const struct comm_device_type *find_module(struct det_err *err)
{
    char self[PATH_MAX];
    const char *given = getenv("DET_COMM_DIR");
    det_fail(err, DET_EUNAVAIL,
             "there is no det_comm_nccl.so: build with the CUDA toolkit, or set DET_COMM_DIR");
    if (given && *given)
        return try_module(given, "", err);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    static const char *const subs[] = {"", "/../comm", "/../lib/det",
                                       "/../lib/x86_64-linux-gnu/det"};
    const struct comm_device_type *t = NULL;
    for (size_t i = 0; !t && i < DET_ARRAY_LEN(subs); i++)
        t = try_module(self, subs[i], err);
    return t;
}

struct id {
    int32_t rc;
    uint32_t bytes;
    unsigned char v[COMM_DEVICE_ID_MAX];
};

/* All ranks say whether they can; if one cannot, none goes on (NCCL would wait for it). */
static int all_can(struct comm *control, int mine, struct det_err *err)
{
    float cannot = mine < 0;
    struct det_err e = {0};
    int rc = comm_allreduce_mean_f32(control, &cannot, 1, &e);
    if (mine < 0)
        return mine;
    if (rc < 0)
        return det_fail(err, rc, "%s", e.text);
    return cannot > 0 ? det_fail(err, DET_EDEVICE, "another rank cannot open its device") : 0;
}

int comm_device_open(struct comm *control, int device, struct comm_device **ret,
                     struct det_err *err)
{
    struct id id = {0};
    size_t bytes = 0;
    const struct comm_device_type *t = find_module(err);
    int rc = all_can(control, t ? 0 : DET_EUNAVAIL, err);
    if (rc < 0)
        return rc;
    if (comm_rank(control) == 0) {
        id.rc = t->make_id(id.v, &bytes, err);
        id.bytes = (uint32_t)bytes;
    }
    rc = comm_broadcast(control, &id, sizeof id, 0, err);
    if (rc < 0 || id.rc < 0)
        return rc < 0 ? rc : comm_rank(control) == 0 ? id.rc
                           : det_fail(err, id.rc, "rank 0 could not begin device communication");
    void *self = NULL;
    rc = t->open(id.v, comm_rank(control), comm_size(control), device, OPEN_MS, &self, err);
    rc = all_can(control, rc, err);
    if (rc < 0) {
        if (self)
            t->close(self);
        return det_wrap(err, rc, "rank %d, device %d", comm_rank(control), device);
    }
    struct comm_device *d = det_zalloc(sizeof *d);
    *d = (struct comm_device){t, self};
    *ret = d;
    return 0;
}

void comm_device_close(struct comm_device *d)
{
    if (!d)
        return;
    d->type->close(d->self);
    free(d);
}

int comm_device_allreduce_mean_f32(struct comm_device *d, float *v, size_t n, void *stream,
                                   struct det_err *err)
{
    return n ? d->type->allreduce_mean_f32(d->self, v, n, stream, err) : 0;
}

int comm_device_wait(struct comm_device *d, void *stream, int timeout_ms, struct det_err *err)
{
    return d->type->wait(d->self, stream, timeout_ms, err);
}
