#include "fake_trial.h"

#include "fsx.h"
#include "mem.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fake_note(struct fake *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (f->trace.len)
        buf_add_ch(&f->trace, ' ');
    buf_vaddf(&f->trace, fmt, ap);
    va_end(ap);
}

static int create(void *self, struct loop *loop, struct det_err *err)
{
    struct fake *f = self;
    f->loop = loop;
    fake_note(f, "init");
    return f->fail_create ? det_fail(err, f->fail_create, "create was told to fail") : 0;
}

static int callbacks(void *self, const struct loop_callback **ret, size_t *n, struct det_err *err)
{
    struct fake *f = self;
    fake_note(f, "build_callbacks");
    *ret = f->callbacks;
    *n = f->n_callbacks;
    return 0;
}

static int lr_schedulers(void *self, const struct loop_lr **ret, size_t *n, struct det_err *err)
{
    struct fake *f = self;
    *ret = &f->lr;
    *n = f->n_lrs;
    return 0;
}

static int reducers(void *self, const struct loop_reducer **ret, size_t *n, struct det_err *err)
{
    struct fake *f = self;
    *ret = &f->reducer;
    *n = f->n_reducers;
    return 0;
}

static int next_batch(void *self, struct sampler_pos pos, const void **ret, struct det_err *err)
{
    struct fake *f = self;
    if (f->trace_fetch)
        fake_note(f, "f%lld.%lld", (long long)pos.epoch, (long long)pos.index);
    *ret = f;
    return 0;
}

static const struct loop_loader_type loader_type = {.next = next_batch};

static int build_training(void *self, struct loop_loader *ret, struct det_err *err)
{
    struct fake *f = self;
    fake_note(f, "train_loader");
    *ret = (struct loop_loader){&loader_type, f, f->train_batches};
    return 0;
}

static int build_validation(void *self, struct loop_loader *ret, struct det_err *err)
{
    struct fake *f = self;
    fake_note(f, "val_loader");
    *ret = (struct loop_loader){&loader_type, f, f->valid_batches};
    return 0;
}

static int64_t batch_records(void *self, const void *batch)
{
    return 2;
}

static int train_batch(void *self, const void *batch, int64_t e, int64_t b, struct loop_metrics *m,
                       struct det_err *err)
{
    struct fake *f = self;
    fake_note(f, "b%lld", (long long)b);
    if (b == f->fail_at)
        return det_fail(err, f->fail_code, "told to fail");
    if (b == f->stop_at)
        loop_set_stop_requested(f->loop, true);
    f->trained++;
    loop_metrics_f64(m, "loss", f->loss ? f->loss(b) : (double)b);
    return 0;
}

static int evaluate_batch(void *self, const void *batch, int64_t k, struct loop_metrics *m,
                          struct det_err *err)
{
    struct fake *f = self;
    double v = f->val ? f->val(f->trained, k) : 1.0 / (1.0 + (double)f->trained);
    loop_metrics_f64(m, "val_loss", v);
    return 0;
}

static int set_training(void *self, bool training, struct det_err *err)
{
    struct fake *f = self;
    if (!training)
        fake_note(f, "validate@%lld", (long long)loop_batches_trained(f->loop));
    return 0;
}

static int save(void *self, const char *dir, struct det_err *err)
{
    struct fake *f = self;
    det_cleanup(freep) char *path = det_asprintf("%s/state_dict.pth", dir);
    det_cleanup(freep) char *text = det_asprintf("%lld", (long long)f->trained);
    fake_note(f, "checkpoint@%lld", (long long)loop_batches_trained(f->loop));
    const char *more = f->fail_save_text ? f->fail_save_text : "";
    if (f->fail_save && f->fail_save_sys)
        return det_fail_errno(err, f->fail_save, f->fail_save_sys, "save was told to fail%s", more);
    if (f->fail_save)
        return det_fail(err, f->fail_save, "save was told to fail%s", more);
    return fsx_write_atomic(AT_FDCWD, path, text, strlen(text), 0644, err);
}

static int load(void *self, const char *dir, struct det_err *err)
{
    struct fake *f = self;
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/state_dict.pth", dir);
    int rc = fsx_read_file(AT_FDCWD, path, 100, &b, err);
    if (f->loading)
        f->loading();
    f->trained = rc < 0 ? 0 : strtoll(buf_str(&b), NULL, 10);
    fake_note(f, "load(%lld)", (long long)f->trained);
    return rc;
}

