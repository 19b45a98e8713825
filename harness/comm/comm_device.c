#include "comm_device.h"

#include "find.h"
#include "mem.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define OPEN_MS 60000

struct comm_device {
    const struct comm_device_type *type;
    void *self;
};

/* Caller frees; NULL: none. */
static char *module_path(void)
{
    static const char *const places[] = {
        "det_comm_nccl.so", "../comm/det_comm_nccl.so", "../lib/det/det_comm_nccl.so",
        "../lib/x86_64-linux-gnu/det/det_comm_nccl.so"};
    const char *given = getenv("DET_COMM_DIR");
    det_cleanup(freep) char *own =
        given && *given ? det_asprintf("%s/det_comm_nccl.so", given) : NULL;
    if (own)
        return access(own, R_OK) == 0 ? det_take(own) : NULL;
    char *path = NULL;
    for (size_t i = 0; !path && i < DET_ARRAY_LEN(places); i++)
        path = find_beside(places[i], R_OK);
    return path;
}

static const struct comm_device_type *find_module(struct det_err *err)
{
    det_cleanup(freep) char *path = module_path();
    void *module = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL; /* stays: its table is in
                                                                       * it */
    const struct comm_device_type *t = module ? dlsym(module, COMM_DEVICE_SYMBOL) : NULL;
    if (t && t->version == COMM_DEVICE_VERSION)
        return t;
    if (!path)
        det_fail(err, DET_EUNAVAIL,
                 "there is no det_comm_nccl.so: build with the CUDA toolkit, or set DET_COMM_DIR");
    else if (!module)
        det_fail(err, DET_EUNAVAIL, "load %s: %s", path, dlerror());
    else
        det_fail(err, DET_EINVAL, "%s is not of version %d: build it with this program", path,
                 COMM_DEVICE_VERSION);
    return NULL;
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
