/* Devices, streams, events and memory of the CUDA runtime, and the module's table. */
#include "cuda_flash_call.h"
#include "cuda_impl.h"
#include "cuda_lt.h"
#include "cuda_plan.h"
#include "cuda_profile.h"
#include "cuda_upload.h"

#include <stdio.h>
#include <string.h>

#include "mem.h"

/* What an error is to be read with: of each device that was opened. */
#define LABELS_MAX 64
static char labels[LABELS_MAX][192];
static _Thread_local int current = -1; /* cudaSetDevice() costs more than most launches */

static const char *device_label(void)
{
    return current >= 0 && current < LABELS_MAX ? labels[current] : "";
}

static void set_label(int index)
{
    struct cudaDeviceProp p = {0};
    int driver = 0, runtime = 0;
    cudaGetDeviceProperties(&p, index);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    (void)cudaGetLastError(); /* it is only words */
    if (index < LABELS_MAX)
        snprintf(labels[index], sizeof labels[index],
                 " [cuda:%d %.80s, driver for CUDA %d.%d, runtime %d.%d, cuDNN %zu]", index, p.name,
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
                 cudnnGetVersion());
}

#define MAYBE_EARLIER " (by this call or one before it: DET_CUDA_SYNC=1 finds which)"

/* Kernels run later than they are asked for, and an error stays: whoever looks next is told of it.
 */
static const char *hint_at_earlier(cudaError_t rc)
{
    switch ((int)rc) { /* CUDA has over a hundred */
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert: return MAYBE_EARLIER;
    default: return "";
    }
}

int cuda_check(cudaError_t rc, const char *what, struct det_err *err)
{
    if (rc == cudaSuccess)
        return 0;
    (void)cudaGetLastError(); /* else the next launch, which may be fine, would report it */
    int code = rc == cudaErrorMemoryAllocation ? DET_ENOMEM : DET_EDEVICE;
    return det_fail(err, code, "CUDA: %s: %s%s%s", what, cudaGetErrorString(rc),
                    hint_at_earlier(rc), device_label());
}

int cuda_check_dnn(cudnnStatus_t rc, const char *what, struct det_err *err)
{
    if (rc == CUDNN_STATUS_SUCCESS)
        return 0;
    (void)cudaGetLastError(); /* what a library met is no later launch's */
    int code = cuda_status_no_memory((int)rc, CUDNN_STATUS_ALLOC_FAILED) ? DET_ENOMEM : DET_EDEVICE;
    return det_fail(err, code, "cuDNN: %s: %s%s%s", what, cudnnGetErrorString(rc),
                    rc == CUDNN_STATUS_EXECUTION_FAILED ? MAYBE_EARLIER : "", device_label());
}

int cuda_check_blas(cublasStatus_t rc, const char *what, struct det_err *err)
{
    if (rc == CUBLAS_STATUS_SUCCESS)
        return 0;
    (void)cudaGetLastError(); /* what a library met is no later launch's */
    int code = rc == CUBLAS_STATUS_ALLOC_FAILED ? DET_ENOMEM : DET_EDEVICE;
    return det_fail(err, code, "cuBLAS: %s: %s%s%s", what, cublasGetStatusString(rc),
                    rc == CUBLAS_STATUS_EXECUTION_FAILED ? MAYBE_EARLIER : "", device_label());
}

static bool is_wished(const char *name)
{
    const char *v = getenv(name);
    return v && strcmp(v, "1") == 0;
}

/* Each kernel is waited for, so that its own faults are reported as its own. */
static bool is_sync(void)
{
    static int sync = -1;
    if (sync < 0)
        sync = is_wished("DET_CUDA_SYNC");
    return sync == 1;
}

bool cuda_allows_tf32(void)
{
    static int allowed = -1; /* a plan is kept as long as the device */
    if (allowed < 0)
        allowed = is_wished("DET_ALLOW_TF32");
    return allowed == 1;
}

int cuda_launched(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    cudaError_t rc = cudaGetLastError();
    if (rc == cudaSuccess && is_sync())
        rc = cudaStreamSynchronize(s->native);
    return cuda_check(rc, cuda_kernel_name(c->kernel), err);
}

