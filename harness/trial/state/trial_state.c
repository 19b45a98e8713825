/* state_dict.pth and trial_state.pkl: what of a trial is saved, and in which shape (PyTorch's). */
#include "device_reads.h"
#include "hash.h"
#include "trial_checkpoint.h"
#include "trial_state_impl.h"

#include <stdio.h>

#define STATE_FILE         "state_dict.pth"
#define STATE_FILE_OLD     "state-dict.pth" /* as the documentation once called it */
#define COUNTERS_FILE      "trial_state.pkl"
#define CALLBACK_STATE_MAX ((size_t)1 << 20)

DET_DEFINE_CLEANUP(struct pth_doc *, pth_doc_destroy)

/* ---- saving ---- */

/* What could not be read back must not get into a checkpoint. */
static int check_callback_state(const char *text, struct det_err *err)
{
    if (strlen(text) > CALLBACK_STATE_MAX)
        return det_fail(err, DET_ETOOBIG,
                        "%zu bytes, %zu are allowed: put tensors into the checkpoint by "
                        "det_checkpoint_put_tensor()",
                        strlen(text), CALLBACK_STATE_MAX);
    JSON_OWN j = json_parse(text, strlen(text), err);
    return j ? 0 : DET_EINVAL;
}

static int callbacks_state(struct det_trial_context *ctx, struct pth_doc *doc,
                           struct pth_value *root, struct det_err *err)
{
    struct pth_value *dict = pth_dict(doc);
    for (size_t i = 0; i < ctx->callbacks.n; i++) {
        struct trial_callback *c = ctx->callbacks.v[i];
        det_cleanup(freep) char *text = c->cb.state_dict ? c->cb.state_dict(c->cb.self) : NULL;
        int rc = text ? check_callback_state(text, err) : 0;
        if (rc < 0)
            return det_wrap(err, rc, "state_dict of callback \"%s\"", c->name);
        if (text)
            pth_put(doc, dict, c->name, pth_str(doc, text));
    }
    pth_put(doc, root, "callbacks", dict);
    return 0;
}

static int models_state(struct det_trial_context *ctx, struct state_writer *w,
                        struct pth_value *root)
{
    struct pth_value *list = pth_list(w->doc);
    for (size_t i = 0; i < ctx->models.n; i++) {
        struct pth_value *v = state_of_model(w, ctx->models.v[i]);
        if (!v)
            return DET_ENOMEM;
        pth_push(w->doc, list, v);
    }
    pth_put(w->doc, root, "models_state_dict", list);
    return 0;
}

static int optims_state(struct det_trial_context *ctx, struct state_writer *w,
                        struct pth_value *root)
{
    struct pth_value *list = pth_list(w->doc), *lrs = pth_list(w->doc);
    for (size_t i = 0; i < ctx->optims.n; i++) {
        struct pth_value *v = state_of_optim(w, ctx->optims.v[i]);
        if (!v)
            return DET_ENOMEM;
        pth_push(w->doc, list, v);
    }
    for (size_t i = 0; i < ctx->lrs.n; i++) {
        struct pth_value *v = state_of_lr(w, ctx->lrs.v[i].lr);
        if (!v)
            return DET_ENOMEM;
        pth_push(w->doc, lrs, v);
    }
    pth_put(w->doc, root, "optimizers_state_dict", list);
    pth_put(w->doc, root, "lr_schedulers_state_dict", lrs);
    return 0;
}

struct trial_snapshot {
    struct pth_doc *doc;
    struct pth_value *root;
    struct comm_blobs grads;    /* which the document borrows */
    struct device_reads *reads; /* what the writing waits for */
    struct state_staging *staging;
    void *room; /* to write from: the next snapshot may have another */
};

static int take_tensors(struct det_trial_context *ctx, struct trial_snapshot *s,
                        struct det_err *err)
{
    det_cleanup(state_copies_finish) struct state_copies copies = {0};
    struct state_writer w = {
        .doc = s->doc, .copies = &copies, .reads = s->reads, .staging = s->staging, .err = err};
    int rc = models_state(ctx, &w, s->root);
    if (rc == 0)
        rc = optims_state(ctx, &w, s->root);
    if (rc < 0)
        return rc;
    state_copies_run(&copies, det_engine_threads(ctx->engine));
    return device_reads_begin(s->reads, err);
}

