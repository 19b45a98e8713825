/* det-harness: runs a C trial. In a task (DET_* variables) as a rank of a trial of the cluster;
 * with `run` on its own. */
#include "log.h"
#include "clk.h"
#include "dataset.h"
#include "find.h"
#include "loop_alive.h"
#include "loop_env.h"
#include "model.h"
#include "omp_wait.h"
#include "run_local.h"
#include "run_progress.h"
#include "run_ranks.h"
#include "trial_crash.h"
#include "trial_loop.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MAX 256

static struct run_options run;
static bool want_help, want_version, quiet, fake_data;

static const struct opt options[] = {
    {"config", 'c', OPT_STR, &run.config, "FILE", "run: the experiment configuration"},
    {"set", 0, OPT_STR_LIST, &run.set, "KEY=VALUE", "run: change a key of it; may be repeated"},
    {"hparam", 0, OPT_STR_LIST, &run.hparam, "NAME=VALUE", "run: a hyperparameter; likewise"},
    {"max-length", 0, OPT_STR, &run.max_length, "LENGTH",
     "run: how long, as 500, \"2 epochs\" or \"9000 records\""},
    {"checkpoint-period", 0, OPT_STR, &run.checkpoint_period, "LENGTH", "run: likewise"},
    {"validation-period", 0, OPT_STR, &run.validation_period, "LENGTH", "run: likewise"},
    {"reporting-period", 0, OPT_STR, &run.reporting_period, "LENGTH", "run: batches or epochs"},
    {"checkpoint-policy", 0, OPT_STR, &run.checkpoint_policy, "POLICY",
     "run: after a validation: all (best is the same here) or none"},
    {"checkpoint-dir", 0, OPT_STR, &run.checkpoint_dir, "DIR", "run: where checkpoints go"},
    {"latest-checkpoint", 0, OPT_STR, &run.latest_checkpoint, "DIR",
     "run: start from this checkpoint (or its uuid in --checkpoint-dir)"},
    {"resume", 0, OPT_STR, &run.latest_checkpoint, "UUID", "run: the same"},
    {"step-zero-validation", 0, OPT_FLAG, &run.step_zero_validation, NULL,
     "run: validate before training"},
    {"test-mode", 0, OPT_FLAG, &run.test_mode, NULL,
     "run: one batch, one validation batch, one checkpoint"},
    {"test", 0, OPT_FLAG, &run.test_mode, NULL, "run: the same"},
    {"fake-data", 0, OPT_FLAG, &fake_data, NULL,
     "run: made-up records of the loaders' shapes, to try the rest"},
    {"ranks", 0, OPT_INT, &run.ranks, "N", "run: N processes of this host share the batches"},
    {"point", 0, OPT_INT, &run.point, "N", "run: which point of a grid (from 0)"},
    {"tensorboard-dir", 0, OPT_STR, &run.tensorboard_dir, "DIR", "run: write metrics there"},
    {"quiet", 'q', OPT_FLAG, &quiet, NULL, "run: no progress lines"},
    {"help", 'h', OPT_FLAG, &want_help, NULL, "this text"},
    {"version", 0, OPT_FLAG, &want_version, NULL, "the version"},
    {0},
};

static void print_help(void)
{
    struct buf b = BUF_INIT;
    opt_help(options, &b);
    printf(
        "usage: det-harness [MODULE:CLASS]         in a task of the cluster\n"
        "       det-harness run MODEL [OPTION...]  on its own\n"
        "Runs a trial of the working directory. MODEL is its file, as model_def.c or model_def.so,\n"
        "or module:Class. Ctrl-C ends a run with a checkpoint.\n\n%s",
        buf_str(&b));
    buf_finish(&b);
}

static int refuse_usage(const struct det_err *err)
{
    fprintf(stderr, "det-harness: %s\nTry 'det-harness --help'.\n", err->text);
    return 2;
}

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    static const char text[] = "\ninterrupted: saving a checkpoint (again: end at once)\n";
    interrupted = 1;
    ssize_t rc = write(STDERR_FILENO, text, sizeof text - 1);
    (void)rc;
}

