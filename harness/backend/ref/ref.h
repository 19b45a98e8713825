/*
 * The reference backend: plain C, one thread, no library. It defines what each kernel of backend.h
 * means; other backends are tested against it, and `cpu` falls back on it for what is too small to
 * matter.
 */
#ifndef REF_H
#define REF_H

#include "backend.h"

extern const struct det_backend det_backend_ref;

/* ref_conv2d() and so on, one for each kernel, ref_conv2d_f64() for those that need one for f64. */
#define X(NAME, name) det_kernel_fn ref_##name;
DET_KERNELS(X)
#undef X
#define X(NAME, name) det_kernel_fn ref_##name##_f64;
DET_KERNELS_REAL(X)
#undef X

/* What the host backends share: memory, copies, a stream that is always done. */
DET_MUST int ref_mem_alloc(struct det_device *d, size_t bytes, void **ret, struct det_err *err);
void ref_mem_free(struct det_device *d, void *p, size_t bytes);
DET_MUST int ref_stream_create(struct det_device *d, struct det_stream **ret, struct det_err *err);
void ref_stream_destroy(struct det_stream *s);
DET_MUST int ref_stream_sync(struct det_stream *s, struct det_err *err);
DET_MUST int ref_event_create(struct det_device *d, struct det_event **ret, struct det_err *err);
void ref_event_destroy(struct det_event *ev);
DET_MUST int ref_event_record(struct det_event *ev, struct det_stream *s, struct det_err *err);
DET_MUST int ref_event_wait(struct det_stream *s, struct det_event *ev, struct det_err *err);
void *ref_stream_native(struct det_stream *s);

static inline const float *in_f32(const struct det_call *c, int i)
{
    return c->in[i] ? (const float *)(const void *)c->in[i]->data : NULL;
}

static inline float *out_f32(const struct det_call *c, int i)
{
    return c->out[i] ? (float *)(void *)c->out[i]->data : NULL;
}

static inline const int64_t *in_i64(const struct det_call *c, int i)
{
    return (const int64_t *)(const void *)c->in[i]->data;
}

/* DET_EINVAL where one of the targets (in 1) is neither a.skip nor a class. */
DET_MUST int ref_check_targets(const struct det_call *c, int64_t classes, struct det_err *err);
/* DET_EINVAL, for target i is t and there are so many classes. */
DET_MUST int ref_no_class(size_t i, int64_t t, int64_t classes, struct det_err *err);

static inline unsigned char *out_u8(const struct det_call *c, int i)
{
    return (unsigned char *)c->out[i]->data;
}

/* The batches of a MATMUL: its dimensions (how many there are is returned), the place of the i-th,
 * and where a tensor's matrix of that place starts, in elements. */
int64_t ref_batch_dims(const struct det_call *c, int64_t dims[DET_DIMS_MAX]);
void ref_batch_at(int64_t i, int n, const int64_t *dims, int64_t *at);
int64_t ref_batch_offset(const struct det_tensor *t, const int64_t *at);

/* The sizes of an image tensor. */
struct ref_image {
    int64_t n, c, h, w;
};

static inline struct ref_image ref_image(const struct det_tensor *t)
{
    return (struct ref_image){t->dims[0], t->dims[1], t->dims[2], t->dims[3]};
}

#endif
