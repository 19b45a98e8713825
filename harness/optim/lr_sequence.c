/* Schedulers made of schedulers: one after the other, or all at once. */
#include "lr_impl.h"

#include <math.h>
#include <stdlib.h>

#include "mem.h"

#define AT(member) offsetof(struct det_lr, member)

static void take_last(struct det_lr *lr, const struct det_lr *from)
{
    for (size_t i = 0; i < lr->n; i++)
        lr->last[i] = from->last[i];
}

static void sequential_step(struct det_lr *lr)
{
    size_t i = 0;
    lr->last_epoch++;
    while (i < lr->milestones_n && lr->milestones[i] <= (double)lr->last_epoch)
        i++;
    if (i > 0 && lr->milestones[i - 1] == (double)lr->last_epoch)
        lr_restart(lr->parts[i]);
    else
        det_lr_step(lr->parts[i]);
    take_last(lr, lr->parts[i]);
}

static void chained_step(struct det_lr *lr)
{
    for (size_t i = 0; i < lr->parts_n; i++)
        det_lr_step(lr->parts[i]);
    for (size_t i = 0; i < lr->n; i++)
        lr->last[i] = det_optim_lr(lr->optim, i);
}

static const struct lr_type sequential_type = {
    .name = "SequentialLR",
    .fields = {{"_milestones", DET_VALUE_INTS, AT(milestones)},
               {"last_epoch", DET_VALUE_INT, AT(last_epoch)},
               {"_last_lr", DET_VALUE_FLOATS, AT(last)},
               {"_schedulers", DET_VALUE_DICTS, AT(parts)}},
    .own_state = true,
    .step = sequential_step,
};

static const struct lr_type chained_type = {
    .name = "ChainedScheduler",
    .fields = {{"_last_lr", DET_VALUE_FLOATS, AT(last)},
               {"_schedulers", DET_VALUE_DICTS, AT(parts)}},
    .own_state = true,
    .step = chained_step,
};

/* Takes the parts, also on failure. */
static struct det_lr *sequence_new(struct det_optim *o, struct det_lr like)
{
    bool fit = o && like.parts_n > 0;
    for (size_t i = 0; i < like.parts_n; i++)
        fit = fit && like.parts[i] && like.parts[i]->optim == o && !like.parts[i]->type->own_state;
    if (fit)
        return lr_alloc(o, &like);
    if (o && o->engine->err.code == 0)
        lr_refuse(o, like.type->name, "its parts must be simple schedulers of this optimizer");
    det_lr_destroy(det_memdup(&like, sizeof like));
    return NULL;
}

/* As PyTorch's constructor does it: all but the first are put back before their first step. */
static void start_first(struct det_lr *lr)
{
    for (size_t i = 0; i < lr->n; i++)
        det_optim_set_lr(lr->optim, i, det_optim_get(lr->optim, i, "initial_lr"));
    for (size_t i = 0; i < lr->parts_n; i++)
        lr->parts[i]->last_epoch--;
    lr->parts[0]->step_count = 0;
    det_lr_step(lr->parts[0]);
    take_last(lr, lr->parts[0]);
}

struct det_lr *det_sequential_lr_create(struct det_optim *o, const struct det_lr_stage *stages,
                                        size_t n)
{
    struct det_lr like = {.type = &sequential_type, .parts_n = n, .milestones_n = n ? n - 1 : 0};
    bool rising = true;
    like.parts = det_zalloc((n + 1) * sizeof *like.parts);
    like.milestones = lr_filled(n, 0);
    for (size_t i = 0; i < n; i++) {
        like.parts[i] = stages[i].lr;
        like.milestones[i] = (double)stages[i].until;
        rising = rising && (i + 1 == n || stages[i].until > (i ? stages[i - 1].until : 0));
    }
    if (!rising)
        lr_refuse(o, sequential_type.name, "the steps at which stages end must rise from 1");
    struct det_lr *lr = sequence_new(o, like);
    if (lr)
        start_first(lr);
    return lr;
}

struct det_lr *det_chained_lr_create(struct det_optim *o, struct det_lr **parts, size_t n)
{
    struct det_lr like = {.type = &chained_type, .parts_n = n};
    like.parts = det_zalloc((n + 1) * sizeof *like.parts);
    for (size_t i = 0; i < n; i++)
        like.parts[i] = parts[i];
    return sequence_new(o, like);
}
