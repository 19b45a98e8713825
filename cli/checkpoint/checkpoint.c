/* det checkpoint */
#include "checkpoint.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>

static void print_files(const json_t *resources, const json_t *hashes)
{
    static const char *const heads[] = {"FILE", ">SIZE", "HASH"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    const char *path;
    json_t *size;
    json_object_foreach((json_t *)resources, path, size)
    {
        table_cell(t, "%s", path);
        table_cell(t, "%s", show_bytes((double)json_int(resources, path, 0)));
        table_cell(t, "%s", json_str(hashes, path, ""));
    }
    table_print(t, "no files");
}

/* What the user gave with it: all but what every checkpoint's metadata has. New reference. */
static json_t *users_metadata(const json_t *cp)
{
    static const char *const ours[] = {"steps_completed", "determined_version", "framework",
                                       "format"};
    json_t *left = json_copy(json_obj(cp, "metadata"));
    for (size_t i = 0; left && i < DET_ARRAY_LEN(ours); i++)
        json_object_del(left, ours[i]);
    return left;
}

/* Nobody can delete it while there are any. */
static void print_versions(const json_t *versions)
{
    for (size_t i = 0; i < json_array_size(versions); i++) {
        const json_t *v = json_array_get(versions, i);
        printf("  kept as          version %" PRId64 " of model %s\n", json_int(v, "version", 0),
               json_str(v, "modelName", ""));
    }
}

static int describe_checkpoint(struct cli *c, struct det_err *err)
{
    JSON_OWN cp = NULL;
    if (checkpoint_get(c, &cp, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, cp))
        return 0;
    char *dir det_cleanup(freep) = show_checkpoint_place(cp);
    char *metrics det_cleanup(freep) =
        show_metrics(json_path(cp, "training.validationMetrics.avgMetrics"));
    char *hparams det_cleanup(freep) = show_hparams(json_path(cp, "training.hparams"), NULL);
    JSON_OWN own = users_metadata(cp);
    char *metadata det_cleanup(freep) = show_hparams(own, NULL);
    printf("checkpoint %s\n", json_str(cp, "uuid", ""));
    printf("  state            %s\n", show_state(json_str(cp, "state", "")));
    printf("  trial            %" PRId64 " of experiment %" PRId64 "\n",
           json_int(json_obj(cp, "training"), "trialId", 0),
           json_int(json_obj(cp, "training"), "experimentId", 0));
    printf("  hyperparameters  %s\n", hparams);
    printf("  batches          %" PRId64 "\n",
           json_int(json_obj(cp, "metadata"), "steps_completed", 0));
    printf("  metrics          %s\n", metrics);
    if (*metadata)
        printf("  metadata         %s\n", metadata);
    printf("  time             %s\n", show_time(json_str(cp, "reportTime", NULL)));
    printf("  place            %s\n", dir ? dir : "");
    print_versions(json_arr(cp, "modelVersions"));
    puts("");
    print_files(json_obj(cp, "resources"), json_obj(cp, "hashes"));
    return 0;
}

static const struct verb verbs[] = {
    {"describe", "d", "UUID", "one checkpoint, its metrics and files", NULL, describe_checkpoint},
    {"download", NULL, "UUID", "copy its files here", checkpoint_download_opts,
     checkpoint_download},
    {"delete", NULL, "UUID...", "delete whole checkpoints", checkpoint_delete_opts,
     checkpoint_delete},
    {"rm", NULL, "UUID...", "remove files of them, by --glob", checkpoint_rm_opts, checkpoint_rm},
    {"undelete", NULL, "UUID...", "take deleted ones back", NULL, checkpoint_undelete},
    {"gc", NULL, "", "delete what the retention policies do not keep", checkpoint_gc_opts,
     checkpoint_gc},
    {"unknown", NULL, "PLACE", "look through a store for those that the database does not know",
     checkpoint_unknown_opts, checkpoint_unknown},
    {"adopt", NULL, "UUID [TRIAL]", "give an unknown one to a trial that has ended", NULL,
     checkpoint_adopt},
    {"discard", NULL, "UUID [TRIAL]", "delete an unknown one", checkpoint_discard_opts,
     checkpoint_discard},
    {0},
};

const struct noun noun_checkpoint = {"checkpoint", "c", NULL,
                                     "checkpoints: look, download, delete, take back", verbs};
