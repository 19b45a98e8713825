/*
 * One checkpoint on its way: the trial's snapshot, written by a thread of its own straight into the
 * store's temporary directory; the store makes it appear whole (write, fsync, rename, directory
 * fsync). metadata.json comes last and holds the hash of every other file. Nothing of the run is
 * touched but what does not change. A trial without snapshots writes its state at the beginning;
 * the rest, all that waits for the disk, is the thread's there too.
 */
#include "loop_save.h"

#include "expconf_hide.h"
#include "failpoint.h"
#include "fsx.h"
#include "log.h"
#include "loop_alive.h"
#include "loop_report.h"
#include "loop_state.h"
#include "storage.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct loop_save {
    struct loop_saved saved;
    struct loop *l;          /* hooks, configuration, store */
    char *dir;               /* the store's; NULL once it is published or dropped */
    struct loop_state state; /* of the moment of the snapshot */
    json_t *hashes;          /* of what the trial has hashed itself, by file */
    void *snapshot;          /* NULL: the trial writes without */
    pthread_t thread;
    bool running;
    bool behind; /* in a thread: no callback sees the files before they are sealed */
    atomic_bool done, cancelled;
    int rc; /* of the thread, with err */
    struct det_err err;
};

/* ---- the files ---- */

/* Not fsynced: publishing does that for all files, and each of its own would wait for the large
 * one. */
static int write_json(const char *dir, const char *name, const json_t *j, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, name);
    json_write_pretty(&b, j);
    buf_add_ch(&b, '\n');
    det_cleanup(det_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "create %s", path);
    int rc = fsx_write_all(fd, b.p, b.len, err);
    return rc < 0 ? det_wrap(err, rc, "write %s", path) : 0;
}

static json_t *or_null(const json_t *j)
{
    return j ? json_deep_copy(j) : json_null();
}

/* A checkpoint goes to whoever may read it; who may sign in to a registry is its owner's alone. */
static json_t *config_without_secrets(const json_t *config)
{
    json_t *copy = or_null(config);
    expconf_hide(copy);
    return copy;
}

static int write_load_data(struct loop *l, const char *dir, struct det_err *err)
{
    const struct det_loop_config *c = l->c;
    /* PyTorch's scripts leave both or neither, and their readers count on it. */
    bool known = !c->is_trainer || (c->experiment_config && c->hparams);
    JSON_OWN j = json_make(
        "{s:s, s:o, s:o, s:s?}", "trial_type", c->trial_type ? c->trial_type : "CTrial",
        "experiment_config", config_without_secrets(known ? c->experiment_config : NULL), "hparams",
        known ? or_null(c->hparams) : json_null(), "trial_cls_spec", c->trial_cls_spec);
    if (c->is_trainer)
        json_set(j, "is_trainer", json_true());
    return write_json(dir, "load_data.json", j, err);
}

static int write_state(struct loop_save *s, struct det_err *err)
{
    const struct det_loop_trial_type *t = s->l->t;
    if (t->save_state)
        return t->save_state(s->l->self, s->dir, &s->state, err);
    JSON_OWN j = loop_state_to_json(&s->state);
    return write_json(s->dir, LOOP_STATE_FILE, j, err);
}

/* The hashes say whether the files are whole, the uuid whether they are those of this
 * checkpoint. */
static int write_metadata(struct loop_save *s, struct det_err *err)
{
    JSON_OWN whole = json_deep_copy(s->saved.metadata);
    json_t *known = s->behind ? s->hashes : NULL;
    json_t *hashes = storage_hash_dir(s->dir, known, err);
    if (!hashes)
        return err && err->code ? err->code : DET_EIO;
    json_object_update(hashes, known);
    json_set(whole, "uuid", json_string(s->saved.uuid));
    if (s->l->c->task_id)
        json_set(whole, STORAGE_TASK, json_string(s->l->c->task_id));
    if (s->l->c->cluster_id)
        json_set(whole, STORAGE_CLUSTER, json_string(s->l->c->cluster_id));
    if (s->l->c->hparams && !json_object_get(whole, "hparams"))
        json_set(whole, "hparams", json_deep_copy(s->l->c->hparams));
    json_set(whole, STORAGE_HASHES, hashes);
    s->saved.hashes = json_incref(hashes);
    return write_json(s->dir, "metadata.json", whole, err);
}

/* Somebody's own working directory may have any size: the state must not be lost for it. */
static int copy_code(struct loop *l, const char *from, const char *to, struct det_err *err)
{
    int rc = loop_copy_code(from, to, storage_root(l->storage), err);
    if (rc != DET_ETOOBIG || l->c->managed)
        return rc;
    l->code_is_too_big = true;
    log_warning("checkpoints have no copy of the code: %s", err->text);
    return fsx_remove_tree(AT_FDCWD, to, err);
}

/* A file of the user's own that cannot be opened is no matter of the store's, unless its folder
 * there takes no file either. */
static int wrap_failure(const struct loop_save *s, int rc, const char *what, struct det_err *err)
{
    bool stored = loop_storage_is_short(err) || access(s->dir, W_OK | X_OK) < 0;
    det_wrap(err, rc, "write %s%s", s->dir, what);
    return stored ? loop_storage_failed(s->l, rc, err) : rc;
}

