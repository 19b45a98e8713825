/*
 * The steps of the optimizers, in PyTorch's order of operations. Parameters of the same numbers go
 * together: a launch takes a table of them, and its blocks take pieces of equal size, whichever
 * parameter they are of. Elements are read and written 16 bytes at a time where all tensors of a
 * parameter begin there.
 */
#include "cuda_dtype.cuh"
#include "cuda_pieces.cuh"

#define KEPT      3  /* tensors beside the parameter, at most */
#define TABLE_MAX 64 /* parameters; a kernel's arguments may have 4 KB */
#define TOGETHER  4  /* elements that a thread takes at once */

/* The gradient that an optimizer sees: sign * grad + decay * p. */
template <typename T> struct seen {
    T sign, decay;
    explicit seen(const struct det_optim_attrs *o)
        : sign((T)(o->maximize ? -1 : 1)), decay(o->decoupled ? 0 : (T)o->weight_decay)
    {
    }
    __device__ T operator()(T grad, T p) const
    {
        T g = sign * grad;
        return decay != 0 ? g + decay * p : g;
    }
};

/* Each optimizer: what one element's step does to it and to its kept numbers k, of which those are
 * there that the call has. */
template <typename T> struct sgd {
    seen<T> gradient;
    T lr, momentum, rest;
    bool first, nesterov, kept;
    explicit sgd(const struct det_call *c)
        : gradient(&c->a.optim), lr((T)c->a.optim.lr), momentum((T)c->a.optim.momentum),
          rest((T)(1 - c->a.optim.dampening)), first(c->a.optim.first),
          nesterov(c->a.optim.nesterov), kept(c->out[1])
    {
    }
    __device__ void operator()(T grad, T &p, T (&k)[KEPT]) const
    {
        T g = gradient(grad, p);
        if (kept) {
            k[0] = first ? g : momentum * k[0] + rest * g;
            g = nesterov ? g + momentum * k[0] : k[0];
        }
        p -= lr * g;
    }
};

template <typename T> struct adam {
    seen<T> gradient;
    T beta1, beta2, eps, rest1, rest2, step, root, shrink;
    bool top;
    explicit adam(const struct det_call *c) : gradient(&c->a.optim), top(c->out[3])
    {
        const struct det_optim_attrs *o = &c->a.optim;
        beta1 = (T)o->beta1, beta2 = (T)o->beta2, eps = (T)o->eps;
        rest1 = (T)(1 - o->beta1), rest2 = (T)(1 - o->beta2);
        step = (T)(o->lr / (1 - pow(o->beta1, (double)o->step)));
        root = (T)sqrt(1 - pow(o->beta2, (double)o->step));
        shrink = o->decoupled ? (T)(1 - o->lr * o->weight_decay) : 1;
    }
    __device__ void operator()(T grad, T &p, T (&k)[KEPT]) const
    {
        T g = gradient(grad, p);
        k[0] = beta1 * k[0] + rest1 * g;
        k[1] = beta2 * k[1] + rest2 * g * g;
        if (top)
            k[2] = k[2] > k[1] ? k[2] : k[1];
        p = shrink * p - step * (k[0] / (sqrt(top ? k[2] : k[1]) / root + eps));
    }
};

template <typename T> struct rmsprop {
    seen<T> gradient;
    T alpha, rest, lr, momentum, eps;
    bool buffer, mean;
    explicit rmsprop(const struct det_call *c)
        : gradient(&c->a.optim), alpha((T)c->a.optim.alpha), rest((T)(1 - c->a.optim.alpha)),
          lr((T)c->a.optim.lr), momentum((T)c->a.optim.momentum), eps((T)c->a.optim.eps),
          buffer(c->out[2]), mean(c->out[3])
    {
    }
    __device__ void operator()(T grad, T &p, T (&k)[KEPT]) const
    {
        T g = gradient(grad, p), square = 0;
        k[0] = alpha * k[0] + rest * g * g;
        if (mean) {
            k[2] = alpha * k[2] + rest * g;
            square = k[2] * k[2];
        }
        g /= sqrt(k[0] - square) + eps;
        if (buffer)
            g = k[1] = momentum * k[1] + g;
        p -= lr * g;
    }
};

