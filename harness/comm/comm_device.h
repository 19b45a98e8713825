/*
 * Collectives on device memory: gradients that never leave the GPUs. NCCL is a module of its own
 * (det_comm_nccl.so, in DET_COMM_DIR, next to the executable, or in ../lib/det of it), loaded when
 * a trial runs on several GPUs; nothing else depends on CUDA.
 *
 * Calls are put on the caller's stream and return at once; comm_device_wait() waits for the stream,
 * and only it can tell that a peer died or hangs. After such a failure the object is dead.
 */
#ifndef COMM_DEVICE_H
#define COMM_DEVICE_H

#include "comm.h"

/* What the module exports under the name COMM_DEVICE_SYMBOL. */
#define COMM_DEVICE_SYMBOL   "det_comm_device"
#define COMM_DEVICE_VERSION  5
#define COMM_DEVICE_ID_MAX   256
#define COMM_DEVICE_UUID     16
#define COMM_DEVICE_WATCH_MS 200 /* between two looks at the peers */

/* Asked every COMM_DEVICE_WATCH_MS while a rank waits for its peers: below 0 they will not come,
 * and *err says why.
 * timeout_ms: as long as the rank may still wait. */
struct comm_device_watch {
    int (*look)(void *arg, int timeout_ms, struct det_err *err);
    void *arg;
};

struct comm_device_type {
    int version;
    const char *name; /* "nccl" */
    /* What no other device has: COMM_DEVICE_UUID bytes. */
    int (*device_uuid)(int device, void *uuid, struct det_err *err);
    /* Rank 0 makes an id that all use: id_bytes of it, at most COMM_DEVICE_ID_MAX. */
    int (*make_id)(void *id, size_t *ret_bytes, struct det_err *err);
    /* Connects to all peers within timeout_ms; *watch is borrowed until close. */
    int (*open)(const void *id, int rank, int size, int device, int timeout_ms,
                const struct comm_device_watch *watch, void **ret, struct det_err *err);
    int (*allreduce_mean_f32)(void *self, float *v, size_t n, void *stream, int timeout_ms,
                              struct det_err *err);
    /* 1: all work of the stream is done; 0: not yet. */
    int (*poll)(void *self, void *stream, struct det_err *err);
    /* Waits until the stream has come to where it is now, or for timeout_ms, or less: poll() says.
     */
    void (*await)(void *self, void *stream, int timeout_ms);
    /* Ends what is under way; every later call fails with *why. */
    void (*abort)(void *self, const struct det_err *why);
    void (*close)(void *self);
};

struct comm_device;

/* Collective over `control`, which is borrowed until comm_device_close(). `device` is the CUDA
 * ordinal of this rank. DET_EUNAVAIL: no module, or two ranks have one device, which NCCL refuses;
 * DET_EDEVICE: NCCL's own words; DET_EPEER: those of the rank that could not, or which one is gone,
 * known within a second. All ranks succeed or all fail. */
DET_MUST int comm_device_open(struct comm *control, int device, struct comm_device **ret,
                              struct det_err *err);
void comm_device_close(struct comm_device *d); /* NULL ok */

/* v: n floats on the device; in place. stream: cudaStream_t, NULL the default one. */
DET_MUST int comm_device_allreduce_mean_f32(struct comm_device *d, float *v, size_t n, void *stream,
                                            struct det_err *err);
/* Until all work on the stream is done, for as long as `control` is patient; a peer whose process
 * is gone is noticed within a second. DET_EPEER, DET_ETIMEOUT, DET_EDEVICE. */
DET_MUST int comm_device_wait(struct comm_device *d, void *stream, struct det_err *err);

#endif