static int take_all(struct det_trial_context *ctx, struct trial_snapshot *s, struct det_err *err)
{
    s->root = pth_dict(s->doc);
    int rc = take_tensors(ctx, s, err);
    if (rc == 0)
        rc = callbacks_state(ctx, s->doc, s->root, err);
    if (rc < 0)
        return rc;
    state_put_rng(ctx, s->doc, s->root);
    state_put_grads(ctx, s->doc, s->root);
    s->grads = ctx->open_grads;
    ctx->open_grads = (struct comm_blobs){0};
    if ((rc = trial_save_scaler(ctx, s->doc, s->root, err)) < 0)
        return rc;
    return trial_checkpoint_hooks(ctx, s->doc, s->root, TRIAL_CHECKPOINT_SAVE, err);
}

/* The first snapshot would else find no room, and the second one fresh pages. */
static void make_room(struct det_trial_context *ctx)
{
    det_cleanup(pth_doc_destroyp) struct pth_doc *doc = pth_doc_create();
    struct state_writer w = {.doc = doc, .staging = &ctx->staging, .measures = true};
    struct pth_value *scratch = pth_dict(doc);
    state_staging_reset(&ctx->staging);
    if (models_state(ctx, &w, scratch) == 0)
        optims_state(ctx, &w, scratch);
}

void trial_snapshot_prepare(struct det_trial_context *ctx)
{
    struct state_staging *s = &ctx->staging;
    if (ctx->config->ranks.rank > 0 || s->batches++ != 1 || s->room)
        return;
    make_room(ctx);
    state_staging_reset(s);
    state_staging_touch(s);
}

int trial_snapshot(struct det_trial_context *ctx, struct trial_snapshot **ret, struct det_err *err)
{
    struct trial_snapshot *s = det_zalloc(sizeof *s);
    s->doc = pth_doc_create();
    s->reads = device_reads_create(ctx->engine);
    s->staging = &ctx->staging;
    if (!s->staging->room && s->staging->wanted == 0)
        make_room(ctx);
    state_staging_reset(s->staging);
    s->room = s->staging->room;
    int rc = take_all(ctx, s, err);
    if (rc < 0)
        trial_snapshot_destroy(s);
    else
        *ret = s;
    return rc;
}

int trial_snapshot_write(const struct trial_snapshot *s, const char *dir, json_t *hashes,
                         struct det_err *err)
{
    char hex[HASH_HEX_MAX];
    det_cleanup(freep) char *path = det_asprintf("%s/" STATE_FILE, dir);
    int rc = device_reads_fetch(s->reads, err);
    if (rc == 0)
        rc = pth_save_hashed(path, s->root, s->room, hex, err);
    if (rc == 0)
        json_set(hashes, STATE_FILE, json_string(hex));
    return rc;
}

void trial_snapshot_destroy(struct trial_snapshot *s)
{
    if (!s)
        return;
    device_reads_destroy(s->reads);
    pth_doc_destroy(s->doc);
    comm_blobs_finish(&s->grads);
    free(s);
}

/* ---- loading ---- */

/* The list under `key`, which must have as many entries as the trial has wrapped. */
static const struct pth_value *state_list(const struct pth_value *root, const char *key, size_t n,
                                          const char *what, struct det_err *err)
{
    const struct pth_value *list = pth_get(root, key);
    if (pth_kind(list) != PTH_LIST)
        det_fail(err, DET_EINVAL, "there is no list %s", key);
    else if (pth_len(list) != n)
        det_fail(err, DET_EINVAL, "%s has %zu entries, but the trial has %zu %s", key,
                 pth_len(list), n, what);
    else
        return list;
    return NULL;
}

static int load_models(struct det_trial_context *ctx, const struct pth_value *root,
                       struct det_err *err)
{
    const struct pth_value *list =
        state_list(root, "models_state_dict", ctx->models.n, "models", err);
    const struct det_weights_options whole = {0};
    int rc = list ? 0 : DET_EINVAL;
    for (size_t i = 0; rc == 0 && i < ctx->models.n; i++)
        if ((rc = state_to_model(pth_at(list, i), ctx->models.v[i], &whole, err)) < 0)
            det_wrap(err, rc, "models_state_dict[%zu]", i);
    return rc;
}

static int load_optims(struct det_trial_context *ctx, const struct pth_value *root,
                       struct det_err *err)
{
    const struct pth_value *list =
        state_list(root, "optimizers_state_dict", ctx->optims.n, "optimizers", err);
    const struct pth_value *lrs =
        list ? state_list(root, "lr_schedulers_state_dict", ctx->lrs.n, "LR schedulers", err)
             : NULL;
    int rc = lrs ? 0 : DET_EINVAL;
    for (size_t i = 0; rc == 0 && i < ctx->optims.n; i++)
        if ((rc = state_to_optim(pth_at(list, i), ctx->optims.v[i], err)) < 0)
            det_wrap(err, rc, "optimizers_state_dict[%zu]", i);
    for (size_t i = 0; rc == 0 && i < ctx->lrs.n; i++)
        if ((rc = state_to_lr(pth_at(lrs, i), ctx->lrs.v[i].lr, err)) < 0)
            det_wrap(err, rc, "lr_schedulers_state_dict[%zu]", i);
    return rc;
}

