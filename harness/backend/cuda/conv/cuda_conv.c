/*
 * Convolution by cuDNN (cuda_plan.h), NHWC activations of f32, bf16 or f16, sums in f32. Only what
 * cuDNN calls deterministic is used: the same seed gives the same bytes. What it has none
 * for, and all of f64, is cuda_conv_rows.cu's; f32 of many channels is cuda_conv_tiles.cu's, but
 * for weights' gradients. Weights are plain (O, I, kH, kW) outside; cuDNN wants them in the order
 * of the activations, so each call reorders them, but for windows of 1 x 1, where both orders are
 * one. cuDNN pads both sides alike: what one side has more is padded (or cut off) apart. Few
 * channels of f16 and bf16 are folded (cuda_fold.h), but for x's gradient.
 */
#include "cuda_fold.h"
#include "cuda_plan.h"

/* A call on its way. */
struct conv {
    struct cuda_plan *plan;
    bool folds; /* x and the weights are fold's */
    struct cuda_fold fold;
    struct det_tensor wide; /* x with its uneven padding, or folded */
    bool copied;            /* wide lies in the workspace, and is not the caller's tensor */
    bool turned;            /* so do the weights, in another order */
    struct det_call pad;    /* from x to wide */
    void *work, *weights;   /* the workspace: cuDNN's part, the weights in NHWC order, wide */
};

static size_t align_up(size_t bytes)
{
    return (bytes + 255) & ~(size_t)255;
}

static size_t bytes_of(const struct det_tensor *t)
{
    return t->numel * det_dtype_size(t->dtype);
}

/* cuDNN chooses its algorithms for tensors that begin at 16 bytes; a view may not. */
static bool is_odd(const struct det_tensor *t)
{
    return (uintptr_t)t->data % 16 != 0;
}

/* How it is done on tensors as they are, but for the padding of x. */
static int plan_plain(struct conv *k, struct det_stream *s, enum cuda_plan_way way,
                      const struct det_call *c, const struct det_tensor *x,
                      const struct det_tensor *w, const struct det_tensor *y, struct det_err *err)
{
    const struct det_attrs *a = &c->a;
    cuda_plan_widen(x, a, &k->wide);
    k->copied = k->wide.numel != x->numel || is_odd(x);
    k->turned = (w->dims[1] > 1 && w->dims[2] * w->dims[3] > 1) || is_odd(w);
    k->pad = (struct det_call){.kernel = DET_KERNEL_PAD};
    k->pad.a.before[2] = a->pad_h > a->end_h ? a->pad_h - a->end_h : 0;
    k->pad.a.before[3] = a->pad_w > a->end_w ? a->pad_w - a->end_w : 0;
    return cuda_plan_get(s, way, a, &k->wide, w, y, &k->plan, err);
}

static int conv_init(struct conv *k, struct det_stream *s, enum cuda_plan_way way,
                     const struct det_call *c, const struct det_tensor *x,
                     const struct det_tensor *w, const struct det_tensor *y, struct det_err *err)
{
    int rc = cuda_use(s->device, err);
    if (rc == 0)
        rc = cuda_check_dnn(cudnnSetStream(s->device->dnn, s->native), "cudnnSetStream", err);
    k->folds = way != CUDA_PLAN_BACKWARD_DATA && cuda_fold_init(&k->fold, &c->a, x, w, y);
    k->copied = k->turned = true;
    if (k->folds)
        k->wide = k->fold.x;
    if (rc == 0 && k->folds)
        rc = cuda_plan_get(s, way, &k->fold.a, &k->fold.x, &k->fold.w, y, &k->plan, err);
    if (rc < 0 || (k->folds && !k->plan->rows))
        return rc;
    k->folds = false;
    return plan_plain(k, s, way, c, x, w, y, err);
}

