/*
 * The part of the CUDA runtime that the backend uses, on the host: for tests only. "Device" memory
 * is one region that is closed (no access) but while a kernel or a copy runs, so that host code
 * that touches a device pointer ends with SIGSEGV, as it would on a GPU. Work is done when somebody
 * waits for its stream (emulate_streams.cc): until then what is copied to the device is not read,
 * and what is copied to the host has not come. What works on the default stream (cudaMemset, say)
 * is missing: our streams do not wait for that one. The environment says what is wrong with the
 * device:
 *   EMULATED_DRIVER=none       the driver is too old
 *   EMULATED_MEMORY=BYTES      so much can be allocated
 *   EMULATED_DEVICES=N         instead of 1
 *   EMULATED_BREAKS=N          the Nth call that can fail does: a launch, a library's call, a
 *                              copy, a wait, what allocates or creates
 *   EMULATED_FAULT=N           the Nth launch from then on reads where there is nothing
 *
 * It says, too, in which order streams work that nothing orders, instead of by turns:
 *   EMULATED_ORDER=early       the others before the one that is waited for
 *   EMULATED_ORDER=late        the others as late as they may
 */
#ifndef EMULATED_CUDA_RUNTIME_API_H
#define EMULATED_CUDA_RUNTIME_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalAddress = 700,
    cudaErrorAssert = 710,
    cudaErrorMisalignedAddress = 716,
    cudaErrorLaunchFailure = 719
} cudaError_t;
typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
};
struct cudaDeviceProp {
    char name[256];
};
enum { cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };

const char *cudaGetErrorString(cudaError_t e);
/* What failed last, whichever call that was; forgets it. */
cudaError_t cudaGetLastError(void);
cudaError_t cudaGetDeviceCount(int *ret);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDriverGetVersion(int *ret);
cudaError_t cudaRuntimeGetVersion(int *ret);
cudaError_t cudaMalloc(void **ret, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaMallocHost(void **ret, size_t bytes);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemsetAsync(void *p, int v, size_t bytes, cudaStream_t s);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t ev, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t ev);
cudaError_t cudaEventRecord(cudaEvent_t ev, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t ev);
/* A millisecond. */
cudaError_t cudaEventElapsedTime(float *ret, cudaEvent_t from, cudaEvent_t to);

/* Whether blocks and limits are as large as a GPU's (EMULATED_SIZES). */
int emulated_is_full_size(void);
/* A number of the environment. */
size_t emulated_setting(const char *name, size_t otherwise);
/* Whether n elements of `size` bytes lie on the device, at a place where it can read them. */
int emulated_is_array(const void *p, size_t size, long long n);
/* Whether a kernel may be launched there now: not on a stream of another device than the thread's,
 * which is an error of the launch. */
int emulated_takes(cudaStream_t s);
/* What the device says of itself to whoever waits for it. */
cudaError_t emulated_health(void);
/* Keeps an error for cudaGetLastError(), and returns it. */
cudaError_t emulated_failed(cudaError_t e);
int emulated_current_device(void);

/* Of all that is emulated; calls nest. */
void emulated_lock(void);
void emulated_unlock(void);
/* Has the stream call work() with a copy of arg, in its turn. */
void emulated_later(cudaStream_t s, void (*work)(const void *arg), const void *arg, size_t bytes);
void emulated_download(cudaStream_t s, void *to, const void *from, size_t bytes);
int emulated_device_of(cudaStream_t s);
/* All streams do what they were asked for. */
void emulated_await_all(void);
/* All but one do what needs nothing of that one. */
__attribute__((visibility("default"))) void emulated_run_others(cudaStream_t but);
/* Bytes that have come from the host. */
extern __attribute__((visibility("default"))) long long emulated_arrived;
/* Opens the device's memory, and closes it again; calls nest. */
void emulated_open(void);
void emulated_close(void);

/* Whether this call fails, by EMULATED_BREAKS; emulated_broken: so many did. */
int emulated_breaks(void);
extern __attribute__((visibility("default"))) long emulated_broken;
/* What was created or allocated and not yet given back. */
enum emulated_thing {
    EMULATED_STREAMS,
    EMULATED_EVENTS,
    EMULATED_PINNED,
    EMULATED_BLOCKS,
    EMULATED_THINGS
};
extern __attribute__((visibility("default"))) long emulated_held[EMULATED_THINGS];
void emulated_hold(enum emulated_thing thing, long n);

/* What is counted: launches of ours, calls of cuBLAS and cuDNN, copies, and what a step had better
 * not do: ask for algorithms, wait, allocate. EMULATED_COUNTS names a file that gets a line each,
 * with its name, number of calls and bytes, when the module goes. */
enum emulated_call {
    EMULATED_KERNEL,
    EMULATED_GEMM,
    EMULATED_CONV, /* run or tried */
    EMULATED_TF32, /* of both, those of f32 that may round its inputs */
    EMULATED_QUERY,
    EMULATED_UPLOAD,
    EMULATED_DOWNLOAD,
    EMULATED_COPY, /* from the device to itself, and filling */
    EMULATED_WAIT,
    EMULATED_ALLOC,
    EMULATED_CALLS
};
extern __attribute__((visibility("default"))) long emulated_calls[EMULATED_CALLS];
void emulated_count(enum emulated_call call, long long bytes);
/* EMULATED_EMPTY: nothing is computed, for counts of networks that would take hours. */
int emulated_is_empty(void);

#ifdef __cplusplus
}
#endif
#endif