/* What the trial writes itself. */
static int write_own(struct loop_save *s, struct det_err *err)
{
    const struct det_loop_trial_type *t = s->l->t;
    int rc = t->snapshot ? t->write_snapshot(s->snapshot, s->dir, s->hashes, err)
                         : t->save(s->l->self, s->dir, err);
    if (rc < 0)
        return wrap_failure(s, rc, ": save", err);
    rc = write_state(s, err);
    return rc < 0 ? wrap_failure(s, rc, "", err) : 0;
}

int loop_save_write(struct loop_save *s, struct det_err *err)
{
    const char *code_dir = s->l->c->code_dir;
    det_cleanup(freep) char *code = det_asprintf("%s/code", s->dir);
    int rc = s->l->t->snapshot ? write_own(s, err) : 0;
    if (rc < 0)
        return rc;
    rc = write_load_data(s->l, s->dir, err);
    if (rc == 0 && code_dir && !s->l->code_is_too_big)
        rc = copy_code(s->l, code_dir, code, err);
    return rc < 0 ? wrap_failure(s, rc, "", err) : 0;
}

int loop_save_seal(struct loop_save *s, struct det_err *err)
{
    int rc = write_metadata(s, err);
    if (rc < 0)
        return wrap_failure(s, rc, "", err);
    rc = storage_publish(s->l->storage, s->saved.uuid, err);
    if (rc < 0)
        return loop_storage_failed(s->l, rc, err);
    free(s->dir);
    s->dir = NULL;
    s->saved.files = storage_list(s->l->storage, s->saved.uuid, err);
    return s->saved.files ? 0 : DET_EIO;
}

/* ---- life ---- */

/* A snapshot, or the files that must be written before training goes on. */
static int take_state(struct loop_save *s, struct det_err *err)
{
    struct loop *l = s->l;
    if (l->t->snapshot) {
        int rc = l->t->snapshot(l->self, &s->snapshot, err);
        return rc < 0 ? det_wrap(err, rc, "save") : 0;
    }
    loop_alive_disk(true);
    int rc = write_own(s, err);
    loop_alive_disk(false);
    return rc;
}

int loop_save_begin(struct loop *l, const char *uuid, const json_t *metadata,
                    struct loop_save **ret, struct det_err *err)
{
    struct loop_save *s = det_zalloc(sizeof *s);
    s->l = l;
    s->state = l->state;
    s->saved.steps = l->state.batches_trained;
    s->saved.metadata = json_deep_copy(metadata);
    s->hashes = json_object();
    snprintf(s->saved.uuid, sizeof s->saved.uuid, "%s", uuid);
    int rc = storage_begin(l->storage, uuid, &s->dir, err);
    if (rc < 0)
        loop_storage_failed(l, rc, err);
    if (rc == 0) {
        FAILPOINT("checkpoint.before_write");
        rc = take_state(s, err);
    }
    if (rc < 0) {
        loop_save_destroy(s);
        return rc;
    }
    *ret = s;
    return 0;
}

static void *save_and_seal(void *arg)
{
    struct loop_save *s = arg;
    s->rc = loop_save_write(s, &s->err);
    if (s->rc == 0 && atomic_load(&s->cancelled))
        s->rc = det_fail(&s->err, DET_ESTALE, "this run is no longer the trial's current one");
    if (s->rc == 0)
        s->rc = loop_save_seal(s, &s->err);
    atomic_store(&s->done, true);
    return NULL;
}

int loop_save_start(struct loop_save *s, struct det_err *err)
{
    s->behind = true;
    int rc = thread_start(&s->thread, NULL, save_and_seal, s);
    s->running = rc == 0;
    return rc == 0 ? 0 : det_fail_errno(err, DET_ENOMEM, rc, "a thread for the checkpoint");
}

bool loop_save_done(const struct loop_save *s)
{
    return atomic_load(&s->done);
}

bool loop_save_ok(const struct loop_save *s)
{
    return atomic_load(&s->done) && s->rc == 0;
}

void loop_save_cancel(struct loop_save *s)
{
    atomic_store(&s->cancelled, true);
}

int loop_save_wait(struct loop_save *s, struct det_err *err)
{
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = false;
    if (!atomic_load(&s->done))
        return det_fail(err, DET_ESTATE, "it was never started");
    return s->rc < 0 ? det_fail_as(err, s->rc, &s->err) : 0;
}

const struct loop_saved *loop_save_result(const struct loop_save *s)
{
    return &s->saved;
}

const char *loop_save_dir(const struct loop_save *s)
{
    return s->dir;
}

void loop_save_destroy(struct loop_save *s)
{
    if (!s)
        return;
    if (s->running)
        pthread_join(s->thread, NULL);
    if (s->dir)
        det_ignore(storage_abort(s->l->storage, s->saved.uuid, NULL),
                   "what stays is swept as what a crash leaves");
    if (s->snapshot)
        s->l->t->free_snapshot(s->snapshot);
    json_decref(s->saved.metadata);
    json_decref(s->saved.files);
    json_decref(s->saved.hashes);
    json_decref(s->hashes);
    free(s->dir);
    free(s);
}
