#include <stdio.h>

#include "micro.h"

#define WIDTH 64

static int64_t heads; /* of all calls */

static struct det_tensor *forward(struct det_engine *e, struct det_tensor *x)
{
    det_no_grad_begin(e);
    struct det_tensor *y = det_packed_attention(e, x, heads, .causal = true);
    det_no_grad_end(e);
    return y;
}

static struct det_tensor *not_causal(struct det_engine *e, struct det_tensor *x)
{
    det_no_grad_begin(e);
    struct det_tensor *y = det_packed_attention(e, x, heads);
    det_no_grad_end(e);
    return y;
}

static struct det_tensor *dropping(struct det_engine *e, struct det_tensor *x)
{
    det_no_grad_begin(e);
    struct det_tensor *y = det_packed_attention(e, x, heads, .causal = true, .dropout = 0.1);
    det_no_grad_end(e);
    return y;
}

/* Its gradient flows from a sum, which is little beside it. */
static struct det_tensor *both(struct det_engine *e, struct det_tensor *x)
{
    struct det_tensor *y = det_packed_attention(e, x, heads, .causal = true);
    det_backward(e, det_sum(e, y));
    return y;
}

static struct det_tensor *both_not_causal(struct det_engine *e, struct det_tensor *x)
{
    struct det_tensor *y = det_packed_attention(e, x, heads);
    det_backward(e, det_sum(e, y));
    return y;
}

static struct det_tensor *both_dropping(struct det_engine *e, struct det_tensor *x)
{
    struct det_tensor *y = det_packed_attention(e, x, heads, .causal = true, .dropout = 0.1);
    det_backward(e, det_sum(e, y));
    return y;
}

/* products: of queries by keys by width, 2 forward and 5 more backward; half are hidden in a causal
 * call. */
struct timed {
    struct operation o;
    double products;
};

static void say(struct det_engine *e, const struct timed *t, struct det_tensor *x,
                const char *dtype)
{
    const int64_t *dims = det_tensor_dims(x);
    double us = time_us(e, &t->o, x);
    double each = 2 * (double)(dims[0] * heads * dims[1] * dims[1] * WIDTH);
    printf("{\"operation\":\"%s %s\",\"us\":%.2f,\"TFLOP_s\":%.2f}\n", t->o.name, dtype, us,
           t->products * each / us * 1e-6);
    fflush(stdout);
}

static void time_one(struct det_engine *e, bool is_full, enum det_dtype dtype, const char *name)
{
    static const struct timed all[] = {
        {{"attention", forward, 0}, 1},
        {{"attention, dropout", dropping, 0}, 1},
        {{"attention, not causal", not_causal, 0}, 2},
        {{"attention and back", both, 0}, 3.5},
        {{"attention and back, dropout", both_dropping, 0}, 3.5},
        {{"attention and back, not causal", both_not_causal, 0}, 7},
    };
    const int64_t dims[] = {is_full ? 8 : 1, is_full ? 1024 : 33, 3 * heads * WIDTH};
    struct det_tensor *x =
        det_tensor_ref(det_requires_grad(e, det_cast(e, det_randn(e, 3, dims), dtype)));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        say(e, &all[i], x, name);
    det_tensor_unref(x);
}

void time_attention(struct det_engine *e, bool is_full)
{
    heads = is_full ? 12 : 1;
    time_one(e, is_full, DET_F32, "f32");
    time_one(e, is_full, DET_BF16, "bf16");
}
