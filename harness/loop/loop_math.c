#include "loop_math.h"

#include <math.h>
#include <string.h>

static bool due_at(const struct loop_unit *u, int64_t step)
{
    for (size_t i = 0; i < u->n_at; i++)
        if (u->at[i] == step)
            return true;
    return !u->at && u->n >= 1 && step % u->n == 0;
}

bool loop_due(struct loop_unit u, int64_t b, int64_t epoch_len)
{
    if (u.kind == LOOP_BATCHES)
        return due_at(&u, b + 1);
    return (b + 1) % epoch_len == 0 && due_at(&u, (b + 1) / epoch_len);
}

int64_t loop_lr_steps(const struct loop_lr *lr, int64_t aggregation, int64_t b, int64_t epoch_len)
{
    int64_t f = lr->frequency;
    if ((b + 1) % aggregation != 0)
        return 0;
    switch (lr->mode) {
    case LOOP_STEP_EVERY_BATCH: return (b + 1) / f - (b + 1 - aggregation) / f;
    case LOOP_STEP_EVERY_OPTIMIZER_STEP: return (b + 1) % f == 0;
    case LOOP_STEP_EVERY_EPOCH: /* an epoch ends before the next update batch */
        return (b + aggregation) / epoch_len / f - b / epoch_len / f;
    case LOOP_STEP_MANUAL: return 0;
    }
    return 0;
}

int loop_same_names(const struct loop_metrics *a, const struct loop_metrics *b, const char *what,
                    struct det_err *err)
{
    for (size_t i = 0; i < a->n; i++) {
        /* as a rule names come in the same order */
        if (i < b->n && strcmp(a->v[i].name, b->v[i].name) == 0)
            continue;
        if (!loop_metrics_find(b, a->v[i].name))
            return det_fail(err, DET_EINVAL, "%s: metric \"%s\" is missing in a later batch", what,
                            a->v[i].name);
    }
    for (size_t i = 0; a->n != b->n && i < b->n; i++)
        if (!loop_metrics_find(a, b->v[i].name))
            return det_fail(err, DET_EINVAL, "%s: metric \"%s\" is not in the first batch", what,
                            b->v[i].name);
    return 0;
}

static bool json_sum(const json_t *j, double *sum, size_t *n)
{
    if (json_is_number(j) || json_is_boolean(j)) {
        *sum += json_is_number(j) ? json_number_value(j) : json_is_true(j);
        ++*n;
        return true;
    }
    if (!json_is_array(j))
        return false;
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)j, i, v)
    {
        if (!json_sum(v, sum, n))
            return false;
    }
    return true;
}

/* Sum and count of all numbers of a value; false if it is none or not numeric. */
static bool metric_sum(const struct loop_metric *x, double *ret_sum, size_t *ret_n)
{
    *ret_sum = 0;
    *ret_n = 0;
    switch (x->kind) {
    case LOOP_METRIC_NONE:
    case LOOP_METRIC_LATER: return false;
    case LOOP_METRIC_F64:
        *ret_sum = x->f64;
        *ret_n = 1;
        return true;
    case LOOP_METRIC_ARRAY:
        for (size_t i = 0; i < x->n; i++)
            *ret_sum += x->array[i];
        *ret_n = x->n;
        return true;
    case LOOP_METRIC_JSON: return json_sum(x->json, ret_sum, ret_n);
    }
    return false;
}

static void average_name(const struct loop_metrics *rows, size_t n, const char *name, size_t at,
                         struct loop_metrics *avg)
{
    double sum = 0, s;
    size_t count = 0, k, width = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct loop_metric *x = at < rows[i].n ? &rows[i].v[at] : NULL;
        if (!x || strcmp(x->name, name) != 0)
            x = loop_metrics_find(&rows[i], name);
        if (!x || x->kind == LOOP_METRIC_NONE)
            continue;
        if (!metric_sum(x, &s, &k) || (width != SIZE_MAX && k != width)) {
            loop_metrics_none(avg, name);
            return;
        }
        width = k;
        sum += s;
        count += k;
    }
    loop_metrics_f64(avg, name, count ? sum / (double)count : NAN);
}

int loop_average(const struct loop_metrics *rows, size_t n, struct loop_metrics *avg,
                 struct det_err *err)
{
    loop_metrics_clear(avg);
    for (size_t i = 1; i < n; i++) {
        int rc = loop_same_names(&rows[0], &rows[i], "inconsistent training metrics", err);
        if (rc < 0)
            return rc;
    }
    for (size_t m = 0; n && m < rows[0].n; m++)
        average_name(rows, n, rows[0].v[m].name, m, avg);
    return 0;
}

/* One batch position, one name: a number, unless all are none (NaN) or a rank's value is no
 * number. */
static void average_position(const struct loop_metrics *const *ranks, size_t n_ranks, size_t i,
                             const char *name, struct loop_metrics *out)
{
    double sum = 0, s;
    size_t count = 0, k;
    for (size_t r = 0; r < n_ranks; r++) {
        const struct loop_metric *x = loop_metrics_find(&ranks[r][i], name);
        if (!x || x->kind == LOOP_METRIC_NONE)
            continue;
        if (!metric_sum(x, &s, &k)) {
            loop_metrics_none(out, name);
            return;
        }
        sum += s;
        count += k;
    }
    loop_metrics_f64(out, name, count ? sum / (double)count : NAN);
}