static int scratch_get(struct conv *k, struct det_device *d, const struct det_tensor *w,
                       struct det_err *err)
{
    size_t head = align_up(k->plan->work_bytes), wide = k->copied ? bytes_of(&k->wide) : 0;
    size_t weights = k->turned ? align_up(bytes_of(k->folds ? &k->fold.w : w)) : 0;
    int rc = cuda_workspace(d, head + weights + wide, &k->work, err);
    if (rc < 0)
        return rc;
    k->weights = k->turned ? (char *)k->work + head : w->data;
    if (k->copied)
        k->wide.data = (char *)k->work + head + weights;
    k->fold.w.data = k->weights;
    k->fold.x.data = k->wide.data;
    return 0;
}

static int load_weights(struct conv *k, struct det_stream *s, const struct det_call *c,
                        const struct det_tensor *w, struct det_err *err)
{
    if (k->folds)
        return cuda_fold_weights(s, c, &k->fold, w, err);
    return k->turned ? cuda_reorder(s, c, w, k->weights, false, err) : 0;
}

static int load_x(struct conv *k, struct det_stream *s, const struct det_call *c,
                  const struct det_tensor *x, struct det_err *err)
{
    if (k->folds)
        return cuda_fold_x(s, c, &k->fold, x, err);
    k->pad.in[0] = x;
    k->pad.out[0] = &k->wide;
    return k->copied ? cuda_pad(s, &k->pad, err) : 0;
}

/* Weights and, where it is copied, x into the workspace. */
static int load_conv(struct conv *k, struct det_stream *s, const struct det_call *c,
                     const struct det_tensor *w, const struct det_tensor *x, struct det_err *err)
{
    int rc = w ? load_weights(k, s, c, w, err) : 0;
    return rc < 0 || !x ? rc : load_x(k, s, c, x, err);
}

/* Runs it; *ret: cuDNN refused, and the call is to begin anew with the plan that is left. */
static int run_conv(struct conv *k, struct det_stream *s, const struct det_tensor *y,
                    const char *what, bool *ret, struct det_err *err)
{
    struct cuda_plan *p = k->plan;
    cudnnStatus_t done = cuda_plan_run(s->device, p, k->wide.data, k->weights, y->data, k->work);
    *ret = cuda_plan_refused(done);
    return *ret ? cuda_plan_next(s->device, p, err) : cuda_check_dnn(done, what, err);
}

static int dnn_forward(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct conv k;
    const struct det_tensor *x = c->in[0], *w = c->in[1], *y = c->out[0];
    bool refused = false;
    int rc = conv_init(&k, s, CUDA_PLAN_FORWARD, c, x, w, y, err);
    if (rc < 0)
        return rc;
    if (k.plan->rows || is_odd(y))
        return cuda_rows_conv2d(s, c, err);
    if ((rc = scratch_get(&k, s->device, w, err)) < 0 || (rc = load_conv(&k, s, c, w, x, err)) < 0)
        return rc;
    rc = run_conv(&k, s, y, "conv2d", &refused, err);
    return rc < 0 || !refused ? rc : dnn_forward(s, c, err);
}

/* x's gradient of what was copied: without its uneven padding. */
static int unload_conv(struct conv *k, struct det_stream *s, const struct det_call *c,
                       struct det_err *err)
{
    k->pad.in[0] = &k->wide;
    k->pad.out[0] = c->out[0];
    return cuda_pad_bwd(s, &k->pad, err);
}

static int dnn_backward_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct conv k;
    const struct det_tensor *dy = c->in[0], *w = c->in[1];
    bool refused = false;
    int rc = conv_init(&k, s, CUDA_PLAN_BACKWARD_DATA, c, c->out[0], w, dy, err);
    if (rc < 0)
        return rc;
    if (k.plan->rows || is_odd(dy))
        return cuda_rows_conv2d_bwd_data(s, c, err);
    if ((rc = scratch_get(&k, s->device, w, err)) < 0 ||
        (rc = load_conv(&k, s, c, w, NULL, err)) < 0)
        return rc;
    rc = run_conv(&k, s, dy, "conv2d_bwd_data", &refused, err);
    if (rc == 0 && refused)
        return dnn_backward_data(s, c, err);
    return rc < 0 || !k.copied ? rc : unload_conv(&k, s, c, err);
}

