/* Attention and rotary positions. */
#include <math.h>

#include "det/functional.h"

#include "op_case.h"

BUILD(plain, det_scaled_dot_product_attention(e, in[0], in[1], in[2]))
BUILD(causal, det_scaled_dot_product_attention(e, in[0], in[1], in[2], .causal = true))
BUILD(masked, det_scaled_dot_product_attention(e, in[0], in[1], in[2], .mask = in[3], .scale = 0.3))
BUILD(steep, det_scaled_dot_product_attention(e, in[0], in[1], in[2], .scale = 4))
BUILD(turned, det_scaled_dot_product_attention(e, in[0], in[1], in[2], .scale = -0.2))
BUILD(hidden, det_scaled_dot_product_attention(e, in[0], in[1], in[2],
                                               .mask = det_gt(e, in[3], NUMBER_AS(in[0], -0.6))))
BUILD(packed, det_packed_attention(e, in[0], 2))
BUILD(packed_causal, det_packed_attention(e, in[0], 3, .causal = true))
BUILD(packed_masked, det_packed_attention(e, in[0], 3, .causal = true, .mask = in[1]))
BUILD(rotary, det_rotary(e, in[0]))
BUILD(rotary_halves, det_rotary(e, in[0], .halves = true, .position = 5, .base = 500))

/* A mask of one large number hides all keys from every third query: they count alike, for it
 * swallows their scores, and a nudge that is to show a gradient too. */
static struct det_tensor *all_hidden(struct det_engine *e, struct det_tensor **in, double number)
{
    int64_t time = det_tensor_dim(in[0], -2), keys = det_tensor_dim(in[1], -2);
    struct det_tensor *mask = det_host_tensor(DET_F32, 2, (int64_t[]){time, keys}, NULL);
    float *m = det_tensor_data(mask);
    for (int64_t i = 0; i < time * keys; i++)
        m[i] = i / keys % 3 == 1 ? (float)number : 0;
    struct det_tensor *given = det_cast(e, det_to_device(e, mask), det_tensor_dtype(in[0]));
    det_tensor_unref(mask);
    return det_scaled_dot_product_attention(e, in[0], in[1], in[2], .mask = given);
}
BUILD(hidden_by_least, all_hidden(e, in, -3.3e38))
BUILD(hidden_by_many, all_hidden(e, in, -1e30))
BUILD(hidden_by_inf, all_hidden(e, in, -INFINITY))
#define EACH_THIRD(number) "((torch.arange(q.shape[-2]) % 3 == 1) * " number ").unsqueeze(-1)"

/* Scores grow from key to key, by less than what makes the sums of f16 shrink; few weights are
 * left, hence large ones. */
static struct det_tensor *heavy_dropout(struct det_engine *e, struct det_tensor **in)
{
    det_engine_set_rng_state(e, (struct det_rng_state){.seed = 77, .calls = 3});
    int64_t keys = det_tensor_dim(in[1], -2);
    struct det_tensor *mask = det_host_tensor(DET_F32, 2, (int64_t[]){1, keys}, NULL);
    for (int64_t i = 0; i < keys; i++)
        ((float *)det_tensor_data(mask))[i] = i < keys / 2 ? 0 : 5.0F;
    struct det_tensor *given = det_cast(e, det_to_device(e, mask), det_tensor_dtype(in[0]));
    det_tensor_unref(mask);
    return det_scaled_dot_product_attention(e, in[0], in[1], in[2], .dropout = 0.998, .mask = given,
                                            .scale = 0.01);
}

static struct det_tensor *with_dropout(struct det_engine *e, struct det_tensor **in)
{
    det_engine_set_rng_state(e, (struct det_rng_state){.seed = 77, .calls = 3});
    return det_scaled_dot_product_attention(e, in[0], in[1], in[2], .dropout = 0.3, .causal = true);
}

/* All three of one tensor that begins at an odd place. */
static struct det_tensor *odd_place(struct det_engine *e, struct det_tensor **in)
{
    const int64_t dims[] = {1, 2, 17, 16};
    struct det_tensor *x = det_reshape(e, det_narrow(e, in[0], 0, 1, 2 * 17 * 16), 4, dims);
    return det_scaled_dot_product_attention(e, x, x, x, .causal = true);
}

/* The formula; PyTorch 1.13 has no public function. */
#define ATTENTION(q, k, v, scale, mask)                                                            \
    "(lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) * " scale " + " mask ", -1) @ v)(" q   \
    ", " k ", " v ")"
#define CAUSAL                              "torch.full((q.shape[-2], k.shape[-2]), -float('inf')).triu(1)"
#define USUAL                               "q.shape[-1] ** -0.5"
#define ATTENTION_OF(as, back, scale, mask) ATTENTION("x0" as, "x1" as, "x2" as, scale, mask) back
#define PACKED(heads, mask)                                                                        \
    "(lambda x: " ATTENTION("x[0]", "x[1]", "x[2]", USUAL, mask) ".transpose(1, 2).flatten(2))"    \
                                                                 "(x0.unflatten(2, (3, " heads     \
                                                                 ", -1)).permute(2, 0, 3, 1, 4))"
