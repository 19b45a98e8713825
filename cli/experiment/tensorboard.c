/* det tensorboard start: where the event files are, and the command that shows them. */
#include "cli.h"
#include "experiment.h"
#include "show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *trials;
} o;

static const struct opt start_opts[] = {
    {"trial-ids", 't', OPT_STR, &o.trials, "ID,...", "those of these trials"},
    {0},
};

struct shown {
    struct buf spec; /* TensorBoard's list, each "name:directory" */
    char *only;      /* the directory, as long as there is one */
    size_t n;
    size_t unwritten; /* of these: nothing has been written */
};

enum place { HERE, CLOSED, UNWRITTEN, ELSEWHERE };

/* A store that is here has a marker: what is not in it then is nowhere. */
static enum place look_at(const char *dir, const char *store)
{
    det_cleanup(freep) char *marker = det_asprintf("%s/.det-store", store);
    if (access(dir, R_OK) == 0)
        return HERE;
    if (errno == EACCES)
        return CLOSED;
    return access(marker, F_OK) == 0 ? UNWRITTEN : ELSEWHERE;
}

/* Takes dir. */
static void add_place(struct shown *s, const char *kind, int64_t id, char *dir, const char *store)
{
    static const char *const notes[] = {[HERE] = "",
                                        [CLOSED] = "  (this account may not read it)",
                                        [UNWRITTEN] =
                                            "  (not there: nothing was written for TensorBoard)",
                                        [ELSEWHERE] = "  (not on this host)"};
    enum place place = look_at(dir, store);
    buf_addf(&s->spec, "%s%s%" PRId64 ":%s", s->n ? "," : "", kind, id, dir);
    printf("%s %" PRId64 "  %s%s\n", kind, id, dir, notes[place]);
    free(s->only);
    s->only = dir;
    s->n++;
    s->unwritten += place == UNWRITTEN;
}

static int add_experiment(struct cli *c, struct shown *s, int64_t exp_id, int64_t trial,
                          struct det_err *err)
{
    JSON_OWN e = NULL;
    JSON_OWN info = NULL;
    int rc = experiment_get(c, exp_id, &e, err);
    if (rc == 0)
        rc = cli_get(c, &info, err, "/master");
    if (rc < 0)
        return rc;
    char *store det_cleanup(freep) = show_store_place(json_path(e, "config.checkpoint_storage"));
    if (!store)
        return det_fail(err, DET_ENOENT, "experiment %" PRId64 " keeps its files in no directory",
                        exp_id);
    char *dir = det_asprintf("%s/%s/tensorboard/experiment/%" PRId64, store,
                             json_str(info, "clusterId", ""), exp_id);
    if (trial) {
        char *whole = dir;
        dir = det_asprintf("%s/trial/%" PRId64, whole, trial);
        free(whole);
    }
    add_place(s, trial ? "trial" : "experiment", trial ? trial : exp_id, dir, store);
    return 0;
}

static int add_trial(struct cli *c, struct shown *s, const char *text, struct det_err *err)
{
    JSON_OWN id = cli_whole(text);
    JSON_OWN answer = NULL;
    if (!id)
        return det_fail(err, DET_EINVAL, "--trial-ids: '%s' is no number", text);
    int64_t trial = json_integer_value(id);
    int rc = cli_get(c, &answer, err, "/trials/%" PRId64, trial);
    if (rc < 0)
        return rc;
    return add_experiment(c, s, json_int(json_obj(answer, "trial"), "experimentId", 0), trial, err);
}

static int add_all(struct cli *c, struct shown *s, struct det_err *err)
{
    int rc = 0;
    char *list det_cleanup(freep) = det_strdup(o.trials ? o.trials : ""), *save = NULL;
    for (size_t i = 0; rc == 0 && i < c->args.n; i++) {
        int64_t id;
        rc = cli_arg_id(c, i, "experiment", &id, err);
        if (rc == 0)
            rc = add_experiment(c, s, id, 0, err);
    }
    for (char *p = strtok_r(list, ",", &save); rc == 0 && p; p = strtok_r(NULL, ",", &save))
        rc = add_trial(c, s, p, err);
    return rc;
}

static int start_tensorboard(struct cli *c, struct det_err *err)
{
    struct shown s = {.spec = BUF_INIT};
    if (c->args.n == 0 && !o.trials) {
        det_fail(err, DET_EINVAL, "say of which experiments, or --trial-ids ID,...");
        return CLI_USAGE;
    }
    int rc = add_all(c, &s, err);
    if (rc == 0 && s.unwritten == s.n)
        puts(
            "\nThere is nothing to show (yet). A trial class writes what it reports, from its first "
            "report on; a script writes to context.train.get_tensorboard_path().");
    else if (rc == 0)
        printf("\nThe cluster runs no TensorBoard. On a host that has these files:\n"
               "  tensorboard %s %s\n",
               s.n == 1 ? "--logdir" : "--logdir_spec", s.n == 1 ? s.only : buf_str(&s.spec));
    free(s.only);
    buf_finish(&s.spec);
    return rc < 0 ? CLI_FAILED : 0;
}

static const struct verb verbs[] = {
    {"start", NULL, "[EXPERIMENT...]", "where their event files are, and how to show them",
     start_opts, start_tensorboard},
    {0},
};

const struct noun noun_tensorboard = {"tensorboard", "", NULL, "TensorBoard's files", verbs};
