/*
 * A checkpoint at a boundary (docs/contract/loop.md 10): the chief takes a snapshot and has it
 * written in the background (loop_save.c), while all ranks train on. At most one is being written:
 * the next one waits for it, and so does the end of the run. A trial that cannot take snapshots
 * saves its state first. Where the trial's callbacks want to be called when a checkpoint is
 * written, it is written before training goes on.
 */
#include "log.h"
#include "loop_alive.h"
#include "loop_impl.h"
#include "loop_report.h"
#include "loop_save.h"
#include "span.h"
#include "storage.h"

#include <string.h>

static bool has_write_hooks(const struct loop *l)
{
    for (size_t i = 0; i < l->n_callbacks; i++)
        if (l->callbacks[i].on_checkpoint_write_end || l->callbacks[i].on_checkpoint_upload_end)
            return true;
    return false;
}

int loop_checkpoint_init(struct loop *l, struct det_err *err)
{
    float waits = has_write_hooks(l);
    int rc = comm_allreduce_mean_f32(l->comm, &waits, 1, err);
    l->checkpoints_wait = waits > 0;
    return rc;
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

/* The row of a checkpoint that is written; drops it. */
static int report_saved(struct loop *l, struct loop_save *done, struct det_err *err)
{
    const struct loop_saved *s = loop_save_result(done);
    struct loop_files files = {s->files, STORAGE_HASHES, s->hashes};
    int rc = loop_report_checkpoint(l, s->uuid, s->steps, s->metadata, &files, err);
    loop_save_destroy(done);
    return rc;
}

static int finish_saving(struct loop *l, struct det_err *err)
{
    struct loop_save *s = det_take(l->saving);
    if (!s)
        return 0;
    loop_alive_disk(true);
    int rc = loop_save_wait(s, err);
    loop_alive_disk(false);
    if (rc == 0)
        return report_saved(l, s, err);
    loop_save_destroy(s);
    return rc;
}

int loop_checkpoint_poll(struct loop *l, struct det_err *err)
{
    if (!l->saving || !loop_save_done(l->saving))
        return 0;
    int rc = finish_saving(l, err);
    return rc < 0 ? det_wrap(err, rc, "checkpoint") : 0;
}

int loop_checkpoint_finish(struct loop *l, struct det_err *err)
{
    struct loop_agreed a = {0};
    if (l->checkpoints_wait)
        return 0;
    if (l->chief) {
        struct det_err e = {0};
        loop_agreed_fail(&a, finish_saving(l, &e), &e);
    }
    int rc = loop_agree(l, &a, err);
    return rc < 0 ? det_wrap(err, rc, "checkpoint") : 0;
}

void loop_checkpoint_abandon(struct loop *l, int why)
{
    struct det_err e = {0};
    if (!l->saving)
        return;
    if (why == DET_ESTALE)
        loop_save_cancel(l->saving);
    if (finish_saving(l, &e) < 0 && why != DET_ESTALE)
        log_warning("checkpoint: %s", e.text);
}

/* Written while training waits: with the callbacks that may add files, then reported. */
static int save_now(struct loop *l, struct loop_save *s, struct det_err *err)
{
    loop_alive_disk(true);
    int rc = loop_save_write(s, err);
    if (rc == 0)
        rc = LOOP_CALLBACKS(l, on_checkpoint_write_end, loop_save_dir(s), err);
    if (rc < 0)
        loop_storage_saw(l, err);
    if (rc == 0)
        rc = loop_save_seal(s, err);
    loop_alive_disk(false);
    if (rc == 0)
        return report_saved(l, s, err);
    loop_save_destroy(s);
    return rc;
}

static int chief_checkpoint(struct loop *l, const char *uuid, bool waits, struct det_err *err)
{
    struct loop_save *s = NULL;
    int rc = finish_saving(l, err);
    JSON_OWN metadata = rc == 0 ? metadata_of(l, err) : NULL;
    if (!metadata)
        return rc < 0 ? rc : DET_EINVAL;
    rc = loop_report_status(l, "checkpointing", err);
    if (rc == 0)
        rc = loop_storage_await(l, err);
    if (rc == 0)
        rc = loop_save_begin(l, uuid, metadata, &s, err);
    if (rc < 0)
        return rc;
    if (waits)
        return save_now(l, s, err);
    l->saving = s;
    return loop_save_start(s, err);
}

/* What ranks hand to the chief may be as large as their models, and goes through its disk. */
static int before_save(struct loop *l, struct det_err *err)
{
    if (!l->t->before_save)
        return 0;
    loop_alive_disk(true);
    int rc = l->t->before_save(l->self, l->comm, err);
    loop_alive_disk(false);
    return rc;
}

int loop_checkpoint(struct loop *l, bool alone, struct det_err *err)
{
    SPAN(SPAN_LOOP, "checkpoint");
    struct loop_agreed a = {0};
    bool waits = alone || l->checkpoints_wait;
    loop_alive(PROGRESS_CHECKPOINTING, (uint64_t)l->state.batches_trained);
    int rc = alone ? 0 : before_save(l, err);
    if (rc < 0)
        return det_wrap(err, rc, "checkpoint after %lld batches",
                        (long long)l->state.batches_trained);
    l->in_checkpoint = true; /* what before_save gathers may break: nothing is being saved yet */
    l->state.last_ckpt = l->state.batches_trained; /* before saving: the saved state says so */
    if (l->chief) {
        struct det_err e = {0};
        uuid_random(a.uuid);
        loop_agreed_fail(&a, chief_checkpoint(l, a.uuid, waits, &e), &e);
    }
    rc = alone ? loop_agreed_end(&a, "", err) : loop_agree(l, &a, err);
    if (rc == 0 && waits)
        rc = LOOP_CALLBACKS(l, on_checkpoint_upload_end, a.uuid, err);
    loop_alive(PROGRESS_CHECKPOINTING, (uint64_t)l->state.batches_trained);
    if (rc < 0)
        return det_wrap(err, rc, "checkpoint after %lld batches",
                        (long long)l->state.batches_trained);
    l->in_checkpoint = false;
    return 0;
}