/* The runtime leaves the count untouched where it fails. */
static cudaError_t count_devices(int *ret)
{
    *ret = 0;
    cudaError_t rc = cudaGetDeviceCount(ret);
    if (rc != cudaSuccess)
        *ret = 0;
    (void)cudaGetLastError();
    return rc;
}

/* No driver, or one too old, means no devices. */
static int device_count(int *ret, struct det_err *err)
{
    (void)err;
    count_devices(ret);
    return 0;
}

/* Why there is no such device: most often the driver does not go with the runtime. */
static int no_device(int index, int n, cudaError_t why, struct det_err *err)
{
    int driver = 0, runtime = 0;
    if (why == cudaSuccess)
        return det_fail(err, DET_ENOENT, "cuda:%d: this host has %d CUDA devices", index, n);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    return det_fail(
        err, DET_ENOENT,
        "cuda:%d: no CUDA devices: %s (the driver is for CUDA %d.%d, 0.0 where there is "
        "none; this program's is %d.%d)",
        index, cudaGetErrorString(why), driver / 1000, driver % 1000 / 10, runtime / 1000,
        runtime % 1000 / 10);
}

int cuda_use(struct det_device *d, struct det_err *err)
{
    if (current == d->index)
        return 0;
    int rc = cuda_check(cudaSetDevice(d->index), "cudaSetDevice", err);
    current = rc == 0 ? d->index : -1;
    return rc;
}

static void device_close(struct det_device *d)
{
    if (!d)
        return;
    det_ignore(cuda_use(d, NULL), "what follows fails then, and frees what it can");
    cuda_profile_finish();
    cuda_plan_finish(d);
    cuda_lt_finish(d);
    if (d->dnn)
        cudnnDestroy(d->dnn);
    if (d->blas)
        cublasDestroy(d->blas);
    cudaFree(d->work.p);
    cudaFree(d->partials.p);
    free(d);
}
DET_DEFINE_CLEANUP(struct det_device *, device_close)