static int unload_weights(struct conv *k, struct det_stream *s, const struct det_call *c,
                          const struct det_tensor *dw, struct det_err *err)
{
    if (k->folds)
        return cuda_unfold_weights(s, c, &k->fold, dw, err);
    return k->turned ? cuda_reorder(s, c, dw, k->weights, true, err) : 0;
}

static int dnn_backward_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct conv k;
    const struct det_tensor *x = c->in[0], *dy = c->in[1], *dw = c->out[0];
    bool refused = false;
    int rc = conv_init(&k, s, CUDA_PLAN_BACKWARD_WEIGHT, c, x, dw, dy, err);
    if (rc < 0)
        return rc;
    if (k.plan->rows || is_odd(dy))
        return cuda_rows_conv2d_bwd_weight(s, c, err);
    if ((rc = scratch_get(&k, s->device, dw, err)) < 0 ||
        (rc = load_conv(&k, s, c, NULL, x, err)) < 0)
        return rc;
    rc = run_conv(&k, s, dy, "conv2d_bwd_weight", &refused, err);
    if (rc == 0 && refused)
        return dnn_backward_weight(s, c, err);
    return rc < 0 ? rc : unload_weights(&k, s, c, dw, err);
}

/* ---- what both ways have alike: nothing to do, biases ---- */

static int run_conv2d(struct det_stream *s, const struct det_call *c, det_kernel_fn *products,
                      struct det_err *err)
{
    int rc = c->out[0]->numel > 0 ? products(s, c, err) : 0;
    return rc < 0 ? rc : cuda_finish_rows(s, c, c->in[2], c->out[0], c->out[0]->dims[1], err);
}

/* The gradient of something from dy; zeros where dy is empty. */
static int run_gradient(struct det_stream *s, const struct det_call *c, const struct det_tensor *dy,
                        det_kernel_fn *products, struct det_err *err)
{
    struct det_tensor *to = c->out[0];
    if (to->numel == 0)
        return 0;
    if (dy->numel > 0)
        return products(s, c, err);
    return cuda_check(cudaMemsetAsync(to->data, 0, bytes_of(to), s->native), "cudaMemsetAsync",
                      err);
}

static int weight_gradient(struct det_stream *s, const struct det_call *c, det_kernel_fn *products,
                           struct det_err *err)
{
    const struct det_tensor *dy = c->in[1];
    int rc = run_gradient(s, c, dy, products, err);
    return rc < 0 || !c->out[1] ? rc : cuda_sum_columns(s, c, dy, c->out[1], 1, err);
}

int cuda_conv2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    bool done = false;
    int rc = cuda_allows_tf32() ? 0 : cuda_tiles_conv2d(s, c, &done, err);
    if (rc < 0 || done)
        return rc;
    return run_conv2d(s, c, dnn_forward, err);
}

int cuda_conv2d_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return run_conv2d(s, c, cuda_rows_conv2d, err);
}

int cuda_conv2d_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    bool done = false;
    int rc = cuda_allows_tf32() ? 0 : cuda_tiles_conv2d_bwd_data(s, c, &done, err);
    if (rc < 0 || done)
        return rc;
    return run_gradient(s, c, c->in[0], dnn_backward_data, err);
}

int cuda_conv2d_bwd_data_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return run_gradient(s, c, c->in[0], cuda_rows_conv2d_bwd_data, err);
}

int cuda_conv2d_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return weight_gradient(s, c, dnn_backward_weight, err);
}

int cuda_conv2d_bwd_weight_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return weight_gradient(s, c, cuda_rows_conv2d_bwd_weight, err);
}
