#include "loop_local.h"

#include "clk.h"
#include "fsx.h"
#include "hparam.h"
#include "yamljson.h"
#include <fcntl.h>
#include <inttypes.h>

#define CONFIG_MAX ((size_t)4 << 20)

int loop_local_read(const char *path, json_t **ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    *ret = NULL;
    if (!path) {
        *ret = json_object();
        return 0;
    }
    int rc = fsx_read_file(AT_FDCWD, path, CONFIG_MAX, &text, err);
    if (rc < 0)
        return rc;
    rc = yamljson_parse(buf_str(&text), text.len, ret, err);
    return rc < 0 ? det_wrap(err, rc, "%s", path) : 0;
}

static void set_default(json_t *config, const char *key, json_t *value)
{
    if (json_is_object(config) && !json_object_get(config, key))
        json_object_set_new(config, key, value);
    else
        json_decref(value);
}

static void fill_in(json_t *config, const char *entrypoint)
{
    set_default(config, "name", json_string("local"));
    set_default(config, "entrypoint", json_string(entrypoint));
    set_default(config, "hyperparameters", json_object());
    set_default(config, "checkpoint_storage",
                json_make("{s:s,s:s}", "type", "directory", "container_path", "/"));
    set_default(config, "reproducibility", json_make("{s:i}", "experiment_seed", 0));
    set_default(config, "searcher", json_object());
    set_default(json_obj(config, "searcher"), "name", json_string("single"));
    set_default(json_obj(config, "searcher"), "metric", json_string(LOOP_LOCAL_NO_METRIC));
}

int loop_local_complete(json_t *raw, const char *entrypoint, json_t **ret, struct det_err *err)
{
    const struct expconf_defaults defaults = {.wall_s = clk_wall_us() / 1000000};
    fill_in(raw, entrypoint ? entrypoint : "model_def:Trial");
    return expconf_complete(raw, &defaults, ret, NULL, err);
}

int loop_local_hparams(const struct expconf *view, int64_t point, json_t **ret, struct det_err *err)
{
    struct mt19937 r;
    *ret = NULL;
    if (view->searcher != EXPCONF_GRID) {
        mt19937_seed(&r, view->experiment_seed);
        *ret = hparam_sample(view->hyperparameters, &r);
        return 0;
    }
    size_t n = hparam_grid_points(view->hyperparameters);
    if (point < 0 || (size_t)point >= n)
        return det_fail(err, DET_EINVAL, "--point %" PRId64 ": the grid has points 0 to %zu", point,
                        n - 1);
    *ret = hparam_grid_point(view->hyperparameters, (size_t)point);
    return 0;
}
