/* det checkpoint */
#include "checkpoint.h"
#include "show.h"
#include "table.h"

#include "fsx.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *output;
} o;

static int get(struct cli *c, json_t **ret, struct det_err *err)
{
    JSON_OWN answer = NULL;
    char *uuid det_cleanup(freep) = cli_escaped(cli_arg(c, 0));
    int rc = cli_get(c, &answer, err, "/checkpoints/%s", uuid);
    if (rc == 0)
        *ret = json_incref(json_obj(answer, "checkpoint"));
    return rc;
}

static void print_files(const json_t *resources)
{
    static const char *const heads[] = {"FILE", ">SIZE"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    const char *path;
    json_t *size;
    json_object_foreach((json_t *)resources, path, size)
    {
        table_cell(t, "%s", path);
        table_cell(t, "%s", show_bytes((double)json_int(resources, path, 0)));
    }
    table_print(t, "no files");
}

static int describe(struct cli *c, struct det_err *err)
{
    JSON_OWN cp = NULL;
    if (get(c, &cp, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, cp))
        return 0;
    char *dir det_cleanup(freep) = show_checkpoint_place(cp);
    char *metrics det_cleanup(freep) =
        show_metrics(json_path(cp, "training.validationMetrics.avgMetrics"));
    printf("checkpoint %s\n", json_str(cp, "uuid", ""));
    printf("  state    %s\n", show_state(json_str(cp, "state", "")));
    printf("  trial    %" PRId64 " of experiment %" PRId64 "\n",
           json_int(json_obj(cp, "training"), "trialId", 0),
           json_int(json_obj(cp, "training"), "experimentId", 0));
    printf("  batches  %" PRId64 "\n", json_int(json_obj(cp, "metadata"), "steps_completed", 0));
    printf("  metrics  %s\n", metrics);
    printf("  time     %s\n", show_time(json_str(cp, "reportTime", NULL)));
    printf("  place    %s\n\n", dir ? dir : "");
    print_files(json_obj(cp, "resources"));
    return 0;
}

struct copy {
    int from, to;
};

static int copy_path(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct copy *k = arg;
    if (is_dir)
        return fsx_mkdirs(k->to, path, 0755, err);
    int in det_cleanup(det_closep) = openat(k->from, path, O_RDONLY | O_CLOEXEC);
    int out det_cleanup(det_closep) =
        openat(k->to, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (in < 0 || out < 0)
        return det_fail(err, DET_EIO, "%s: %s", path, strerror(errno));
    int rc = fsx_copy_rest(in, out, err);
    return rc < 0 ? det_wrap(err, rc, "copy %s", path) : 0;
}

static int download(struct cli *c, struct det_err *err)
{
    JSON_OWN cp = NULL;
    struct copy k = {-1, -1};
    if (get(c, &cp, err) < 0)
        return CLI_FAILED;
    char *dir det_cleanup(freep) = show_checkpoint_place(cp);
    char *to det_cleanup(freep) =
        o.output ? det_strdup(o.output) : det_asprintf("checkpoints/%s", cli_arg(c, 0));
    int from det_cleanup(det_closep) = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (from < 0) {
        det_fail(err, DET_ENOENT, "checkpoint %s is at %s, which this host cannot read: %s",
                 cli_arg(c, 0), dir ? dir : "another store",
                 dir ? strerror(errno) : "only directories can be downloaded");
        return CLI_FAILED;
    }
    if (fsx_mkdirs(AT_FDCWD, to, 0755, err) < 0)
        return CLI_FAILED;
    int dest det_cleanup(det_closep) = fsx_open_dir(AT_FDCWD, to, err);
    k = (struct copy){from, dest};
    if (dest < 0 || fsx_walk(from, copy_path, &k, err) < 0)
        return CLI_FAILED;
    printf("%s\n", to);
    return 0;
}

static const struct opt download_opts[] = {
    {"output-dir", 'o', OPT_STR, &o.output, "DIR", "where to (default checkpoints/UUID)"},
    {0},
};
static const struct verb verbs[] = {
    {"describe", "d", "UUID", "one checkpoint, its metrics and files", NULL, describe},
    {"download", NULL, "UUID", "copy its files here", download_opts, download},
    {"delete", NULL, "UUID...", "delete whole checkpoints", checkpoint_delete_opts,
     checkpoint_delete},
    {"rm", NULL, "UUID...", "delete them, or only files of them", checkpoint_rm_opts,
     checkpoint_rm},
    {"undelete", NULL, "UUID...", "take deleted ones back", NULL, checkpoint_undelete},
    {"gc", NULL, "", "delete what the retention policies do not keep", checkpoint_gc_opts,
     checkpoint_gc},
    {0},
};

const struct noun noun_checkpoint = {"checkpoint", "c", NULL,
                                     "checkpoints: look, download, delete, take back", verbs};