#define ANGLES(base, first)                                                                        \
    "torch.outer(torch.arange(x0.shape[-2]) + " first ", " base                                    \
    " ** (-torch.arange(0, x0.shape[-1], 2) / x0.shape[-1]))"

/* clang-format off */
#define APART(type, batch, heads, time, keys, width)                                               \
    OF(type, 1, batch, heads, time, width), OF(type, 1, batch, heads, keys, width),                \
        OF(type, 1, batch, heads, keys, width)
#define MASK(type, ...) {CASE_DIMS(__VA_ARGS__), .constant = true, .dtype = type}
/* What is computed in tiles, of each dtype: `as` and `back` are what PyTorch needs around it. */
#define TILED(name, type, as, back)                                                                \
    {"attention", "one query, " name, {APART(type, 2, 1, 1, 17, 64)}, plain,                       \
     ATTENTION_OF(as, back, USUAL, "0")},                                                          \
    {"attention", "17 queries, " name, {APART(type, 1, 2, 17, 3, 16)}, plain,                      \
     ATTENTION_OF(as, back, USUAL, "0")},                                                          \
    {"attention", "large, causal, 65 and width 80, " name, {APART(type, 1, 2, 65, 65, 80)},        \
     causal, ATTENTION_OF(as, back, USUAL, CAUSAL)},                                               \
    {"attention", "large, 130 and width 64, " name, {APART(type, 1, 2, 65, 130, 64)}, plain,       \
     ATTENTION_OF(as, back, USUAL, "0")},                                                          \
    {"attention", "large, causal, 130 and width 128, " name, {APART(type, 1, 1, 130, 130, 128)},   \
     causal, ATTENTION_OF(as, back, USUAL, CAUSAL)},                                               \
    {"attention", "large, mask, width 25, " name,                                                  \
     {APART(type, 2, 3, 70, 66, 25), MASK(type, 2, 1, 70, 66)}, masked,                            \
     ATTENTION_OF(as, back, "0.3", "x3" as)},                                                      \
    {"attention", "mask, 200 keys, width 25, " name,                                               \
     {APART(type, 1, 1, 70, 200, 25), MASK(type, 1, 1, 70, 200)}, masked,                          \
     ATTENTION_OF(as, back, "0.3", "x3" as)},                                                      \
    {"attention", "large, a third hidden by -inf, " name, {APART(type, 1, 1, 20, 70, 16)},         \
     hidden_by_inf, NULL},                                                                         \
    {"attention", "large, dropout of nearly all, " name, {APART(type, 1, 2, 130, 260, 64)},        \
     heavy_dropout, NULL},                                                                         \
    {"attention", "large dropout, " name, {APART(type, 1, 3, 70, 72, 24)}, with_dropout, NULL},    \
    {"attention", "large, 140, causal, width 64, " name, {APART(type, 1, 2, 140, 197, 64)},        \
     causal, ATTENTION_OF(as, back, USUAL, CAUSAL)},                                               \
    {"attention", "more queries, causal, width 64, " name, {APART(type, 1, 1, 200, 67, 64)},       \
     causal, ATTENTION_OF(as, back, USUAL, CAUSAL)},                                               \
    {"attention", "scale below 0, width 64, " name, {APART(type, 1, 1, 33, 70, 64)}, turned, NULL},\
    {"attention", "steep, width 64, " name, {APART(type, 1, 1, 40, 260, 64)}, steep, NULL},        \
    {"attention", "dropout, 132, width 64, " name, {APART(type, 1, 2, 132, 132, 64)},              \
     with_dropout, NULL},                                                                          \
    {"attention", "dropout, 131 keys, width 128, " name, {APART(type, 1, 1, 70, 131, 128)},        \
     with_dropout, NULL},                                                                          \
    {"attention", "too wide, " name, {APART(type, 1, 2, 5, 6, 136)}, plain,                        \
     ATTENTION_OF(as, back, USUAL, "0")},                                                          \
    {"attention", "packed, large, " name, {OF(type, 1, 2, 70, 144), MASK(type, 70, 70)},           \
     packed_masked, NULL}

