/* A trial from a checkpoint's directory, for inference. */
#include "det/trainer.h"

#include "fsx.h"
#include "model.h"
#include "trial_context.h"
#include "trial_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LOAD_DATA_MAX ((size_t)64 << 20)

struct det_loaded_trial {
    struct det_loop_config config;
    struct det_trial_context *ctx;
    char *kwargs;
};

static int read_load_data(const char *path, struct det_loop_config *c, char **ret_spec,
                          struct det_err *err)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    det_cleanup(freep) char *file = det_asprintf("%s/load_data.json", path);
    int rc = fsx_read_file(AT_FDCWD, file, LOAD_DATA_MAX, &text, err);
    if (rc < 0)
        return det_wrap(err, rc, "%s is not a checkpoint", path);
    JSON_OWN j = json_parse(buf_str(&text), text.len, err);
    if (!j)
        return det_wrap(err, DET_ECORRUPT, "%s", file);
    c->experiment_config = json_incref(json_obj(j, "experiment_config"));
    c->hparams = json_incref(json_obj(j, "hparams"));
    *ret_spec = det_strdup(json_str(j, "trial_cls_spec", NULL));
    return 0;
}

static int override_hparams(struct det_loop_config *c, const char *hparams, struct det_err *err)
{
    if (!hparams)
        return 0;
    JSON_OWN more = json_parse(hparams, strlen(hparams), err);
    if (!json_is_object(more))
        return det_fail(err, DET_EINVAL, "hparams must be a JSON object");
    if (!c->hparams)
        c->hparams = json_object();
    json_object_update(c->hparams, more);
    return 0;
}

/* The class of the checkpoint, from its own copy of the code. */
static int type_of(const char *path, const char *spec, const struct det_trial_type **ret,
                   struct det_err *err)
{
    struct model_entry entry;
    if (!spec)
        return det_fail(err, DET_EINVAL,
                        "%s does not name its trial (it was made by a program of its own): give "
                        "the table as .type",
                        path);
    int rc = model_entry_parse(spec, &entry, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *code = det_asprintf("%s/code", path);
    det_cleanup(freep) char *back = getcwd(NULL, 0);
    if (chdir(code) < 0)
        return det_fail_errno(err, DET_ENOENT, errno, "%s", code);
    rc = model_load(&entry, false, ret, err);
    if (back && chdir(back) < 0)
        return det_fail_errno(err, DET_EIO, errno, "%s", back);
    return rc;
}

static int load_trial(struct det_loaded_trial *t, const char *path,
                      const struct det_load_options *o, struct det_err *err)
{
    det_cleanup(freep) char *spec = NULL;
    const struct det_trial_type *type = o->type;
    int rc = read_load_data(path, &t->config, &spec, err);
    if (rc == 0)
        rc = override_hparams(&t->config, o->hparams, err);
    if (rc == 0)
        rc = type ? trial_type_check(type, "the trial", err) : type_of(path, spec, &type, err);
    if (rc < 0)
        return rc;
    const struct trial_extra extra = {.arg = o->arg, .kwargs = t->kwargs};
    rc = trial_context_create(type, &t->config, NULL, &extra, &t->ctx, err);
    if (rc == 0)
        rc = trial_load_weights(t->ctx, path, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < t->ctx->models.n; i++)
        det_module_train(t->ctx->models.v[i], false);
    det_no_grad_begin(t->ctx->engine);
    return trial_check(t->ctx, err);
}

int det_load_trial_from_checkpoint(const char *path, const struct det_load_options *options,
                                   struct det_loaded_trial **ret, struct det_err *err)
{
    static const struct det_load_options none;
    const struct det_load_options *o = options ? options : &none;
    struct det_loaded_trial *t = det_zalloc(sizeof *t);
    *ret = NULL;
    t->config = (struct det_loop_config)LOOP_CONFIG_INIT;
    t->config.ranks.size = t->config.ranks.local_size = 1;
    t->kwargs = det_strdup(o->kwargs);
    int rc = load_trial(t, path, o, err);
    if (rc < 0) {
        det_loaded_trial_destroy(t);
        return det_wrap(err, rc, "det_load_trial_from_checkpoint(%s)", path);
    }
    *ret = t;
    return 0;
}

struct det_trial_context *det_loaded_trial_context(struct det_loaded_trial *t)
{
    return t->ctx;
}

void *det_loaded_trial_trial(struct det_loaded_trial *t)
{
    return t->ctx->trial;
}

void det_loaded_trial_destroy(struct det_loaded_trial *t)
{
    if (!t)
        return;
    trial_context_destroy(t->ctx);
    loop_config_finish(&t->config);
    free(t->kwargs);
    free(t);
}