static void watch_interrupt(struct det_loop_config *c)
{
    struct sigaction sa = {.sa_handler = on_interrupt,
                           .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    sigaction(SIGINT, &sa, NULL);
    c->interrupt = &interrupted;
}

/* How to go on from the last checkpoint, in the words of this command line. */
static void say_how_to_go_on(const struct det_loop_config *c, const struct run_progress *p,
                             char **argv)
{
    if (c->ranks.rank != 0 || !p->checkpoint)
        return;
    det_cleanup(buf_finish) struct buf line = BUF_INIT;
    det_cleanup(freep) char *root = loop_local_root(c);
    for (char **a = argv; *a; a++) {
        if (strcmp(*a, "--latest-checkpoint") == 0 || strcmp(*a, "--resume") == 0)
            a += a[1] != NULL;
        else if (strncmp(*a, "--latest-checkpoint=", 20) != 0 && strncmp(*a, "--resume=", 9) != 0)
            buf_addf(&line, strpbrk(*a, " {}[]*'\"$") ? "'%s' " : "%s ", *a);
    }
    fprintf(stderr, "stopped after %lld batches; to go on:\n    %s--latest-checkpoint %s/%s\n",
            (long long)p->checkpoint_steps, buf_str(&line), root, p->checkpoint);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The entrypoint: the argument, else the configuration's. A file's class is the one that the
 * configuration names for it, if it does. */
static int entry_of(const struct det_loop_config *c, const char *arg, struct model_entry *ret,
                    struct det_err *err)
{
    const char *named = json_str(c->experiment_config, "entrypoint", NULL);
    const char *text = arg ? arg : named;
    struct model_entry other;
    if (!text)
        return det_fail(err, DET_EINVAL, "no trial is named: det-harness MODULE:CLASS");
    if (strchr(text, ':'))
        return model_entry_parse(text, ret, err);
    int rc = model_entry_of_file(text, ret, err);
    if (rc == 0 && named && model_entry_parse(named, &other, NULL) == 0 &&
        strcmp(other.module, ret->module) == 0)
        *ret = other;
    return rc;
}

static int train_entry(struct det_loop_config *c, const char *entrypoint, struct det_err *err)
{
    struct model_entry entry;
    const struct det_trial_type *type = NULL;
    int rc = entry_of(c, entrypoint, &entry, err);
    if (rc < 0)
        return rc;
    loop_alive(PROGRESS_STARTING, 0);
    int64_t began_ms = clk_mono_ms();
    if ((rc = model_load(&entry, c->ranks.local_rank != 0, &type, err)) < 0)
        return rc;
    c->trial_cls_spec = det_asprintf("%s:%s", entry.module, entry.class);
    c->trial_type = det_strdup("CTrial");
    c->framework = det_strdup("det-" DET_VERSION);
    loop_alive(PROGRESS_STARTING, 0);
    loop_alive_loaded(clk_mono_ms() - began_ms);
    struct trial_run *r = trial_run_create(type);
    struct det_loop_trial client = trial_run_client(r);
    rc = loop_run(c, &client, err);
    trial_run_destroy(r);
    return rc;
}

static int fill_config(struct det_loop_config *c, bool local, const char *entrypoint,
                       struct det_err *err)
{
    if (local)
        return run_local_config(&run, entrypoint, c, err);
    if (loop_env_managed())
        return loop_env_config(c, err);
    return det_fail(err, DET_EINVAL,
                    "this is not a task of a cluster (DET_TRIAL_ID is not set); to train without "
                    "one: det-harness run model_def.c --config FILE");
}

static int run_trial(bool local, const char *entrypoint, char **argv)
{
    struct det_err err = {0};
    struct run_progress progress = {0};
    struct det_loop_config c = LOOP_CONFIG_INIT;
    int rc = fill_config(&c, local, entrypoint, &err);
    if (local) {
        data_fake(fake_data);
        c.observer = run_progress_observer(&progress, quiet);
        watch_interrupt(&c);
    }
    if (rc == 0)
        rc = train_entry(&c, entrypoint, &err);
    run_progress_clear(&progress);
    if (rc < 0)
        log_error("%s", err.text);
    else if (err.code == DET_EINVALIDHP) /* an outcome, not a failure; the text says why */
        log_warning("invalid hyperparameters: %s", err.text);
    if (rc == 0 && interrupted)
        say_how_to_go_on(&c, &progress, argv);
    run_progress_finish(&progress);
    loop_config_finish(&c);
    return rc == 0 && interrupted ? 128 + SIGINT : loop_exit_code(rc);
}

/* OpenMP's threads are to wait as in a task of the cluster. Its library reads how while it is
 * loaded, hence the second start; where that fails, waiting is only dearer. */
static void wait_passively(char **argv)
{
    det_cleanup(freep) char *self = find_self();
    if (!self || getenv(OMP_WAIT_VAR) || setenv(OMP_WAIT_VAR, OMP_WAIT_VALUE, 0) != 0 ||
        setenv(OMP_SPIN_VAR, OMP_SPIN_VALUE, 0) != 0)
        return;
    execv(self, argv);
}

static int check_arguments(const struct opt_list *pos, bool local, struct det_err *err)
{
    if (pos->n > (local ? 2u : 1u) || (local && pos->n < 2))
        return det_fail(err, DET_EINVAL,
                        local ? "run needs one MODEL (a length of two words is one argument: "
                                "--max-length \"2 epochs\")"
                              : "too many arguments");
    if (run.ranks < 0 || run.ranks > RANKS_MAX)
        return det_fail(err, DET_EINVAL, "--ranks is a number from 1 to %d", RANKS_MAX);
    return 0;
}

int main(int argc, char **argv)
{
    struct det_err err = {0};
    struct opt_list pos = {0};
    log_init("det-harness", LOG_INFO);
    log_set_task_format();
    if (opt_parse(options, argc, argv, 1, &pos, &err) < 0)
        return refuse_usage(&err);
    if (want_help || want_version) {
        want_help ? print_help() : (void)puts("det-harness " DET_VERSION);
        return 0;
    }
    bool local = pos.n > 0 && strcmp(pos.v[0], "run") == 0;
    if (check_arguments(&pos, local, &err) < 0)
        return refuse_usage(&err);
    if (local)
        wait_passively(argv);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what the trial prints is in the log at once, and stays */
    int code = local && run.ranks > 1 ? run_ranks((int)run.ranks, &err) : -1;
    if (code < 0) {
        trial_crash_install();
        code = run_trial(local, pos.n > 0 ? pos.v[pos.n - 1] : NULL, argv);
        trial_crash_mark(NULL, -1);
    }
    opt_list_finish(&pos);
    opt_list_finish(&run.set);
    opt_list_finish(&run.hparam);
    return code;
}
