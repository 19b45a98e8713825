/* Loading a state_dict: everything is checked before anything is changed. */
#include <stdio.h>

#include "buf.h"
#include "map.h"
#include "mem.h"
#include "module.h"

#define NAMES_MAX 8 /* of wrong keys in a message */

DET_DEFINE_CLEANUP(struct map *, map_destroy)

/* Lists in `text` the names of `of` that are not in `in`; how many there are. */
static size_t missing(const struct det_named_tensor *of, size_t n, const struct map *in,
                      struct buf *text)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (map_get(in, of[i].name))
            continue;
        if (++count <= NAMES_MAX)
            buf_addf(text, "%s%s", count > 1 ? ", " : "", of[i].name);
    }
    if (count > NAMES_MAX)
        buf_addf(text, " and %zu more", count - NAMES_MAX);
    return count;
}

static struct map *by_name(const struct det_named_tensor *v, size_t n)
{
    struct map *m = map_create();
    for (size_t i = 0; i < n; i++)
        map_put(m, v[i].name, (void *)&v[i]);
    return m;
}

static int check_names(const struct det_named_tensor *own, size_t own_n,
                       const struct det_named_tensor *given, size_t n, struct det_err *err)
{
    det_cleanup(map_destroyp) struct map *have = by_name(given, n);
    det_cleanup(map_destroyp) struct map *want = by_name(own, own_n);
    det_cleanup(buf_finish) struct buf absent = BUF_INIT, extra = BUF_INIT;
    size_t absent_n = missing(own, own_n, have, &absent);
    size_t extra_n = missing(given, n, want, &extra);
    if (absent_n + extra_n == 0)
        return 0;
    return det_fail(err, DET_EINVAL,
                    "the state does not fit the model: missing in the state: %s; unknown to the "
                    "model: %s",
                    absent_n ? buf_str(&absent) : "nothing", extra_n ? buf_str(&extra) : "nothing");
}

static int check_one(const struct det_named_tensor *own, const struct det_named_tensor *given,
                     struct det_err *err)
{
    char want[160], have[160];
    if (given->tensor && given->tensor->dtype == own->tensor->dtype &&
        det__same_shape(given->tensor, own->tensor))
        return 0;
    return det_fail(err, DET_EINVAL, "%s: the model has %s, the state %s", own->name,
                    det__tensor_text(own->tensor, want, sizeof want),
                    det__tensor_text(given->tensor, have, sizeof have));
}

int det_module_load_state(struct det_module *m, const struct det_named_tensor *state, size_t n,
                          bool strict, struct det_err *err)
{
    size_t own_n;
    const struct det_named_tensor *own = det_module_state(m, &own_n), *given;
    det_cleanup(map_destroyp) struct map *have = by_name(state, n);
    if (!m)
        return det_fail(err, DET_EINVAL, "the model is NULL");
    int rc = strict ? check_names(own, own_n, state, n, err) : 0;
    for (size_t i = 0; rc == 0 && i < own_n; i++)
        if ((given = map_get(have, own[i].name)))
            rc = check_one(&own[i], given, err);
    for (size_t i = 0; rc == 0 && i < own_n; i++)
        if ((given = map_get(have, own[i].name)))
            rc = det__tensor_assign(own[i].tensor, given->tensor, err);
    return rc;
}
