/*
 * Starting from a checkpoint (docs/contract/loop.md 10).
 *
 * The chief chooses before anything is built: the checkpoint that the master named, if its files
 * have the hashes that its metadata.json tells, and are its own; else, of this trial's older ones,
 * the newest that is whole.
 */
#include "fsx.h"
#include "log.h"
#include "loop_alive.h"
#include "loop_impl.h"
#include "loop_report.h"
#include "loop_state.h"
#include "storage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define METADATA_MAX (64u << 20)

static json_t *read_json(const char *dir, const char *name, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, name);
    if (fsx_read_file(AT_FDCWD, path, METADATA_MAX, &b, err) < 0)
        return NULL;
    json_t *j = json_parse(buf_str(&b), b.len, err);
    if (!j)
        det_wrap(err, DET_ECORRUPT, "%s", path);
    return j;
}

/* Is it there, whole, as it was written? *ret_steps from its metadata. A checkpoint of another
 * program has no hashes and is taken as it is. */
static int verify_files(struct loop *l, const char *uuid, int64_t *ret_steps, struct det_err *err)
{
    det_cleanup(freep) char *dir = NULL;
    int rc = loop_open_storage(l, err);
    if (rc == 0)
        rc = storage_get(l->storage, uuid, &dir, err);
    if (rc < 0)
        return rc;
    struct det_err e = {0};
    JSON_OWN m = read_json(dir, "metadata.json", &e);
    if (!m)
        return det_fail_as(err, DET_ECORRUPT, &e);
    *ret_steps = json_int(m, "steps_completed", l->c->steps_completed);
    const char *holds = json_str(m, "uuid", uuid);
    if (strcmp(holds, uuid) != 0)
        return det_fail(err, DET_ECORRUPT, "%s holds the files of checkpoint %.40s", dir, holds);
    return storage_verify_dir(dir, m, err);
}

static bool is_damaged(int rc)
{
    return rc == DET_ECORRUPT || rc == DET_ENOENT;
}

/* A store that is away, or went away meanwhile, is no damaged checkpoint: the run ends, and the
 * next one waits for the store. */
static int verify_checkpoint(struct loop *l, const char *uuid, int64_t *ret_steps,
                             struct det_err *err)
{
    struct det_err e = {0};
    int rc = verify_files(l, uuid, ret_steps, &e);
    int ready = is_damaged(rc) && l->storage ? storage_ready(l->storage, err) : 0;
    return ready < 0 ? ready : rc < 0 ? det_fail_as(err, rc, &e) : 0;
}

struct candidate {
    const char *uuid; /* borrowed from the list */
    int64_t steps;
};

/* The newest of the list with at most so many steps that is not refused already. A run that was
 * repeated may have left several of the same step. */
static struct candidate next_candidate(const json_t *list, int64_t most, const json_t *refused)
{
    struct candidate best = {NULL, -1};
    size_t i;
    json_t *c;
    json_array_foreach((json_t *)list, i, c)
    {
        const char *uuid = json_str(c, "uuid", NULL);
        const char *state = json_str(c, "state", "");
        int64_t steps = json_int(json_obj(c, "metadata"), "steps_completed", -1);
        if (!uuid || strstr(state, "COMPLETED") == NULL || steps < 0 || steps > most ||
            json_object_get(refused, uuid))
            continue;
        if (steps > best.steps)
            best = (struct candidate){uuid, steps};
    }
    return best;
}

static void choose_candidate(struct loop_agreed *a, const char *uuid, int64_t steps)
{
    snprintf(a->uuid, sizeof a->uuid, "%s", uuid);
    a->n[0] = steps;
}

