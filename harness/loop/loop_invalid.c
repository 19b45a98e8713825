/*
 * Hyperparameters that cannot work are an answer, not a failure: state saved, reported, done
 * (docs/contract/loop.md 9). Any rank may find it, at any place. It leaves the group with the
 * reason; the others look for that between batches, and their next collective fails: they take it
 * for their own outcome. Rank 0 saves and reports, the rest just end. Where rank 0 is gone, who
 * found it reports; where it hangs in a collective that is not ours (a framework's), its other
 * thread does, and the master ends the run: that is for a rank 0 without a sign of life, and for no
 * slow one.
 */
#include "log.h"
#include "loop_alive.h"
#include "loop_impl.h"
#include "loop_report.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

int loop_invalid_metric(struct loop *l, const char *group, int64_t batch, struct det_err *err)
{
    const struct loop_infinite *f = &l->infinite;
    char what[64], on[32] = "";
    if (l->said_nan || !f->name)
        return 0;
    if (l->size > 1 && f->rank >= 0)
        snprintf(on, sizeof on, " on rank %d", f->rank);
    snprintf(what, sizeof what, "%s%s at batch %lld", isnan(f->value) ? "NaN" : "infinite", on,
             (long long)batch);
    l->said_nan = true;
    if (l->c->stop_on_nan)
        return det_fail(err, DET_EINVALIDHP, "%s metric \"%s\" is %s", group, f->name, what);
    if (l->chief)
        log_warning("%s metric \"%s\" is %s, for the first time in this run; "
                    "stop_on_nan: true in the configuration would end the trial here",
                    group, f->name, what);
    return 0;
}

/* Is this failure but the echo of a rank that left? Then *err is what that one said. */
static bool is_echo(struct loop *l, int rc, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    if (rc == DET_ESTALE || (rc == 0 && !l->chief) || !comm_left(l->comm, &why))
        return false;
    if (rc < 0 && rc != DET_EPEER)
        log_warning("%s", err->text); /* it may be a trouble of this rank's own */
    det_fail(err, DET_EINVALIDHP, "%s", buf_str(&why));
    return true;
}

static void save_checkpoint(struct loop *l)
{
    struct det_err e = {0};
    if (l->t->forget_failure)
        l->t->forget_failure(l->self);
    if (loop_checkpoint(l, true, &e) < 0)
        log_warning("%s", e.text);
}

int loop_invalid_hp(struct loop *l, int rc, struct det_err *err)
{
    struct det_err e = {0};
    bool told =
        rc == DET_EINVALIDHP ? comm_leave(l->comm, err->text, &e) == 0 : is_echo(l, rc, err);
    if (rc != DET_EINVALIDHP && !told)
        return rc;
    log_warning("invalid hyperparameters: %s", err->text);
    l->chief_reports = told && !l->chief;
    if (l->chief && l->started && !l->in_checkpoint && !loop_ckpt_current(l))
        save_checkpoint(l);
    return DET_EINVALIDHP;
}

int loop_invalid_hp_report(struct loop *l, struct det_err *err)
{
    return l->chief_reports ? 0 : loop_report_invalid_hp(l, err);
}

/* A batch, or a step between batches, may have taken long before: so may the one under way. */
static int64_t patience_ms(int unheard_ms)
{
    int64_t usual_ms = 2 * loop_alive_longest_ms();
    return usual_ms > unheard_ms ? usual_ms : unheard_ms;
}

int loop_invalid_hp_unheard(void *loop, const char *why, int unheard_ms)
{
    struct loop *l = loop;
    int64_t left_ms = patience_ms(unheard_ms) - loop_alive_silent_ms();
    if (l->works_alone)
        return unheard_ms; /* it hears at the end of that; if it hangs there, det-task ends it */
    if (left_ms > 0)
        return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
    log_warning("another rank has left, since hyperparameters cannot work, and rank 0 has not "
                "noticed: what it waits for may never come (%s)",
                why);
    det_ignore(loop_post_invalid_hp(l, why, NULL), "the run ends in any case");
    return 0;
}
