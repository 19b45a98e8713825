#include "comm_device.h"

#include "clk.h"
#include "find.h"
#include "mem.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPEN_MS 60000

struct comm_device {
    const struct comm_device_type *type;
    void *self;
    struct comm *control;
    struct comm_device_watch watch;
};

/* Caller frees; NULL: none. */
static char *module_path(void)
{
    static const char *const places[] = {"det_comm_nccl.so", "../comm/det_comm_nccl.so",
                                         "../lib/det/det_comm_nccl.so",
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
        return det_fail_as(err, rc, &e);
    return cannot > 0 ? det_fail(err, DET_EDEVICE, "another rank cannot open its device") : 0;
}

/* NCCL takes one rank a device. All ranks see the same uuids, and come to the same answer. */
static int check_shared(const struct comm_blobs *uuids, struct det_err *err)
{
    for (int i = 0; i < uuids->n; i++)
        for (int k = 0; k < i; k++)
            if (memcmp(uuids->v[i], uuids->v[k], COMM_DEVICE_UUID) == 0)
                return det_fail(err, DET_EUNAVAIL,
                                "ranks %d and %d share a device, which NCCL "
                                "does not take",
                                k, i);
    return 0;
}

static int check_devices(struct comm *control, const struct comm_device_type *t, int device,
                         struct det_err *err)
{
    unsigned char uuid[COMM_DEVICE_UUID] = {0};
    det_cleanup(comm_blobs_finish) struct comm_blobs all = {0};
    int rc = all_can(control, t->device_uuid(device, uuid, err), err);
    if (rc == 0)
        rc = comm_allgather(control, uuid, sizeof uuid, &all, err);
    return rc < 0 ? rc : check_shared(&all, err);
}

/* Rank 0's id, to all. */
static int share_id(struct comm *control, const struct comm_device_type *t, struct id *id,
                    struct det_err *err)
{
    size_t bytes = 0;
    if (comm_rank(control) == 0) {
        id->rc = t->make_id(id->v, &bytes, err);
        id->bytes = (uint32_t)bytes;
    }
    int rc = comm_broadcast(control, id, sizeof *id, 0, err);
    if (rc < 0 || id->rc == 0)
        return rc;
    return comm_rank(control) == 0
               ? id->rc
               : det_fail(err, id->rc, "rank 0 could not begin device communication");
}

void comm_device_close(struct comm_device *d)
{
    if (!d)
        return;
    if (d->self)
        d->type->close(d->self);
    free(d);
}

/* A peer that dies before it has joined is missed by nobody else: NCCL waits for it. */
static int look_for_peers(void *control, int timeout_ms, struct det_err *err)
{
    return comm_watch(control, timeout_ms, err);
}

/* What this rank could not do is told to those that wait for it to join. */
static int join_peers(struct comm_device *d, const struct id *id, int device, struct det_err *err)
{
    struct comm *control = d->control;
    struct det_err local;
    err = err ? err : &local;
    int rc = d->type->open(id->v, comm_rank(control), comm_size(control), device, OPEN_MS,
                           &d->watch, &d->self, err);
    if (rc < 0 && rc != DET_EPEER)
        comm_tell(control, err->text);
    return all_can(control, rc, err);
}

int comm_device_open(struct comm *control, int device, struct comm_device **ret,
                     struct det_err *err)
{
    struct id id = {0};
    const struct comm_device_type *t = find_module(err);
    int rc = all_can(control, t ? 0 : DET_EUNAVAIL, err);
    if (rc == 0)
        rc = check_devices(control, t, device, err);
    if (rc == 0)
        rc = share_id(control, t, &id, err);
    if (rc < 0)
        return rc;
    struct comm_device *d = det_zalloc(sizeof *d);
    *d = (struct comm_device){.type = t, .control = control, .watch = {look_for_peers, control}};
    rc = join_peers(d, &id, device, err);
    if (rc < 0) {
        comm_device_close(d);
        return det_wrap(err, rc, "rank %d, device %d", comm_rank(control), device);
    }
    *ret = d;
    return 0;
}

int comm_device_allreduce_mean_f32(struct comm_device *d, float *v, size_t n, void *stream,
                                   struct det_err *err)
{
    int timeout_ms = comm_timeout_ms(d->control);
    return n ? d->type->allreduce_mean_f32(d->self, v, n, stream, timeout_ms, err) : 0;
}

/* A transport within a host sees nothing of a peer that died; the control connections do. */
static int look_around(struct comm_device *d, int64_t deadline_ms, struct det_err *err)
{
    int64_t left_ms = deadline_ms - clk_mono_ms();
    if (left_ms <= 0)
        return det_fail(err, DET_ETIMEOUT, "NCCL: nothing of a peer for %d ms",
                        comm_timeout_ms(d->control));
    return comm_watch(d->control, (int)left_ms, err);
}

/* Spins for a moment, since most waits are short; then the stream itself says when it is done. */
int comm_device_wait(struct comm_device *d, void *stream, struct det_err *err)
{
    struct det_err local;
    err = err ? err : &local;
    int64_t deadline_ms = clk_mono_ms() + comm_timeout_ms(d->control);
    int64_t watch_ms = clk_mono_ms() + COMM_DEVICE_WATCH_MS;
    int rc = 0;
    for (int64_t turn = 0; (rc = d->type->poll(d->self, stream, err)) == 0; turn++) {
        if (turn < 1000)
            continue;
        if (clk_mono_ms() >= watch_ms && (rc = look_around(d, deadline_ms, err)) < 0) {
            d->type->abort(d->self, err);
            break;
        }
        watch_ms = clk_mono_ms() >= watch_ms ? clk_mono_ms() + COMM_DEVICE_WATCH_MS : watch_ms;
        d->type->await(d->self, stream, COMM_DEVICE_WATCH_MS);
    }
    return rc < 0 ? rc : 0;
}