const struct op_case cases_attention[] = {
    {"attention", "plain", {IN(2, 3, 5, 4), IN(2, 3, 6, 4), IN(2, 3, 6, 4)}, plain,
     ATTENTION("x0", "x1", "x2", USUAL, "0")},
    {"attention", "causal", {IN(2, 3, 5, 4), IN(2, 3, 5, 4), IN(2, 3, 5, 4)}, causal,
     ATTENTION("x0", "x1", "x2", USUAL, CAUSAL)},
    {"attention", "causal, fewer keys", {IN(1, 1, 7, 4), IN(1, 1, 3, 4), IN(1, 1, 3, 4)}, causal,
     ATTENTION("x0", "x1", "x2", USUAL, CAUSAL)},
    {"attention", "one matrix", {IN(5, 4), IN(3, 4), IN(3, 4)}, plain,
     ATTENTION("x0", "x1", "x2", USUAL, "0")},
    {"attention", "no heads", {IN(3, 5, 4), IN(3, 6, 4), IN(3, 6, 4)}, plain,
     ATTENTION("x0", "x1", "x2", USUAL, "0")},
    {"attention", "mask", {IN(2, 3, 5, 4), IN(2, 3, 6, 4), IN(2, 3, 6, 4), FIXED(5, 6)}, masked,
     ATTENTION("x0", "x1", "x2", "0.3", "x3")},
    {"attention", "mask of heads", {IN(2, 3, 5, 4), IN(2, 3, 6, 4), IN(2, 3, 6, 4),
     FIXED(1, 3, 5, 6)}, masked, ATTENTION("x0", "x1", "x2", "0.3", "x3")},
    {"attention", "bool mask", {IN(2, 3, 5, 4), IN(2, 3, 6, 4), IN(2, 3, 6, 4), FIXED(5, 6)},
     hidden, ATTENTION("x0", "x1", "x2", USUAL,
                       "torch.zeros(5, 6).masked_fill(x3 <= -0.6, -float('inf'))")},
    {"attention", "mask of keys", {IN(2, 3, 5, 4), IN(2, 3, 6, 4), IN(2, 3, 6, 4),
     FIXED(2, 1, 1, 6)}, masked, ATTENTION("x0", "x1", "x2", "0.3", "x3")},
    {"attention", "bool mask of keys", {IN(2, 3, 5, 4), IN(2, 3, 6, 4), IN(2, 3, 6, 4),
     FIXED(2, 1, 1, 6)}, hidden,
     ATTENTION("x0", "x1", "x2", USUAL,
               "torch.zeros(2, 1, 1, 6).masked_fill(x3 <= -0.6, -float('inf'))")},
    {"attention", "a third hidden by a large number", {IN(2, 1, 5, 4), IN(2, 1, 6, 4), IN(2, 1, 6, 4)},
     hidden_by_least, ATTENTION("x0", "x1", "x2", USUAL, EACH_THIRD("-3.3e38"))},
    {"attention", "large, a third hidden by -1e30, f32", {APART(DET_F32, 1, 2, 70, 140, 64)},
     hidden_by_many, NULL},
    {"attention", "large, a third hidden by -1e30, bf16", {APART(DET_BF16, 1, 2, 70, 140, 64)},
     hidden_by_many, NULL},
    {"attention", "dropout", {IN(2, 2, 5, 4), IN(2, 2, 5, 4), IN(2, 2, 5, 4)}, with_dropout, NULL},
    {"attention", "large dropout", {IN(1, 3, 70, 9), IN(1, 3, 70, 9), IN(1, 3, 70, 9)},
     with_dropout, NULL},
    {"attention", "large", {IN(2, 3, 150, 33), IN(2, 3, 201, 33), IN(2, 3, 201, 33)}, plain,
     ATTENTION("x0", "x1", "x2", USUAL, "0")},
    {"attention", "large causal", {IN(2, 3, 150, 33), IN(2, 3, 150, 33), IN(2, 3, 150, 33)}, causal,
     ATTENTION("x0", "x1", "x2", USUAL, CAUSAL)},
    {"attention", "packed", {IN(2, 5, 24)}, packed, PACKED("2", "0")},
    {"attention", "packed, causal", {IN(2, 5, 36)}, packed_causal, PACKED("3", CAUSAL)},
    {"attention", "large packed", {IN(2, 130, 144)}, packed_causal, PACKED("3", CAUSAL)},
    {"attention", "at an odd place", {IN(1 + 2 * 17 * 16)}, odd_place, NULL},
    TILED("f32", DET_F32, "", ""),
    TILED("f16", DET_F16, ".float()", ".half()"),
    TILED("bf16", DET_BF16, ".float()", ".bfloat16()"),
    {"rotary", "pairs", {IN(2, 3, 5, 6)}, rotary,
     "(lambda a, p, q: torch.stack([p * a.cos() - q * a.sin(), p * a.sin() + q * a.cos()], -1)."
     "flatten(-2))(" ANGLES("10000", "0") ", x0[..., 0::2], x0[..., 1::2])"},
    {"rotary", "halves", {IN(3, 5, 8)}, rotary_halves,
     "(lambda a, p, q: torch.cat([p * a.cos() - q * a.sin(), p * a.sin() + q * a.cos()], -1))("
     ANGLES("500", "5") ", x0[..., :4], x0[..., 4:])"},
    {0},
};