template <typename T> struct adagrad {
    seen<T> gradient;
    T lr, eps;
    explicit adagrad(const struct det_call *c)
        : gradient(&c->a.optim), lr((T)c->a.optim.lr), eps((T)c->a.optim.eps)
    {
    }
    __device__ void operator()(T grad, T &p, T (&k)[KEPT]) const
    {
        T g = gradient(grad, p);
        k[0] += g * g;
        p -= lr * (g / (sqrt(k[0]) + eps));
    }
};

template <typename T> struct parameter {
    T *p, *kept[KEPT]; /* NULL: not kept */
    const T *grad;
    int64_t n;
    uint32_t first; /* of the pieces of all */
    bool even;      /* all begin at 16 bytes */
};

template <typename T> struct table {
    int n;
    uint32_t pieces;
    struct parameter<T> of[TABLE_MAX];
};

/* Elements at, at + 1, ... of a parameter, N of them. */
template <int N, typename T, typename STEP>
__device__ static void step_at(const parameter<T> &v, int64_t at, const STEP &step)
{
    T grad[N], p[N], kept[KEPT][N] = {};
    auto load = [&](const T *from, T(&to)[N]) {
        if constexpr (N * sizeof(T) >= 16)
            cuda_load_wide(from + at, to);
        else
            to[0] = from[at];
    };
    auto store = [&](T *to, const T(&from)[N]) {
        if constexpr (N * sizeof(T) >= 16)
            cuda_store_wide(to + at, from);
        else
            to[at] = from[0];
    };
    load(v.grad, grad);
    load(v.p, p);
#pragma unroll
    for (int i = 0; i < KEPT; i++)
        if (v.kept[i])
            load(v.kept[i], kept[i]);
#pragma unroll
    for (int j = 0; j < N; j++) {
        T k[KEPT] = {kept[0][j], kept[1][j], kept[2][j]};
        step(grad[j], p[j], k);
#pragma unroll
        for (int i = 0; i < KEPT; i++)
            kept[i][j] = k[i];
    }
#pragma unroll
    for (int i = 0; i < KEPT; i++)
        if (v.kept[i])
            store(v.kept[i], kept[i]);
    store(v.p, p);
}

#define PIECE (32 * (int64_t)CUDA_BLOCK) /* elements */

template <typename T, typename STEP>
static int launch(struct det_stream *s, const struct det_call *c, const struct table<T> &t,
                  const STEP &step, struct det_err *err)
{
    int64_t piece = PIECE;
    return cuda_blocks(
        s, c, t.pieces,
        DEVICE(int64_t i) {
            const parameter<T> &v = t.of[cuda_piece_of(t, i)];
            int64_t from = (i - v.first) * piece, to = v.n < from + piece ? v.n : from + piece;
            int64_t whole = v.even ? to - to % TOGETHER : from;
            int64_t stride = TOGETHER * blockDim.x;
            for (int64_t at = from + TOGETHER * threadIdx.x; at < whole; at += stride)
                step_at<TOGETHER>(v, at, step);
            for (int64_t at = whole + threadIdx.x; at < to; at += blockDim.x)
                step_at<1>(v, at, step);
        },
        err);
}

template <typename T> static void add(struct table<T> *t, const struct det_call *c)
{
    struct parameter<T> v = {
        .p = out_real<T>(c, 0), .grad = in_real<T>(c, 0), .n = (int64_t)c->out[0]->numel,
        .first = t->pieces
    };
    uintptr_t bits = (uintptr_t)v.p | (uintptr_t)v.grad;
    for (int i = 0; i < KEPT; i++) {
        v.kept[i] = out_real<T>(c, 1 + i);
        bits |= (uintptr_t)v.kept[i];
    }
    v.even = bits % 16 == 0;
    t->pieces += (uint32_t)((v.n + PIECE - 1) / PIECE);
    t->of[t->n++] = v;
}

