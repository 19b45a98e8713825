/* Checkpoints out of sight: renamed, so that nothing is copied and a crash leaves one or the other
 * name. Every step may be repeated. */
#include "failpoint.h"
#include "fsx.h"
#include "mem.h"
#include "storage.h"
#include "storage_impl.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static int move_checkpoint(struct storage *s, const char *from, const char *to, struct det_err *err)
{
    FAILPOINT("quarantine.before_rename");
    if (renameat(s->fd, from, s->fd, to) < 0)
        return storage_errno("rename", s->root, from, err);
    FAILPOINT("quarantine.before_fsync");
    return fsync(s->fd) < 0 ? storage_errno("fsync", s->root, "", err) : 0;
}

int storage_quarantine(struct storage *s, const char *uuid, struct det_err *err)
{
    int rc = storage_abort(s, uuid, err);
    if (rc == 0)
        rc = storage_exists(s, uuid, err);
    if (rc < 0)
        return rc == DET_ENOENT ? 0 : rc;
    det_cleanup(freep) char *gone = storage_hidden_name(uuid, STORAGE_GONE_SUFFIX);
    return move_checkpoint(s, uuid, gone, err);
}

int storage_restore(struct storage *s, const char *uuid, struct det_err *err)
{
    int rc = storage_exists(s, uuid, err);
    if (rc != DET_ENOENT)
        return rc;
    det_cleanup(freep) char *gone = storage_hidden_name(uuid, STORAGE_GONE_SUFFIX);
    return move_checkpoint(s, gone, uuid, err);
}

int storage_purge(struct storage *s, const char *uuid, struct det_err *err)
{
    int rc = storage_delete(s, uuid, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *gone = storage_hidden_name(uuid, STORAGE_GONE_SUFFIX);
    FAILPOINT("quarantine.before_remove");
    rc = fsx_remove_tree(s->fd, gone, err);
    return rc < 0 ? det_wrap(err, rc, "purge checkpoint in %s", s->root) : 0;
}