/* `why` says what is wrong with the latest one. */
static int fall_back(struct loop *l, struct loop_agreed *a, const struct det_err *why,
                     struct det_err *err)
{
    JSON_OWN j = loop_ask_checkpoints(l, err);
    const json_t *list = json_arr(j, "checkpoints");
    if (!list)
        return det_fail_as(err, DET_ECORRUPT, why);
    JSON_OWN refused = json_make("{s:b}", l->c->latest_checkpoint, true);
    for (;;) {
        struct candidate c = next_candidate(list, l->c->steps_completed, refused);
        struct det_err e = {0};
        int64_t steps = 0;
        if (!c.uuid)
            break;
        int rc = verify_checkpoint(l, c.uuid, &steps, &e);
        if (rc == 0) {
            log_warning("checkpoint %s is damaged (%s); going on from %s after %lld batches",
                        l->c->latest_checkpoint, why->text, c.uuid, (long long)steps);
            choose_candidate(a, c.uuid, steps);
            return 0;
        }
        if (!is_damaged(rc))
            return det_fail(err, rc, "checkpoint %s: %s", c.uuid, e.text);
        log_warning("checkpoint %s is damaged too (%s)", c.uuid, e.text);
        json_set(refused, c.uuid, json_true());
    }
    log_warning("checkpoint %s is damaged (%s) and there is no older one; starting from the "
                "beginning",
                l->c->latest_checkpoint, why->text);
    choose_candidate(a, "", 0);
    return 0;
}

static int choose_chief(struct loop *l, struct loop_agreed *a, struct det_err *err)
{
    const char *uuid = l->c->latest_checkpoint;
    struct det_err why = {0};
    int64_t steps = 0;
    choose_candidate(a, "", 0);
    if (!uuid || !*uuid)
        return 0;
    int rc = verify_checkpoint(l, uuid, &steps, &why);
    if (rc == 0) {
        /* a warm start counts from zero, whatever its checkpoint says */
        choose_candidate(a, uuid, l->c->managed ? l->c->steps_completed : steps);
        return 0;
    }
    bool own = l->c->managed && l->c->steps_completed > 0;
    if (own && is_damaged(rc))
        return fall_back(l, a, &why, err);
    return det_fail(err, rc, "checkpoint %s: %s", uuid, why.text);
}

int loop_restore_choose(struct loop *l, struct det_err *err)
{
    struct loop_agreed a = {0};
    if (l->chief) {
        struct det_err e = {0};
        loop_alive_disk(true);
        loop_agreed_fail(&a, choose_chief(l, &a, &e), &e);
        loop_alive_disk(false);
    }
    int rc = loop_agree(l, &a, err);
    memcpy(l->latest, a.uuid, sizeof l->latest);
    l->state.batches_trained = a.n[0];
    return rc;
}

static int load_state(struct loop *l, const char *dir, struct loop_state *ret, struct det_err *err)
{
    int rc = DET_ENOENT;
    if (l->t->load_state)
        rc = l->t->load_state(l->self, dir, ret, err);
    if (rc != DET_ENOENT)
        return rc;
    JSON_OWN j = read_json(dir, LOOP_STATE_FILE, err);
    return j ? loop_state_from_json(j, ret, err)
             : det_fail(err, DET_ENOENT, "%s: no trial state", dir);
}

/* Another trial's checkpoint gives weights, not a place: all counters start at zero. */
static int take_state(struct loop *l, const char *dir, struct det_err *err)
{
    struct loop_state s = {0};
    int rc = load_state(l, dir, &s, err);
    if (rc < 0 && rc != DET_ENOENT)
        return rc;
    l->state = (struct loop_state){.trial_id = l->c->trial_id};
    if (rc == 0 && s.trial_id == l->c->trial_id)
        l->state = s;
    if (l->state.batches_trained == l->known_validation)
        l->state.last_val = l->state.batches_trained;
    return 0;
}

static int load_latest(struct loop *l, struct det_err *err)
{
    det_cleanup(freep) char *dir = NULL;
    int rc = loop_open_storage(l, err);
    if (rc == 0)
        rc = storage_get(l->storage, l->latest, &dir, err);
    if (rc == 0)
        rc = l->t->load(l->self, dir, err);
    if (rc == 0)
        rc = take_state(l, dir, err);
    if (rc == 0 && l->chief && l->c->managed)
        log_info(l->state.batches_trained
                     ? "goes on from checkpoint %s, after %lld batches"
                     : "begins with the weights of checkpoint %s, at batch %lld",
                 l->latest, (long long)l->state.batches_trained);
    return rc;
}

int loop_restore_load(struct loop *l, struct det_err *err)
{
    if (!l->latest[0])
        return 0;
    loop_alive_disk(true);
    int rc = load_latest(l, err);
    loop_alive_disk(false);
    return rc < 0 ? det_wrap(err, rc, "restore checkpoint %s", l->latest) : 0;
}
