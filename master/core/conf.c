#include "conf.h"

#include "length.h"
#include <math.h>
#include <string.h>

/* custom has no max_length; its unit is a key of its own. */
static int read_length(const json_t *s, struct conf *ret, struct det_err *err)
{
    struct length l;
    if (ret->search.kind == SEARCH_CUSTOM) {
        ret->unit = json_str(s, "unit", "");
        return 0;
    }
    int rc = length_from_json(json_object_get(s, "max_length"), &l, err);
    if (rc < 0)
        return det_wrap(err, rc, "searcher.max_length");
    ret->unit = length_unit_name(l.unit);
    ret->search.max_length = l.n;
    return 0;
}

static int read_search(const json_t *config, struct conf *ret, struct det_err *err)
{
    const json_t *s = json_obj(config, "searcher");
    const char *name = json_str(s, "name", ""), *mode = json_str(s, "mode", "standard");
    ret->search = (struct search_conf){
        .max_trials = json_int(s, "max_trials", 1),
        .max_concurrent = json_int(s, "max_concurrent_trials", 16),
        .seed = (uint32_t)json_int(json_obj(config, "reproducibility"), "experiment_seed", 0),
        .space = json_obj(config, "hyperparameters"),
        .larger_is_better = !json_flag(s, "smaller_is_better", true),
        .stop_once = json_flag(s, "stop_once", false),
        .divisor = json_num(s, "divisor", 4),
        .num_rungs = json_int(s, "num_rungs", 1),
        .max_rungs = json_int(s, "max_rungs", 5),
        .bracket_rungs = json_arr(s, "bracket_rungs"),
    };
    if (!search_kind_parse(name, &ret->search.kind))
        return det_fail(err, DET_EINVAL, "searcher.name: there is no searcher %s for experiments",
                        name);
    if (!search_mode_parse(mode, &ret->search.mode))
        return det_fail(err, DET_EINVAL,
                        "searcher.mode: %s; expected aggressive, standard or conservative", mode);
    return read_length(s, ret, err);
}

int conf_read(const json_t *config, struct conf *ret, struct det_err *err)
{
    const json_t *r = json_obj(config, "resources");
    *ret = (struct conf){
        .name = json_str(config, "name", ""),
        .pool = json_str(r, "resource_pool", ""),
        .slots = json_int(r, "slots_per_trial", 1),
        .max_restarts = json_int(config, "max_restarts", 5),
        .max_slots = json_int(r, "max_slots", -1),
        .priority = (int)json_int(r, "priority", 0),
        .weight = json_num(r, "weight", 1),
        .holds = json_flag(config, "hold_failing_search", true),
    };
    if (ret->slots < 0 || ret->slots > 1000000)
        return det_fail(err, DET_EINVAL, "resources.slots_per_trial: %lld; expected 0 to 1000000",
                        (long long)ret->slots);
    if (!(ret->weight > 0 && isfinite(ret->weight)))
        ret->weight = 1;
    return read_search(config, ret, err);
}

json_t *conf_trim(const json_t *config)
{
    static const char *const keys[] = {"name", "hyperparameters", "searcher", "log_policies"};
    json_t *pool = json_object_get(json_obj(config, "resources"), "resource_pool");
    json_t *j = json_object();
    for (size_t i = 0; i < DET_ARRAY_LEN(keys); i++)
        if (json_object_get(config, keys[i]))
            json_set(j, keys[i], json_incref(json_object_get(config, keys[i])));
    if (pool)
        json_set(j, "resources", json_make("{s:O}", "resource_pool", pool));
    return j;
}

int conf_check_max_slots(const struct conf *f, int64_t max_slots, struct det_err *err)
{
    if (max_slots < 0 || max_slots >= f->slots)
        return 0;
    return det_fail(
        err, DET_EINVAL,
        "resources.max_slots: %lld is less than the %lld slots of one trial, so none could "
        "ever start; write at least that",
        (long long)max_slots, (long long)f->slots);
}
