/* det-harness: runs a C trial. In a task (DET_* variables) as a rank of a trial of the cluster;
 * with `run` on its own. */
#include "log.h"
#include "clk.h"
#include "loop_alive.h"
#include "loop_env.h"
#include "model.h"
#include "run_local.h"
#include "trial_crash.h"
#include "trial_loop.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct run_options run;
static bool want_help, want_version;

static const struct opt options[] = {
    {"config", 'c', OPT_STR, &run.config, "FILE", "run: the experiment configuration"},
    {"set", 0, OPT_STR_LIST, &run.set, "KEY=VALUE", "run: change a key of it; may be repeated"},
    {"checkpoint-dir", 0, OPT_STR, &run.checkpoint_dir, "DIR", "run: where checkpoints go"},
    {"resume", 0, OPT_STR, &run.resume, "UUID", "run: start from this checkpoint there"},
    {"point", 0, OPT_INT, &run.point, "N", "run: which point of a grid (from 0)"},
    {"test", 0, OPT_FLAG, &run.test, NULL, "run: one batch, one validation batch, one checkpoint"},
    {"tensorboard-dir", 0, OPT_STR, &run.tensorboard_dir, "DIR", "run: write metrics there"},
    {"quiet", 'q', OPT_FLAG, &run.quiet, NULL, "run: no progress lines"},
    {"help", 'h', OPT_FLAG, &want_help, NULL, "this text"},
    {"version", 0, OPT_FLAG, &want_version, NULL, "the version"},
    {0},
};

static void print_help(void)
{
    struct buf b = BUF_INIT;
    opt_help(options, &b);
    printf("usage: det-harness [MODULE:CLASS]                in a task of the cluster\n"
           "       det-harness run MODULE:CLASS [OPTION...]  on its own\n"
           "Runs the trial CLASS of MODULE.c or MODULE.so of the working directory.\n\n%s",
           buf_str(&b));
    buf_finish(&b);
}

static int usage(const struct det_err *err)
{
    fprintf(stderr, "det-harness: %s\nTry det-harness --help.\n", err->text);
    return 2;
}

/* The entrypoint: the argument, else the configuration's. */
static int entry_of(const struct det_loop_config *c, const char *arg, struct model_entry *ret,
                    struct det_err *err)
{
    const char *text = arg ? arg : json_str(c->experiment_config, "entrypoint", NULL);
    if (!text)
        return det_fail(err, DET_EINVAL, "no trial is named: det-harness MODULE:CLASS");
    return model_entry_parse(text, ret, err);
}

static int train(struct det_loop_config *c, const char *entrypoint, struct det_err *err)
{
    struct model_entry entry;
    const struct det_trial_type *type = NULL;
    int rc = entry_of(c, entrypoint, &entry, err);
    if (rc < 0)
        return rc;
    c->trial_cls_spec = det_asprintf("%s:%s", entry.module, entry.class);
    c->trial_type = det_strdup("CTrial");
    c->framework = det_strdup("det-" DET_VERSION);
    loop_alive(PROGRESS_STARTING, 0);
    int64_t began_ms = clk_mono_ms();
    if ((rc = model_load(&entry, c->ranks.local_rank != 0, &type, err)) < 0)
        return rc;
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
                    "one: det-harness run MODULE:CLASS --config FILE");
}

static int run_trial(bool local, const char *entrypoint)
{
    struct det_err err = {0};
    struct det_loop_config c = LOOP_CONFIG_INIT;
    int rc = fill_config(&c, local, entrypoint, &err);
    if (rc == 0)
        rc = train(&c, entrypoint, &err);
    if (rc < 0)
        log_error("%s", err.text);
    else if (err.code == DET_EINVALIDHP) /* an outcome, not a failure; the text says why */
        log_warning("invalid hyperparameters: %s", err.text);
    loop_config_finish(&c);
    return loop_exit_code(rc);
}

int main(int argc, char **argv)
{
    struct det_err err = {0};
    struct opt_list pos = {0};
    log_init("det-harness", LOG_INFO);
    log_set_task_format();
    if (opt_parse(options, argc, argv, 1, &pos, &err) < 0)
        return usage(&err);
    if (want_help || want_version) {
        want_help ? print_help() : (void)puts("det-harness " DET_VERSION);
        return 0;
    }
    bool local = pos.n > 0 && strcmp(pos.v[0], "run") == 0;
    if (pos.n > (local ? 2u : 1u) || (local && pos.n < 2)) {
        det_fail(&err, DET_EINVAL, local ? "run needs one MODULE:CLASS" : "too many arguments");
        return usage(&err);
    }
    signal(SIGPIPE, SIG_IGN);
    trial_crash_install();
    int code = run_trial(local, pos.n > 0 ? pos.v[pos.n - 1] : NULL);
    opt_list_free(&pos);
    opt_list_free(&run.set);
    return code;
}