static void destroy(void *self)
{
    fake_note(self, "destroy");
}

const struct det_loop_trial_type fake_type = {.create = create,
                                              .destroy = destroy,
                                              .callbacks = callbacks,
                                              .reducers = reducers,
                                              .lr_schedulers = lr_schedulers,
                                              .build_training_loader = build_training,
                                              .build_validation_loader = build_validation,
                                              .batch_records = batch_records,
                                              .train_batch = train_batch,
                                              .evaluate_batch = evaluate_batch,
                                              .set_training = set_training,
                                              .save = save,
                                              .load = load};

/* ---- Callbacks: hooks of callback n are traced with its number behind them ------------------- */

static void cb_note(void *self, const char *what)
{
    struct fake_name *n = self;
    if (n->n == 0)
        fake_note(n->fake, "%s", what);
}

static int on_startup(void *self, int64_t first, const char *uuid, struct det_err *err)
{
    struct fake_name *n = self;
    if (n->n == 0)
        fake_note(n->fake, "startup(%lld,%s)", (long long)first, uuid ? "uuid" : "none");
    return 0;
}

static int on_training_start(void *self, struct det_err *err)
{
    cb_note(self, "training_start");
    return 0;
}

static int on_epoch_start(void *self, int64_t e, struct det_err *err)
{
    struct fake_name *n = self;
    if (n->n == 0)
        fake_note(n->fake, "epoch_start%lld", (long long)e);
    return 0;
}

static int on_epoch_end(void *self, int64_t e, struct det_err *err)
{
    struct fake_name *n = self;
    if (n->n == 0)
        fake_note(n->fake, "epoch_end%lld", (long long)e);
    return 0;
}

static int on_workload_end(void *self, const struct loop_metrics *avg,
                           const struct loop_metrics *rows, size_t n, struct det_err *err)
{
    cb_note(self, "workload_end");
    return 0;
}

static int on_shutdown(void *self, struct det_err *err)
{
    struct fake_name *n = self;
    fake_note(n->fake, "shutdown%d", n->n);
    return 0;
}

static int lr_step(void *self, struct det_err *err)
{
    fake_note(self, "lr_step");
    return 0;
}

/* ---- Observer: what would be reported -------------------------------------------------------- */

static void on_report(void *self, int64_t steps, const struct loop_metrics *avg)
{
    fake_note(self, "report@%lld", (long long)steps);
}

void fake_init(struct fake *f)
{
    memset(f, 0, sizeof *f);
    f->config = (struct det_loop_config)LOOP_CONFIG_INIT;
    f->config.policy = LOOP_POLICY_NONE;
    f->config.observer = (struct loop_observer){.self = f, .training = on_report};
    f->stop_at = f->fail_at = -1;
    f->fail_code = DET_EDEVICE;
    f->train_batches = 3;
    f->valid_batches = 2;
    f->n_callbacks = 2;
    for (int i = 0; i < 2; i++) {
        f->names[i] = (struct fake_name){f, i};
        f->callbacks[i] = (struct loop_callback){.self = &f->names[i],
                                                 .on_trial_startup = on_startup,
                                                 .on_training_start = on_training_start,
                                                 .on_training_epoch_start = on_epoch_start,
                                                 .on_training_epoch_end = on_epoch_end,
                                                 .on_training_workload_end = on_workload_end,
                                                 .on_trial_shutdown = on_shutdown};
    }
    f->lr = (struct loop_lr){f, LOOP_STEP_EVERY_EPOCH, 1, lr_step};
}

void fake_finish(struct fake *f)
{
    loop_config_finish(&f->config);
    buf_finish(&f->trace);
}

int fake_run(struct fake *f, struct det_err *err)
{
    struct det_loop_trial t = {&fake_type, f};
    return loop_run(&f->config, &t, err);
}

char *fake_checkpoint(const char *store)
{
    char *found = NULL;
    DIR *d = opendir(store);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            assert(!found);
            found = det_strdup(e->d_name);
        }
    closedir(d);
    assert(found);
    return found;
}

int fake_checkpoints(const char *store)
{
    int n = 0;
    DIR *d = opendir(store);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}
