/*
 * Hyperparameters that cannot work are an answer, not a failure: state saved, reported, done
 * (pytorch-api.md 17). Any rank may find it, at any place. It leaves the group with the reason; the
 * others' next collective fails, they ask, and take it for their own outcome: rank 0 saves and
 * reports, the rest just end. Where rank 0 is gone, who found it reports; where it hangs in a
 * collective that is not ours (a framework's), its other thread does, and the master ends the run.
 */
#include "log.h"
#include "loop_impl.h"
#include "loop_report.h"

/* Is this failure but the echo of a rank that left? Then *err is what that one said. */
static bool heard(struct loop *l, int rc, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    if (rc == DET_ESTALE || (rc == 0 && !l->chief) || !comm_left(l->comm, &why))
        return false;
    if (rc < 0 && rc != DET_EPEER)
        log_warning("%s", err->text); /* it may be a trouble of this rank's own */
    det_fail(err, DET_EINVALIDHP, "%s", buf_str(&why));
    return true;
}

int loop_invalid_hp(struct loop *l, int rc, struct det_err *err)
{
    struct det_err e = {0};
    bool told = rc == DET_EINVALIDHP ? comm_leave(l->comm, err->text, &e) == 0 : heard(l, rc, err);
    if (rc != DET_EINVALIDHP && !told)
        return rc;
    log_warning("invalid hyperparameters: %s", err->text);
    l->chief_reports = told && !l->chief;
    if (l->chief && l->started && !l->in_checkpoint && !loop_ckpt_current(l) &&
        loop_checkpoint(l, true, &e) < 0)
        log_warning("%s", e.text);
    return DET_EINVALIDHP;
}

int loop_invalid_hp_report(struct loop *l, struct det_err *err)
{
    return l->chief_reports ? 0 : loop_report_invalid_hp(l, err);
}

void loop_invalid_hp_unheard(void *loop)
{
    struct loop *l = loop;
    log_warning("another rank has left, since hyperparameters cannot work, and rank 0 has not "
                "noticed: what it waits for may never come");
    loop_post_invalid_hp(l, NULL);
}
