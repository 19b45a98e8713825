/* The families of cases, and how one is run. */
#include "op_case.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dtype.h"
#include "mem.h"
#include "op.h"

/* One family a line; a test finds operations that no family has. */
#define FAMILIES(X)                                                                                \
    X(cases_basic)                                                                                 \
    X(cases_elem)                                                                                  \
    X(cases_view)                                                                                  \
    X(cases_image)                                                                                 \
    X(cases_window)                                                                                \
    X(cases_math)                                                                                  \
    X(cases_loss)                                                                                  \
    X(cases_reduce)                                                                                \
    X(cases_seq)                                                                                   \
    X(cases_attention)                                                                             \
    X(cases_autocast)                                                                              \
    X(cases_dtypes)

#define X(name) extern const struct op_case name[];
FAMILIES(X)
#undef X
static const struct op_case *const families[] = {
#define X(name) name,
    FAMILIES(X)
#undef X
};

/* The same case with f64 for f32. */
struct twin {
    struct op_case c;
    char what[120];
};

/* False where there is none: the case has dtypes of its own. */
static bool twin_init(struct twin *t, const struct op_case *c)
{
    bool any = false;
    t->c = *c;
    t->c.what = t->what;
    snprintf(t->what, sizeof t->what, "f64, %s", c->what);
    for (int i = 0; i < CASE_INPUTS_MAX && c->in[i].ndim > 0; i++) {
        if (c->in[i].dtype != DET_F32 && !c->in[i].classes)
            return false;
        any = any || c->in[i].dtype == DET_F32;
        if (c->in[i].dtype == DET_F32)
            t->c.in[i].dtype = DET_F64;
    }
    return any && !strstr(c->what, "bf16");
}

#define TWINS_MAX 1000

static struct twin twins[TWINS_MAX];

static int make_twins(void)
{
    int n = 0;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct op_case *c = families[f]; families[f] != cases_autocast && c->op; c++)
            if (twin_init(&twins[n], c))
                assert(++n < TWINS_MAX);
    return n;
}

const struct op_case *op_case_at(int i)
{
    static int count;
    if (count == 0)
        count = make_twins();
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct op_case *c = families[f]; c->op; c++)
            if (i-- == 0)
                return c;
    return i < count ? &twins[i].c : NULL;
}

/* Element i of n in a scrambled order: distinct, none 0, and their sum is not near 0 either. */
static double spread(int64_t i, int64_t n, int salt)
{
    static const int64_t primes[] = {7919, 104729, 1299709};
    return (2.0 * (double)((i * primes[salt % 3] + salt * 31) % n) + 1) / (double)n - 0.8613;
}

static double element(const struct case_input *s, int64_t i, int64_t n, int salt)
{
    if (s->spoilt && i == n / 2)
        return NAN;
    return s->shift + (s->range != 0 ? s->range : 1) * spread(i, n, salt);
}

static void fill_classes(struct det_tensor *t, int64_t most, int salt)
{
    int64_t n = (int64_t)det_tensor_numel(t), *v = det_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        v[i] = (i * 7919 + salt * 31) % n % (most + 1);
}

/* Made on the host as f32, then cast, so that every dtype comes from the same numbers; f64 as it
 * is. */
static struct det_tensor *make_input(struct det_engine *e, const struct case_input *s, int salt,
                                     int64_t at, double nudge)
{
    enum det_dtype dtype = s->classes ? DET_I64 : s->dtype == DET_F64 ? DET_F64 : DET_F32;
    struct det_tensor *host = det_host_tensor(dtype, s->ndim, s->dims, NULL);
    int64_t n = (int64_t)det_tensor_numel(host);
    char *v = det_tensor_data(host);
    if (s->classes)
        fill_classes(host, (int64_t)s->range, salt);
    for (int64_t i = 0; !s->classes && i < n; i++)
        det__store_f64(dtype, v + i * (int64_t)det_dtype_size(dtype),
                       element(s, i, n, salt) + (i == at ? nudge : 0));
    struct det_tensor *x = det_from_host(e, dtype, s->ndim, s->dims, det_tensor_data(host));
    det_tensor_unref(host);
    x = det_cast(e, x, s->classes ? DET_I64 : s->dtype);
    return s->classes || s->constant || !det__is_float(s->dtype) ? x : det_requires_grad(e, x);
}

static void make_inputs(struct det_engine *e, const struct op_case *c, struct case_run *r,
                        int which, int64_t at, double nudge)
{
    *r = (struct case_run){0};
    for (; r->inputs < CASE_INPUTS_MAX && c->in[r->inputs].ndim > 0; r->inputs++) {
        int i = r->inputs;
        r->in[i] = make_input(e, &c->in[i], i, at, i == which ? nudge : 0);
    }
}

/* Each element of y counts differently. */
static struct det_tensor *weights_like(struct det_engine *e, struct det_tensor *y)
{
    struct case_input flat = {.ndim = 1,
                              .dims = {(int64_t)det_tensor_numel(y)},
                              .range = 0.9,
                              .constant = true,
                              .dtype = y && y->dtype == DET_F64 ? DET_F64 : DET_F32};
    if (!y)
        return NULL;
    return det_reshape(e, make_input(e, &flat, 2, 0, 0), det_tensor_ndim(y), det_tensor_dims(y));
}

void case_run(struct det_engine *e, const struct op_case *c, struct case_run *r)
{
    make_inputs(e, c, r, -1, 0, 0);
    r->y = c->build(e, r->in);
    r->weights = weights_like(e, r->y);
    if (!op_wants_grad(r->y) || det_tensor_numel(r->y) == 0)
        return;
    struct det_tensor *y = det_cast(e, r->y, det_tensor_dtype(r->weights));
    det_backward(e, det_sum(e, det_mul(e, y, r->weights)));
}

void case_run_nudged(struct det_engine *e, const struct op_case *c, struct case_run *r, int which,
                     int64_t at, double nudge)
{
    det_no_grad_begin(e);
    make_inputs(e, c, r, which, at, nudge);
    r->y = c->build(e, r->in);
    r->weights = weights_like(e, r->y);
    det_no_grad_end(e);
}

const char *case_op(int i)
{
    const struct op_case *c = op_case_at(i);
    return c ? c->op : NULL;
}

const char *case_what(int i)
{
    return op_case_at(i)->what;
}

const char *case_torch(int i)
{
    return op_case_at(i)->torch;
}

struct case_run *case_start(struct det_engine *e, int i)
{
    struct case_run *r = det_alloc(sizeof *r);
    case_run(e, op_case_at(i), r);
    return r;
}

struct det_tensor *case_in(struct case_run *r, int i)
{
    return i < r->inputs ? r->in[i] : NULL;
}

struct det_tensor *case_value(struct case_run *r)
{
    return r->y;
}

struct det_tensor *case_weights(struct case_run *r)
{
    return r->weights;
}

bool case_wants_grad(struct det_tensor *t)
{
    return op_wants_grad(t);
}

void case_end(struct det_engine *e, struct case_run *r)
{
    det_engine_step_end(e);
    free(r);
}
