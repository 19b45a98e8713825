#include "loop_state.h"

json_t *loop_state_to_json(const struct loop_state *s)
{
    return json_make("{s:I, s:I, s:I, s:I, s:I, s:I}", "trial_id", (json_int_t)s->trial_id,
                     "last_ckpt", (json_int_t)s->last_ckpt, "step_id", (json_int_t)s->step_id,
                     "last_val", (json_int_t)s->last_val, "batches_trained",
                     (json_int_t)s->batches_trained, "epochs_trained",
                     (json_int_t)s->epochs_trained);
}

int loop_state_from_json(const json_t *j, struct loop_state *ret, struct det_err *err)
{
    struct {
        const char *name;
        int64_t *target;
    } members[] = {
        {"trial_id", &ret->trial_id},
        {"last_ckpt", &ret->last_ckpt},
        {"step_id", &ret->step_id},
        {"last_val", &ret->last_val},
        {"batches_trained", &ret->batches_trained},
        {"epochs_trained", &ret->epochs_trained},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(members); i++) {
        const json_t *v = json_object_get(j, members[i].name);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return det_fail(err, DET_ECORRUPT, "trial state: \"%s\" is missing or no count",
                            members[i].name);
        *members[i].target = json_integer_value(v);
    }
    return 0;
}
