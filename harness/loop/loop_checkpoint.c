/*
 * Writing a checkpoint (pytorch-api.md 16). The chief writes straight into the store's temporary
 * directory; the store makes it appear whole (write, fsync, rename, directory fsync), and only then
 * is it reported. metadata.json comes last and holds the hash of every other file.
 */
#include "failpoint.h"
#include "fsx.h"
#include "log.h"
#include "loop_alive.h"
#include "loop_impl.h"
#include "loop_report.h"
#include "loop_state.h"
#include "span.h"
#include "storage.h"

#include <fcntl.h>
#include <string.h>

static int write_json(const char *dir, const char *name, const json_t *j, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, name);
    json_write_pretty(&b, j);
    buf_add_ch(&b, '\n');
    return fsx_write_atomic(AT_FDCWD, path, b.p, b.len, 0644, err);
}

static json_t *or_null(const json_t *j)
{
    return j ? json_deep_copy(j) : json_null();
}

static int write_load_data(struct loop *l, const char *dir, struct det_err *err)
{
    const struct det_loop_config *c = l->c;
    bool both = c->experiment_config && c->hparams;
    JSON_OWN j = json_make("{s:s, s:o, s:o, s:s?}", "trial_type",
                           c->trial_type ? c->trial_type : "CTrial", "experiment_config",
                           both ? or_null(c->experiment_config) : json_null(), "hparams",
                           both ? or_null(c->hparams) : json_null(), "trial_cls_spec",
                           c->trial_cls_spec);
    if (c->is_trainer)
        json_set(j, "is_trainer", json_true());
    return write_json(dir, "load_data.json", j, err);
}

static int write_state(struct loop *l, const char *dir, struct det_err *err)
{
    if (l->t->save_state)
        return l->t->save_state(l->self, dir, &l->state, err);
    JSON_OWN j = loop_state_to_json(&l->state);
    return write_json(dir, LOOP_STATE_FILE, j, err);
}

/* The trial's own keys, and over them what the contract has. NULL: the trial's hook failed. */
static json_t *metadata_of(struct loop *l, struct det_err *err)
{
    json_t *j = json_object();
    int rc = l->t->metadata ? l->t->metadata(l->self, j, err) : 0;
    if (rc < 0) {
        json_decref(j);
        return NULL;
    }
    const char *framework = l->c->framework ? l->c->framework : "det-" DET_VERSION;
    json_set(j, "determined_version", json_string(DET_VERSION));
    json_set(j, "steps_completed", json_integer((json_int_t)l->state.batches_trained));
    json_set(j, "framework", json_string(framework));
    json_set(j, "format", json_string("pickle"));
    return j;
}

/* The hashes say whether the files are whole, the uuid whether they are those of this checkpoint. */
static int write_metadata(const char *dir, const char *uuid, const json_t *metadata,
                          struct det_err *err)
{
    JSON_OWN whole = json_deep_copy(metadata);
    json_t *hashes = storage_hash_dir(dir, NULL, err);
    if (!hashes)
        return err && err->code ? err->code : DET_EIO;
    json_set(whole, "uuid", json_string(uuid));
    json_set(whole, "sha256", hashes);
    return write_json(dir, "metadata.json", whole, err);
}

/* Everything that the directory holds, in the contract's order of callbacks. */
static int fill(struct loop *l, const char *dir, const char *uuid, const json_t *metadata,
                struct det_err *err)
{
    det_cleanup(freep) char *code = det_asprintf("%s/code", dir);
    int rc = l->t->save(l->self, dir, err);
    if (rc < 0)
        return det_wrap(err, rc, "save");
    rc = write_state(l, dir, err);
    if (rc == 0)
        rc = write_load_data(l, dir, err);
    if (rc == 0 && l->c->code_dir)
        rc = loop_copy_code(l->c->code_dir, code, storage_root(l->storage), err);
    if (rc == 0)
        rc = LOOP_CALLBACKS(l, on_checkpoint_write_end, dir, err);
    return rc < 0 ? rc : write_metadata(dir, uuid, metadata, err);
}

static int store(struct loop *l, const char *uuid, const json_t *metadata, struct det_err *err)
{
    det_cleanup(freep) char *dir = NULL;
    int rc = storage_begin(l->storage, uuid, &dir, err);
    if (rc < 0)
        return rc;
    FAILPOINT("checkpoint.before_write");
    rc = fill(l, dir, uuid, metadata, err);
    if (rc < 0)
        det_wrap(err, rc, "write %s", dir);
    else
        rc = storage_publish(l->storage, uuid, err);
    if (rc < 0)
        storage_abort(l->storage, uuid, NULL);
    return rc;
}

static int chief_checkpoint(struct loop *l, const char *uuid, struct det_err *err)
{
    JSON_OWN metadata = metadata_of(l, err);
    int rc = metadata ? loop_report_status(l, "checkpointing", err) : DET_EINVAL;
    if (rc == 0)
        rc = loop_open_storage(l, err);
    if (rc == 0)
        rc = store(l, uuid, metadata, err);
    if (rc < 0)
        return rc;
    JSON_OWN files = storage_list(l->storage, uuid, err);
    return files ? loop_report_checkpoint(l, uuid, metadata, files, err) : DET_EIO;
}

int loop_checkpoint(struct loop *l, bool alone, struct det_err *err)
{
    SPAN(SPAN_LOOP, "checkpoint");
    struct loop_agreed a = {0};
    l->in_checkpoint = true;
    l->state.last_ckpt = l->state.batches_trained; /* before saving: the saved state says so */
    loop_alive(PROGRESS_CHECKPOINTING, (uint64_t)l->state.batches_trained);
    int rc = !alone && l->t->before_save ? l->t->before_save(l->self, l->comm, err) : 0;
    if (rc < 0)
        return det_wrap(err, rc, "checkpoint after %lld batches",
                        (long long)l->state.batches_trained);
    if (l->chief) {
        struct det_err e = {0};
        uuid_random(a.uuid);
        loop_agreed_fail(&a, chief_checkpoint(l, a.uuid, &e), &e);
    }
    rc = alone ? det_fail(err, a.rc, "%s", a.text) : loop_agree(l, &a, err);
    if (rc == 0)
        rc = LOOP_CALLBACKS(l, on_checkpoint_upload_end, a.uuid, err);
    loop_alive(PROGRESS_CHECKPOINTING, (uint64_t)l->state.batches_trained);
    if (rc < 0)
        return det_wrap(err, rc, "checkpoint after %lld batches",
                        (long long)l->state.batches_trained);
    l->in_checkpoint = false;
    return 0;
}