static void load_callbacks(struct det_trial_context *ctx, const struct pth_value *root)
{
    const struct pth_value *states = pth_get(root, "callbacks");
    for (size_t i = 0; i < ctx->callbacks.n; i++) {
        struct trial_callback *c = ctx->callbacks.v[i];
        const char *text = pth_as_str(pth_get(states, c->name), NULL);
        if (text && c->cb.load_state_dict)
            c->cb.load_state_dict(c->cb.self, text);
    }
}

static int load_file(const char *dir, struct pth_doc *doc, const struct pth_value **ret,
                     struct det_err *err)
{
    det_cleanup(freep) char *path = det_asprintf("%s/" STATE_FILE, dir);
    det_cleanup(freep) char *old = det_asprintf("%s/" STATE_FILE_OLD, dir);
    int rc = pth_load(path, doc, ret, err);
    if (rc == DET_ENOENT && pth_load(old, doc, ret, NULL) == 0)
        return 0;
    return rc;
}

/* Only the models: for inference. */
int trial_load_weights(struct det_trial_context *ctx, const char *dir, struct det_err *err)
{
    det_cleanup(pth_doc_destroyp) struct pth_doc *doc = pth_doc_create();
    const struct pth_value *root = NULL;
    int rc = load_file(dir, doc, &root, err);
    if (rc == 0 && (rc = load_models(ctx, root, err)) < 0)
        det_wrap(err, rc, "%s/" STATE_FILE, dir);
    return rc < 0 ? rc : trial_check(ctx, err);
}

int trial_load(struct det_trial_context *ctx, const char *dir, struct det_err *err)
{
    det_cleanup(pth_doc_destroyp) struct pth_doc *doc = pth_doc_create();
    const struct pth_value *root = NULL;
    int rc = load_file(dir, doc, &root, err);
    if (rc == 0) /* the document is ours: its hooks may change it */
        rc = trial_checkpoint_hooks(ctx, doc, (struct pth_value *)root, TRIAL_CHECKPOINT_LOAD, err);
    if (rc < 0)
        return rc;
    if ((rc = load_models(ctx, root, err)) < 0 || (rc = load_optims(ctx, root, err)) < 0 ||
        (rc = trial_load_scaler(ctx, root, err)) < 0 || (rc = state_take_grads(ctx, root, err)) < 0)
        return det_wrap(err, rc, "%s/" STATE_FILE, dir);
    state_take_rng(ctx, root);
    load_callbacks(ctx, root);
    return trial_check(ctx, err);
}

/* ---- trial_state.pkl ---- */

static const struct {
    const char *name;
    size_t offset;
} counters[] = {
    {"trial_id", offsetof(struct loop_state, trial_id)},
    {"last_ckpt", offsetof(struct loop_state, last_ckpt)},
    {"step_id", offsetof(struct loop_state, step_id)},
    {"last_val", offsetof(struct loop_state, last_val)},
    {"batches_trained", offsetof(struct loop_state, batches_trained)},
    {"epochs_trained", offsetof(struct loop_state, epochs_trained)},
};

int trial_save_counters(const char *dir, const struct loop_state *s, struct det_err *err)
{
    det_cleanup(pth_doc_destroyp) struct pth_doc *doc = pth_doc_create();
    det_cleanup(freep) char *path = det_asprintf("%s/" COUNTERS_FILE, dir);
    struct pth_value *dict = pth_dict(doc);
    for (size_t i = 0; i < DET_ARRAY_LEN(counters); i++) {
        int64_t v = *(const int64_t *)((const char *)s + counters[i].offset);
        pth_put(doc, dict, counters[i].name, pth_int(doc, v));
    }
    return pth_save_pickle(path, dict, err);
}

int trial_load_counters(const char *dir, struct loop_state *ret, struct det_err *err)
{
    det_cleanup(pth_doc_destroyp) struct pth_doc *doc = pth_doc_create();
    det_cleanup(freep) char *path = det_asprintf("%s/" COUNTERS_FILE, dir);
    const struct pth_value *dict = NULL;
    int rc = pth_load_pickle(path, doc, &dict, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < DET_ARRAY_LEN(counters); i++) {
        int64_t v = pth_as_int(pth_get(dict, counters[i].name), -1);
        if (v < 0)
            return det_fail(err, DET_ECORRUPT, "%s: %s is not a count", path, counters[i].name);
        *(int64_t *)((char *)ret + counters[i].offset) = v;
    }
    return 0;
}
