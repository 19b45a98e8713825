#include "trial_late.h"

#include "engine.h"

#include <math.h>

#define LATE_PLACES 512

/* Place `i`, as a scalar. */
static struct det_tensor place_at(const struct det_tensor *all, size_t i)
{
    struct det_tensor t = *all;
    t.data = (char *)t.data + i * sizeof(double);
    t.ndim = 0;
    t.numel = 1;
    return t;
}

static bool add_places(struct trial_late *late, struct det_engine *e)
{
    struct det_tensor *t = NULL;
    struct det_err err;
    if (det__tensor_new(e, DET_F64, DET_LAYOUT_PLAIN, 1, (int64_t[]){LATE_PLACES}, &t, &err) < 0)
        return false; /* without memory for it the number is read at once */
    vec_push(&late->places, t);
    return true;
}

bool trial_late_put(struct trial_late *late, struct det_engine *e, const struct det_tensor *t,
                    size_t *ret_ticket)
{
    struct det_err err;
    if (e->backend->host_memory || e->err.code < 0 || t->engine != e || det__is_dead(t) ||
        t->ndim != 0)
        return false;
    if (late->n == late->places.n * LATE_PLACES && !add_places(late, e))
        return false;
    struct det_tensor to = place_at(late->places.v[late->n / LATE_PLACES], late->n % LATE_PLACES);
    const struct det_call copy = {.kernel = DET_KERNEL_COPY, .in = {t}, .out = {&to}};
    if (det__run(e, &copy, &err) < 0) {
        det__keep_error(e, &err); /* a device may say it only once */
        return false;
    }
    *ret_ticket = late->n++;
    return true;
}

int trial_late_read(struct trial_late *late, const double **ret, size_t *ret_n, struct det_err *err)
{
    size_t n = late->n;
    int rc = 0;
    vec_reserve(&late->values, late->places.n * LATE_PLACES);
    for (size_t i = 0; rc == 0 && i * LATE_PLACES < n; i++)
        rc = det_tensor_read(late->places.v[i], late->values.v + i * LATE_PLACES,
                             LATE_PLACES * sizeof(double), err);
    late->n = 0;
    *ret = late->values.v;
    *ret_n = rc < 0 ? 0 : n;
    return rc;
}

double trial_late_look(struct trial_late *late, size_t ticket)
{
    double all[LATE_PLACES];
    struct det_err err;
    if (ticket >= late->n)
        return NAN;
    const struct det_tensor *t = late->places.v[ticket / LATE_PLACES];
    if (det_tensor_read(t, all, sizeof all, &err) < 0) {
        det__keep_error(t->engine, &err); /* a device may say it only once */
        return NAN;
    }
    return all[ticket % LATE_PLACES];
}

void trial_late_finish(struct trial_late *late)
{
    for (size_t i = 0; i < late->places.n; i++)
        det_tensor_unref(late->places.v[i]);
    vec_free(&late->places);
    vec_free(&late->values);
    late->n = 0;
}
