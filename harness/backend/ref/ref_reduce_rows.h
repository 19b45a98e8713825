/*
 * Reductions and running sums over columns of ROW_T, summed in ROW_SUM. Included by
 * ref_reduce_dim.c once for each of the dtypes, which says what these two are, and by ROW(name) how
 * the functions are called.
 */

static ROW_SUM ROW(sum)(const ROW_T *x, struct column c)
{
    ROW_SUM total = 0;
    for (int64_t j = 0; j < c.n; j++)
        total += (ROW_SUM)x[c.first + j * c.step];
    return total;
}

static ROW_SUM ROW(product)(const ROW_T *x, struct column c)
{
    ROW_SUM total = 1;
    for (int64_t j = 0; j < c.n; j++)
        total *= (ROW_SUM)x[c.first + j * c.step];
    return total;
}

/* The first of equals; a NaN is greater and less than all, as in PyTorch. */
static int64_t ROW(extreme)(const ROW_T *x, struct column c, bool greatest)
{
    int64_t at = 0;
    for (int64_t j = 1; j < c.n; j++) {
        ROW_T v = x[c.first + j * c.step], best = x[c.first + at * c.step];
        if ((greatest ? v > best : v < best) || (isnan((double)v) && !isnan((double)best)))
            at = j;
    }
    return at;
}

static void ROW(reduce)(const struct det_call *c, int64_t from, int64_t to)
{
    const ROW_T *x = (const void *)c->in[0]->data;
    ROW_T *y = (void *)c->out[0]->data;
    for (int64_t i = from; i < to; i++) {
        struct column k = column_of(c->in[0], i);
        if (c->a.mode == DET_REDUCE_DIM_SUM) {
            y[i] = (ROW_T)((ROW_SUM)c->a.scale * ROW(sum)(x, k));
            continue;
        }
        if (c->a.mode == DET_REDUCE_DIM_PROD) {
            y[i] = (ROW_T)ROW(product)(x, k);
            continue;
        }
        int64_t at = ROW(extreme)(x, k, c->a.mode == DET_REDUCE_DIM_MAX);
        y[i] = x[k.first + at * k.step];
        ((int64_t *)(void *)c->out[1]->data)[i] = at;
    }
}

static void ROW(cumsum)(const struct det_call *c, int64_t from, int64_t to)
{
    const ROW_T *x = (const void *)c->in[0]->data;
    ROW_T *y = (void *)c->out[0]->data;
    for (int64_t i = from; i < to; i++) {
        struct column k = column_of(c->in[0], i);
        ROW_SUM total = 0;
        for (int64_t j = 0; j < k.n; j++) {
            int64_t at = k.first + (c->a.reverse ? k.n - 1 - j : j) * k.step;
            total += (ROW_SUM)x[at];
            y[at] = (ROW_T)total;
        }
    }
}

#ifdef ROW_HAS_GRADIENT
/* Each element's gradient is dy times the product of the others: those before it from the left,
 * those after it from the right, so that zeros need no division. */
static void ROW(product_back)(const ROW_T *x, struct column k, ROW_T dy, ROW_T *dx)
{
    double before = 1, after = 1;
    for (int64_t j = 0; j < k.n; j++) {
        dx[k.first + j * k.step] = (ROW_T)before;
        before *= x[k.first + j * k.step];
    }
    for (int64_t j = k.n - 1; j >= 0; j--) {
        int64_t i = k.first + j * k.step;
        dx[i] = (ROW_T)(dx[i] * after * dy);
        after *= x[i];
    }
}

static void ROW(reduce_bwd)(const struct det_call *c, int64_t from, int64_t to)
{
    const ROW_T *dy = (const void *)c->in[0]->data;
    ROW_T *dx = (void *)c->out[0]->data;
    for (int64_t i = from; i < to; i++) {
        struct column k = column_of(c->out[0], i);
        if (c->a.mode == DET_REDUCE_DIM_PROD) {
            ROW(product_back)((const void *)c->in[1]->data, k, dy[i], dx);
            continue;
        }
        bool all = c->a.mode == DET_REDUCE_DIM_SUM;
        int64_t at = all ? 0 : in_i64(c, 2)[i];
        for (int64_t j = 0; j < k.n; j++)
            dx[k.first + j * k.step] = all ? (ROW_T)c->a.scale * dy[i] : j == at ? dy[i] : 0;
    }
}
#endif

#undef ROW_T
#undef ROW_SUM
#undef ROW
#undef ROW_HAS_GRADIENT