/* Whether b's step has the numbers of a's. */
static bool alike(const struct det_call *a, const struct det_call *b)
{
    const struct det_optim_attrs *o = &a->a.optim, *u = &b->a.optim;
    bool same = o->lr == u->lr && o->momentum == u->momentum && o->dampening == u->dampening &&
                o->weight_decay == u->weight_decay && o->beta1 == u->beta1 &&
                o->beta2 == u->beta2 && o->alpha == u->alpha && o->eps == u->eps &&
                (o->step == u->step || a->kernel != DET_KERNEL_ADAM) &&
                o->nesterov == u->nesterov && o->maximize == u->maximize &&
                o->decoupled == u->decoupled && o->first == u->first;
    for (int i = 1; i <= KEPT; i++)
        same = same && !a->out[i] == !b->out[i];
    return same;
}

template <typename T, template <typename> class STEP>
static int steps(struct det_stream *s, const struct det_call *c, size_t n, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0, j; rc == 0 && i < n; i = j) {
        struct table<T> t = {
        };
        for (j = i; j < n && t.n < TABLE_MAX && alike(&c[i], &c[j]); j++)
            add(&t, &c[j]);
        rc = launch(s, &c[i], t, STEP<T>(&c[i]), err);
    }
    return rc;
}

template <typename T>
static int steps_of(struct det_stream *s, const struct det_call *c, size_t n, struct det_err *err)
{
    switch (c->kernel) {
    case DET_KERNEL_SGD: return steps<T, sgd>(s, c, n, err);
    case DET_KERNEL_ADAM: return steps<T, adam>(s, c, n, err);
    case DET_KERNEL_RMSPROP: return steps<T, rmsprop>(s, c, n, err);
    default: return steps<T, adagrad>(s, c, n, err);
    }
}

int cuda_steps(struct det_stream *s, const struct det_call *c, size_t n, struct det_err *err)
{
    if (c->kernel == DET_KERNEL_COPY)
        return cuda_casts(s, c, n, err);
    return c->out[0]->dtype == DET_F64 ? steps_of<double>(s, c, n, err)
                                       : steps_of<float>(s, c, n, err);
}

/* No thread writes where the norm is small enough; the host need not know it. */
template <typename T>
static int limit(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *norm = in_real<T>(c, 0);
    T *x = out_real<T>(c, 0);
    int64_t n = (int64_t)c->out[0]->numel, piece = PIECE;
    int64_t whole = (uintptr_t)x % 16 == 0 ? n - n % TOGETHER : 0;
    double most = c->a.hi, eps = c->a.eps;
    return cuda_blocks(
        s, c, (n + piece - 1) / piece,
        DEVICE(int64_t i) {
            double factor = most / ((double)*norm + eps);
            int64_t from = i * piece, to = from + piece < n ? from + piece : n;
            int64_t even = whole < to ? whole : to;
            if (factor >= 1)
                return;
            for (int64_t at = from + TOGETHER * threadIdx.x; at < even;
                 at += TOGETHER * blockDim.x) {
                T v[TOGETHER];
                cuda_load_wide(x + at, v);
                CUDA_UNROLL
                for (int j = 0; j < TOGETHER; j++)
                    v[j] *= (T)factor;
                cuda_store_wide(x + at, v);
            }
            even = even > from ? even : from;
            for (int64_t at = even + threadIdx.x; at < to; at += blockDim.x)
                x[at] *= (T)factor;
        },
        err);
}
CUDA_REAL(limit)

/* One parameter's. */
#define ONE(name)                                                                                  \
    int name(struct det_stream *s, const struct det_call *c, struct det_err *err)                  \
    {                                                                                              \
        return cuda_steps(s, c, 1, err);                                                           \
    }
ONE(cuda_sgd)
ONE(cuda_sgd_f64)
ONE(cuda_adam)
ONE(cuda_adam_f64)
ONE(cuda_rmsprop)
ONE(cuda_rmsprop_f64)
ONE(cuda_adagrad)
ONE(cuda_adagrad_f64)