/* By default cuBLAS may add parts of an f16 or bf16 product in f16 or bf16. */
static int sum_in_f32(cublasHandle_t blas, struct det_err *err)
{
    return cuda_check_blas(
        cublasSetMathMode(blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
        "cublasSetMathMode", err);
}

static int device_open(int index, const struct det_device_options *o, struct det_device **ret,
                       struct det_err *err)
{
    (void)o;
    int n = 0, rc;
    cudaError_t why = count_devices(&n);
    if (index >= n)
        return no_device(index, n, why, err);
    det_cleanup(device_closep) struct det_device *d = det_zalloc(sizeof *d);
    d->index = index;
    set_label(index);
    if ((rc = cuda_use(d, err)) < 0 ||
        (rc = cuda_check_blas(cublasCreate(&d->blas), "cublasCreate", err)) < 0 ||
        (rc = sum_in_f32(d->blas, err)) < 0 ||
        (rc = cuda_check_dnn(cudnnCreate(&d->dnn), "cudnnCreate", err)) < 0)
        return rc;
    *ret = det_take(d);
    return 0;
}

static int mem_alloc(struct det_device *d, size_t bytes, void **ret, struct det_err *err)
{
    int rc = cuda_use(d, err);
    return rc < 0 ? rc : cuda_check(cudaMalloc(ret, bytes ? bytes : 64), "cudaMalloc", err);
}

static void mem_free(struct det_device *d, void *p, size_t bytes)
{
    (void)bytes;
    det_ignore(cuda_use(d, NULL), "cudaFree() fails then, and nobody is there to be told");
    cudaFree(p);
    cuda_upload_freed(d);
}

static size_t mem_trim(struct det_device *d)
{
    det_ignore(cuda_use(d, NULL), "cudaFree() fails then, and nobody is there to be told");
    return cuda_upload_trim(d);
}

static int scratch_of(struct det_device *d, struct cuda_scratch *k, size_t bytes, void **ret,
                      struct det_err *err)
{
    int rc = cuda_use(d, err);
    if (rc == 0 && bytes > k->bytes) {
        void *larger = NULL; /* the old one stays until it is there: a smaller call may come next */
        rc = cuda_check(cudaMalloc(&larger, bytes), "cudaMalloc of a workspace", err);
        if (rc < 0)
            return rc;
        cudaFree(k->p); /* waits for the device, so nobody still uses it */
        *k = (struct cuda_scratch){larger, bytes};
    }
    *ret = k->p;
    return rc;
}

int cuda_workspace(struct det_device *d, size_t bytes, void **ret, struct det_err *err)
{
    return scratch_of(d, &d->work, bytes, ret, err);
}

int cuda_partials(struct det_device *d, size_t bytes, void **ret, struct det_err *err)
{
    return scratch_of(d, &d->partials, bytes, ret, err);
}

static void stream_destroy(struct det_stream *s)
{
    if (!s)
        return;
    if (s->native)
        cudaStreamDestroy(s->native);
    cuda_upload_destroy(s->upload);
    cudaFree(s->bad);
    cudaFreeHost(s->bad_host);
    free(s);
}
DET_DEFINE_CLEANUP(struct det_stream *, stream_destroy)

static int stream_create(struct det_device *d, struct det_stream **ret, struct det_err *err)
{
    det_cleanup(stream_destroyp) struct det_stream *s = det_zalloc(sizeof *s);
    int rc;
    s->device = d;
    if ((rc = cuda_use(d, err)) < 0 ||
        (rc = cuda_check(cudaStreamCreateWithFlags(&s->native, cudaStreamNonBlocking),
                         "cudaStreamCreate", err)) < 0 ||
        (rc = cuda_check(cudaMalloc((void **)&s->bad, sizeof(int)), "cudaMalloc", err)) < 0 ||
        (rc = cuda_check(cudaMemsetAsync(s->bad, 0, sizeof(int), s->native), "cudaMemsetAsync",
                         err)) < 0 ||
        (rc = cuda_check(cudaMallocHost((void **)&s->bad_host, sizeof(int)), "cudaMallocHost",
                         err)) < 0)
        return rc;
    *ret = det_take(s);
    return 0;
}

static int stream_sync(struct det_stream *s, struct det_err *err)
{
    int rc = cuda_check(
        cudaMemcpyAsync(s->bad_host, s->bad, sizeof(int), cudaMemcpyDeviceToHost, s->native),
        "cudaMemcpyAsync", err);
    if (rc == 0)
        rc = cuda_check(cudaStreamSynchronize(s->native), "cudaStreamSynchronize", err);
    if (rc < 0 || *s->bad_host == 0)
        return rc;
    rc = cuda_check(cudaMemsetAsync(s->bad, 0, sizeof(int), s->native), "cudaMemsetAsync", err);
    return rc < 0 ? rc
                  : det_fail(err, DET_EINVAL,
                             "an index or a target of a call since the last synchronisation is out "
                             "of range: "
                             "check the labels, or the sizes of the embedding or the last layer "
                             "(the device "
                             "\"cpu\" names the call)");
}

static int copy_bytes(struct det_stream *s, void *dst, const void *src, size_t bytes,
                      enum det_copy_kind kind, struct det_err *err)
{
    enum cudaMemcpyKind how =
        kind == DET_COPY_TO_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
    int rc = cuda_use(s->device, err);
    if (rc < 0 || bytes == 0)
        return rc;
    if (kind == DET_COPY_TO_DEVICE)
        return cuda_upload(s, dst, src, bytes, err);
    return cuda_check(cudaMemcpyAsync(dst, src, bytes, how, s->native), "cudaMemcpyAsync", err);
}

static int event_create(struct det_device *d, struct det_event **ret, struct det_err *err)
{
    int rc = cuda_use(d, err);
    return rc < 0 ? rc
                  : cuda_check(cudaEventCreateWithFlags((cudaEvent_t *)ret, cudaEventDisableTiming),
                               "cudaEventCreate", err);
}

static void event_destroy(struct det_event *ev)
{
    if (ev)
        cudaEventDestroy((cudaEvent_t)ev);
}

static int event_record(struct det_event *ev, struct det_stream *s, struct det_err *err)
{
    return cuda_check(cudaEventRecord((cudaEvent_t)ev, s->native), "cudaEventRecord", err);
}

static int event_wait(struct det_stream *s, struct det_event *ev, struct det_err *err)
{
    return cuda_check(cudaStreamWaitEvent(s->native, (cudaEvent_t)ev, 0), "cudaStreamWaitEvent",
                      err);
}

static void *stream_native(struct det_stream *s)
{
    return s->native;
}

static bool is_wide(const struct det_tensor *t)
{
    return !t || t->dtype == DET_F32;
}

/* The products are cuBLAS's and cuDNN's, which know all three; the others go by packs
 * (cuda_pack.cuh), of any dtype where they differ. */
static const bool low[DET_KERNEL_COUNT] = {
    [DET_KERNEL_LINEAR] = true,
    [DET_KERNEL_LINEAR_BWD_DATA] = true,
    [DET_KERNEL_LINEAR_BWD_WEIGHT] = true,
    [DET_KERNEL_CONV2D] = true,
    [DET_KERNEL_CONV2D_BWD_DATA] = true,
    [DET_KERNEL_CONV2D_BWD_WEIGHT] = true,
    [DET_KERNEL_MATMUL] = true,
    [DET_KERNEL_LAYER_NORM] = true,
    [DET_KERNEL_LAYER_NORM_BWD] = true,
    [DET_KERNEL_SOFTMAX] = true,
    [DET_KERNEL_SOFTMAX_BWD] = true,
    [DET_KERNEL_LOG_SOFTMAX] = true,
    [DET_KERNEL_LOG_SOFTMAX_BWD] = true,
    [DET_KERNEL_BATCH_NORM_TRAIN] = true,
    [DET_KERNEL_BATCH_NORM_EVAL] = true,
    [DET_KERNEL_MAX_POOL2D] = true,
    [DET_KERNEL_MAX_POOL2D_BWD] = true,
    [DET_KERNEL_AVG_POOL2D] = true,
    [DET_KERNEL_AVG_POOL2D_BWD] = true,
    [DET_KERNEL_DROPOUT] = true,
    [DET_KERNEL_DROPOUT_BWD] = true,
    [DET_KERNEL_SUM] = true,
    [DET_KERNEL_SQNORM] = true,
    [DET_KERNEL_ABSMAX] = true,
    [DET_KERNEL_MSE] = true,
    [DET_KERNEL_CROSS_ENTROPY] = true,
    [DET_KERNEL_CROSS_ENTROPY_BWD] = true,
};

static bool computes_low(struct det_device *d, const struct det_call *c, enum det_dtype dtype)
{
    (void)d, (void)dtype;
    if (c->kernel == DET_KERNEL_ATTENTION || c->kernel == DET_KERNEL_ATTENTION_BWD)
        return cuda_flash_takes(c);
    /* x's gradient is made of the sums that are stored */
    if (c->kernel == DET_KERNEL_BATCH_NORM_BWD)
        return is_wide(c->out[1]) && is_wide(c->out[2]);
    return low[c->kernel];
}

static const struct det_backend backend = {
    .version = DET_BACKEND_VERSION,
    .name = "cuda",
    .host_memory = false,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .mem_trim = mem_trim,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_sync = stream_sync,
    .copy = copy_bytes,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .stream_native = stream_native,
    .computes = computes_low,
    .row_step = cuda_row_step,
    .steps = cuda_steps,
    .kernels =
        {
#define X(NAME, name) [DET_KERNEL_##NAME] = cuda_##name,
            DET_KERNELS(X)
#undef X
        },
    .kernels_f64 =
        {
#define X(NAME, name) [DET_KERNEL_##NAME] = cuda_##name##_f64,
            DET_KERNELS_REAL(X)
#undef X
        },
};

__attribute__((visibility("default"))) const struct det_backend *det_backend_get(uint32_t version);
const struct det_backend *det_backend_get(uint32_t version)
{
    return version == DET_BACKEND_VERSION ? cuda_profile_table(&backend) : NULL;
}
