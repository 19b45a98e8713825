/*
 * TensorBoard's files (docs/contract/loop.md 11): a rank writes them to a directory of this host,
 * and after every boundary the checkpoint store gets what is new, beneath
 * <cluster>/tensorboard/experiment/<id>/trial/<id>. Only the chief's event files are kept. They are
 * a view of the training, not a part of it: what goes wrong is said once, and training goes on.
 */
#include "log.h"
#include "loop_impl.h"
#include "storage.h"

static char *place_of(const struct det_loop_config *c)
{
    return det_asprintf("%s/tensorboard/experiment/%lld/trial/%lld",
                        c->cluster_id ? c->cluster_id : "cluster", (long long)c->experiment_id,
                        (long long)c->trial_id);
}

char *loop_tensorboard_kept(struct loop *l)
{
    struct det_err err;
    if (!l->c->managed)
        return NULL;
    if (loop_open_storage(l, &err) < 0) {
        log_warning("TensorBoard: %s", err.text);
        return NULL;
    }
    det_cleanup(freep) char *place = place_of(l->c);
    return det_asprintf("%s/%s", storage_root(l->storage), place);
}

void loop_tensorboard_keep(struct loop *l)
{
    struct det_err err = {0};
    const char *dir = l->t->tensorboard_dir ? l->t->tensorboard_dir(l->self) : NULL;
    if (!dir || !l->c->managed || l->tensorboard_failed)
        return;
    det_cleanup(freep) char *place = place_of(l->c);
    int rc = loop_open_storage(l, &err);
    if (rc == 0)
        rc = storage_follow_dir(l->storage, place, dir, l->chief ? NULL : "tfevents", &err);
    if (rc < 0) {
        l->tensorboard_failed = true;
        log_warning("TensorBoard's files are no longer kept: %s", err.text);
    }
}