int loop_average_ranks(const struct loop_metrics *const *ranks, size_t n_ranks, size_t n,
                       struct loop_metrics *out, struct det_err *err)
{
    for (size_t i = 0; i < n; i++) {
        loop_metrics_clear(&out[i]);
        for (size_t r = 1; r < n_ranks; r++) {
            int rc = loop_same_names(&ranks[0][i], &ranks[r][i],
                                     "inconsistent training metrics between ranks", err);
            if (rc < 0)
                return rc;
        }
        for (size_t m = 0; m < ranks[0][i].n; m++)
            average_position(ranks, n_ranks, i, ranks[0][i].v[m].name, &out[i]);
    }
    return 0;
}

/* The rank in whose row the metric is no finite number; false where the mean is NaN because no rank
 * has one. */
static bool find_rank(const struct loop_metrics *const *ranks, size_t n_ranks,
                      struct loop_infinite *f)
{
    bool is_there = false;
    f->rank = -1;
    for (size_t r = 0; r < n_ranks; r++) {
        const struct loop_metric *x = loop_metrics_find(&ranks[r][f->row], f->name);
        double sum;
        size_t n;
        if (!x || !metric_sum(x, &sum, &n))
            continue;
        is_there = true;
        if (isfinite(sum))
            continue;
        f->rank = (int)r;
        f->value = sum;
        break;
    }
    return is_there;
}

struct loop_infinite loop_find_infinite(const struct loop_metrics *const *ranks, size_t n_ranks,
                                        const struct loop_metrics *avg, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < avg[i].n; k++) {
            struct loop_infinite f = {.name = avg[i].v[k].name, .row = i};
            if (loop_metric_scalar(&avg[i].v[k], &f.value) && !isfinite(f.value) &&
                find_rank(ranks, n_ranks, &f))
                return f;
        }
    return (struct loop_infinite){0};
}

static double reduce_pair(enum loop_reduction how, double a, double b)
{
    if (how == LOOP_MAX)
        return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    if (how == LOOP_MIN)
        return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    return a + b;
}

/* All elements of a JSON list or an array, one after the other, into *acc. */
static bool fold_json(const json_t *j, enum loop_reduction how, double *acc, size_t *n)
{
    size_t i;
    json_t *v;
    if (!json_is_array(j)) {
        double d = 0;
        size_t one = 0;
        if (!json_sum(j, &d, &one))
            return false;
        *acc = *n ? reduce_pair(how, *acc, d) : d;
        ++*n;
        return true;
    }
    json_array_foreach((json_t *)j, i, v)
    {
        if (!fold_json(v, how, acc, n))
            return false;
    }
    return true;
}

static bool fold_metric(const struct loop_metric *x, enum loop_reduction how, double *acc,
                        size_t *n)
{
    if (x->kind == LOOP_METRIC_JSON)
        return fold_json(x->json, how, acc, n);
    if (x->kind == LOOP_METRIC_NONE)
        return false;
    const double *v = x->kind == LOOP_METRIC_F64 ? &x->f64 : x->array;
    size_t k = x->kind == LOOP_METRIC_F64 ? 1 : x->n;
    for (size_t i = 0; i < k; i++, ++*n)
        *acc = *n ? reduce_pair(how, *acc, v[i]) : v[i];
    return true;
}

int loop_reduce_rows(const struct loop_metrics *rows, size_t n, const enum loop_reduction *how,
                     struct loop_metrics *out, struct det_err *err)
{
    loop_metrics_clear(out);
    for (size_t m = 0; n && m < rows[0].n; m++) {
        const char *name = rows[0].v[m].name;
        double acc = 0;
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            const struct loop_metric *x = loop_metrics_find(&rows[i], name);
            if (!x || !fold_metric(x, how[m], &acc, &count))
                return det_fail(err, DET_EINVAL,
                                "validation metric \"%s\" of batch %zu is not a number", name, i);
        }
        loop_metrics_f64(out, name, how[m] == LOOP_AVG ? acc / (double)count : acc);
    }
    return 0;
}

int loop_reduce_ranks(const struct loop_partial *ranks, size_t n, const enum loop_reduction *how,
                      struct loop_metrics *out, struct det_err *err)
{
    size_t first = 0;
    loop_metrics_clear(out);
    while (first < n && ranks[first].batches == 0)
        first++;
    for (size_t m = 0; first < n && m < ranks[first].metrics.n; m++) {
        const char *name = ranks[first].metrics.v[m].name;
        double acc = 0, weight = 0, v;
        for (size_t r = first; r < n; r++) {
            if (ranks[r].batches == 0)
                continue;
            const struct loop_metric *x = loop_metrics_find(&ranks[r].metrics, name);
            if (!x || !loop_metric_scalar(x, &v))
                return det_fail(err, DET_EINVAL, "validation metric \"%s\" is missing on rank %zu",
                                name, r);
            if (how[m] == LOOP_AVG)
                acc += v * (double)ranks[r].batches;
            else
                acc = weight > 0 ? reduce_pair(how[m], acc, v) : v;
            weight += (double)ranks[r].batches;
        }
        loop_metrics_f64(out, name, how[m] == LOOP_AVG ? acc / weight : acc);
    }
    return 0;
}
