/* A checkpoint's dictionary in the hands of a callback, and metadata. */
#include "trial_checkpoint.h"

#include "device_reads.h"
#include "trial_crash.h"
#include "trial_state_impl.h"

#include <string.h>

/* ---- JSON and the values of a .pth file ---- */

static struct pth_value *from_json(struct pth_doc *doc, const json_t *j)
{
    struct pth_value *v;
    const char *key;
    json_t *x;
    size_t i;
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        v = pth_dict(doc);
        json_object_foreach((json_t *)j, key, x) pth_put(doc, v, key, from_json(doc, x));
        return v;
    case JSON_ARRAY:
        v = pth_list(doc);
        json_array_foreach((json_t *)j, i, x) pth_push(doc, v, from_json(doc, x));
        return v;
    case JSON_STRING: return pth_str(doc, json_string_value(j));
    case JSON_INTEGER: return pth_int(doc, json_integer_value(j));
    case JSON_REAL: return pth_float(doc, json_real_value(j));
    case JSON_TRUE:
    case JSON_FALSE: return pth_bool(doc, json_is_true(j));
    case JSON_NULL: break;
    }
    return pth_none(doc);
}

static json_t *to_json(const struct pth_value *v);

/* Files of other programs may hold bytes that are no UTF-8. */
static json_t *text_to_json(const char *s)
{
    return json_lossy(s, strlen(s));
}

static json_t *dict_to_json(const struct pth_value *v)
{
    json_t *o = json_object();
    for (size_t i = 0; i < pth_len(v); i++) {
        const struct pth_value *key = NULL, *x = pth_item(v, i, &key);
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)pth_as_int(key, 0));
        JSON_OWN name = text_to_json(pth_as_str(key, number));
        json_set(o, json_string_value(name), to_json(x));
    }
    return o;
}

static json_t *seq_to_json(const struct pth_value *v)
{
    json_t *a = json_array();
    for (size_t i = 0; i < pth_len(v); i++)
        json_array_append_new(a, to_json(pth_at(v, i)));
    return a;
}

static json_t *to_json(const struct pth_value *v)
{
    switch (pth_kind(v)) {
    case PTH_BOOL: return json_boolean(pth_as_int(v, 0));
    case PTH_INT: return json_integer((json_int_t)pth_as_int(v, 0));
    case PTH_FLOAT: return json_double(pth_as_float(v, 0));
    case PTH_STR: return text_to_json(pth_as_str(v, ""));
    case PTH_LIST:
    case PTH_TUPLE: return seq_to_json(v);
    case PTH_DICT: return dict_to_json(v);
    case PTH_NONE:
    case PTH_BYTES: /* these have no form in JSON */
    case PTH_TENSOR:
    case PTH_OPAQUE:
    case PTH_KIND_COUNT: break;
    }
    return json_null();
}

/* ---- the dictionary ---- */

bool det_checkpoint_has(const struct det_checkpoint *c, const char *key)
{
    return pth_get(c->root, key) != NULL;
}

void det_checkpoint_remove(struct det_checkpoint *c, const char *key)
{
    pth_remove(c->root, key);
}

void det_checkpoint_put_json(struct det_checkpoint *c, const char *key, const char *json)
{
    struct det_err err = {0};
    JSON_OWN j = json_parse(json, strlen(json), &err);
    if (j)
        pth_set(c->doc, c->root, key, from_json(c->doc, j));
    else
        trial_fail(c->ctx, DET_EINVAL, "det_checkpoint_put_json(\"%s\"): %s", key, err.text);
}

const char *det_checkpoint_get_json(struct det_checkpoint *c, const char *key)
{
    const struct pth_value *v = pth_get(c->root, key);
    if (!v)
        return NULL;
    JSON_OWN j = to_json(v);
    det_cleanup(freep) char *text = json_text(j);
    return pth_as_str(pth_str(c->doc, text), NULL);
}

void det_checkpoint_put_tensor(struct det_checkpoint *c, const char *key,
                               const struct det_tensor *t)
{
    struct state_writer w = {.doc = c->doc, .err = det_trial_err(c->ctx)};
    struct pth_value *v = t ? state_of_tensor(&w, t) : NULL;
    if (v)
        pth_set(c->doc, c->root, key, v);
    else if (!t)
        trial_fail(c->ctx, DET_EINVAL, "det_checkpoint_put_tensor(\"%s\"): the tensor is NULL",
                   key);
}

static struct det_tensor *lend_tensor(struct det_checkpoint *c, const struct pth_value *v)
{
    struct det_err err = {0};
    if (pth_kind(v) != PTH_TENSOR)
        return NULL;
    struct det_tensor *t = NULL;
    if (device_reads_await(c->ctx->engine, &err) == 0)
        t = state_tensor(v, pth_to_dtype(pth_tensor_dtype(v)), &err);
    if (t)
        vec_push(&c->lent, t);
    else
        trial_fail(c->ctx, err.code, "a tensor of the checkpoint: %s", err.text);
    return t;
}

struct det_tensor *det_checkpoint_get_tensor(struct det_checkpoint *c, const char *key)
{
    return lend_tensor(c, pth_get(c->root, key));
}

static struct pth_value *find_weights(const struct det_checkpoint *c, size_t model)
{
    return (struct pth_value *)pth_at(pth_get(c->root, "models_state_dict"), model);
}

bool det_checkpoint_rename_weight(struct det_checkpoint *c, size_t model, const char *name,
                                  const char *to)
{
    return pth_rename(c->doc, find_weights(c, model), name, to);
}

struct det_tensor *det_checkpoint_weight(struct det_checkpoint *c, size_t model, const char *name)
{
    return lend_tensor(c, pth_get(find_weights(c, model), name));
}

/* ---- the hooks ---- */

int trial_checkpoint_hooks(struct det_trial_context *ctx, struct pth_doc *doc,
                           struct pth_value *root, enum trial_checkpoint_moment moment,
                           struct det_err *err)
{
    bool saving = moment == TRIAL_CHECKPOINT_SAVE;
    struct det_checkpoint c = {.ctx = ctx, .doc = doc, .root = root};
    for (size_t i = 0; i < ctx->callbacks.n; i++) {
        const struct det_callback *cb = &ctx->callbacks.v[i]->cb;
        void (*hook)(void *self, struct det_checkpoint *c) =
            saving ? cb->on_checkpoint_save_start : cb->on_checkpoint_load_start;
        if (!hook)
            continue;
        trial_crash_mark(saving ? "on_checkpoint_save_start of a callback"
                                : "on_checkpoint_load_start of a callback",
                         -1);
        hook(cb->self, &c);
    }
    for (size_t i = 0; i < c.lent.n; i++)
        det_tensor_unref(c.lent.v[i]);
    vec_free(&c.lent);
    return trial_check(ctx, err);
}

/* ---- metadata ---- */

void det_trial_set_metadata(struct det_trial_context *ctx, const char *key, const char *json)
{
    struct det_err err = {0};
    if (!ctx->metadata)
        ctx->metadata = json_object();
    if (!json) {
        json_object_del(ctx->metadata, key);
        return;
    }
    json_t *j = json_parse(json, strlen(json), &err);
    if (j)
        json_set(ctx->metadata, key, j);
    else
        trial_fail(ctx, DET_EINVAL, "det_trial_set_metadata(\"%s\"): %s", key, err.text);
}
