/* Losses of single elements, and what becomes of them. */
#include <math.h>

#include "op.h"

static struct det_tensor *reduce_loss(struct det_engine *e, struct det_tensor *y,
                                      enum det_reduction reduction)
{
    return reduction == DET_REDUCE_NONE  ? y
           : reduction == DET_REDUCE_SUM ? det_sum(e, y)
                                         : det_mean(e, y);
}

static struct det_tensor *loss_of_each(struct det_engine *e, enum det_point_loss mode, double scale,
                                       struct det_tensor *const in[3])
{
    struct op_call c = {.op = OP_POINT_LOSS, .in = {in[0], in[1], in[2]}};
    c.a.mode = (int)mode;
    c.a.scale = scale;
    return op_apply(e, &c);
}

static struct det_tensor *of_two(struct det_engine *e, enum det_point_loss mode, double scale,
                                 struct det_tensor *const in[2], enum det_reduction reduction)
{
    struct det_tensor *const all[3] = {in[0], in[1], NULL};
    return reduce_loss(e, loss_of_each(e, mode, scale, all), reduction);
}

struct det_tensor *det_mse_loss_opt(struct det_engine *e, struct det_tensor *x,
                                    struct det_tensor *target,
                                    const struct det_loss_options *options)
{
    struct det_tensor *const in[] = {x, target};
    enum det_reduction reduction = options ? options->reduction : DET_REDUCE_MEAN;
    if (reduction == DET_REDUCE_MEAN && !(x && x->numel == 0))
        return op_apply(e, &(struct op_call){.op = OP_MSE_LOSS, .in = {x, target}});
    return of_two(e, DET_POINT_SQUARE, 0, in, reduction);
}

struct det_tensor *det_l1_loss_opt(struct det_engine *e, struct det_tensor *x,
                                   struct det_tensor *target,
                                   const struct det_loss_options *options)
{
    struct det_tensor *const in[] = {x, target};
    return of_two(e, DET_POINT_ABS, 0, in, options ? options->reduction : DET_REDUCE_MEAN);
}

struct det_tensor *det_smooth_l1_loss_opt(struct det_engine *e, struct det_tensor *x,
                                          struct det_tensor *target,
                                          const struct det_smooth_l1_options *options)
{
    struct det_tensor *const in[] = {x, target};
    double beta = options && options->beta != 0 ? options->beta : 1;
    return of_two(e, DET_POINT_SMOOTH, beta, in, options ? options->reduction : DET_REDUCE_MEAN);
}

struct det_tensor *det_huber_loss_opt(struct det_engine *e, struct det_tensor *x,
                                      struct det_tensor *target,
                                      const struct det_huber_options *options)
{
    struct det_tensor *const in[] = {x, target};
    double delta = options && options->delta != 0 ? options->delta : 1;
    return of_two(e, DET_POINT_HUBER, delta, in, options ? options->reduction : DET_REDUCE_MEAN);
}

static struct det_tensor *cross_entropy(struct det_engine *e, enum det_point_loss mode,
                                        struct det_tensor *const in[2],
                                        const struct det_bce_options *o)
{
    struct det_tensor *positive = o->pos_weight;
    if (positive && in[0])
        positive = det_contiguous(e, det_expand(e, positive, in[0]->ndim, in[0]->dims));
    struct det_tensor *const all[3] = {in[0], in[1], positive};
    struct det_tensor *y = loss_of_each(e, mode, 0, all);
    return reduce_loss(e, o->weight ? det_mul(e, y, o->weight) : y, o->reduction);
}

struct det_tensor *det_bce_loss_opt(struct det_engine *e, struct det_tensor *x,
                                    struct det_tensor *target,
                                    const struct det_bce_options *options)
{
    struct det_bce_options o = options ? *options : (struct det_bce_options){0};
    struct det_tensor *const in[] = {x, target};
    o.pos_weight = NULL;
    return cross_entropy(e, DET_POINT_BCE, in, &o);
}

struct det_tensor *det_bce_with_logits_loss_opt(struct det_engine *e, struct det_tensor *x,
                                                struct det_tensor *target,
                                                const struct det_bce_options *options)
{
    static const struct det_bce_options none;
    struct det_tensor *const in[] = {x, target};
    return cross_entropy(e, DET_POINT_BCE_LOGITS, in, options ? options : &none);
}

struct det_tensor *det_kl_div_loss_opt(struct det_engine *e, struct det_tensor *x,
                                       struct det_tensor *target,
                                       const struct det_kl_div_options *options)
{
    struct det_kl_div_options o = options ? *options : (struct det_kl_div_options){0};
    struct det_tensor *const in[] = {x, target};
    enum det_point_loss mode = o.log_target ? DET_POINT_KL_LOG : DET_POINT_KL;
    if (!o.batch_mean)
        return of_two(e, mode, 0, in, o.reduction);
    struct det_tensor *y = of_two(e, mode, 0, in, DET_REDUCE_SUM);
    double rows = x && x->ndim > 0 ? (double)x->dims[0] : 1;
    return y ? det_scale(e, y, 1 / rows) : NULL;
}

struct det_tensor *det_cosine_similarity(struct det_engine *e, struct det_tensor *a,
                                         struct det_tensor *b, int dim, double eps)
{
    const struct det_dims over = {.n = 1, .dims = {dim}};
    double least = eps > 0 ? eps : 1e-8;
    struct det_tensor *dot = det_sum_over(e, det_mul(e, a, b), &over);
    struct det_tensor *na = det_clamp(e, det_norm_over(e, a, 2, &over), least, INFINITY);
    struct det_tensor *nb = det_clamp(e, det_norm_over(e, b, 2, &over), least, INFINITY);
    return det_div(e, dot, det_mul(e, na, nb));
}
