/* How long a trial is to be, as far as that can be told from what the master says. */
#include "experiment.h"

#include <string.h>

/* Only the trial knows how many batches its epochs have: how far it says it is tells. One that says
 * nothing of that may be alone in its experiment, whose progress is then its own. */
static double target_by_progress(const json_t *trial, const json_t *experiment,
                                 const json_t *length)
{
    double batches = json_num(trial, "totalBatchesProcessed", 0);
    double units = json_num(trial, "unitsCompleted", 0);
    double all = json_num(length, "epochs", json_num(length, "records", 0));
    double progress = json_num(experiment, "progress", 0);
    if (units > 0 && all > 0)
        return batches * all / units;
    return json_int(experiment, "numTrials", 0) == 1 && progress > 0 ? batches / progress : 0;
}

double trial_target(const json_t *trial, const json_t *experiment)
{
    const json_t *config = json_obj(experiment, "config");
    const json_t *length = json_path(config, "searcher.max_length");
    double per_batch = json_num(json_obj(trial, "hparams"), "global_batch_size", 0);
    if (json_is_integer(length))
        return (double)json_integer_value(length);
    if (json_num(length, "batches", 0) > 0)
        return json_num(length, "batches", 0);
    double records = json_num(length, "records", 0) +
                     json_num(length, "epochs", 0) * json_num(config, "records_per_epoch", 0);
    if (per_batch > 0 && records > 0)
        return records / per_batch;
    return target_by_progress(trial, experiment, length);
}

double trial_fraction(const json_t *trial, const json_t *experiment)
{
    double done = json_num(trial, "totalBatchesProcessed", 0);
    double all = trial_target(trial, experiment);
    if (strcmp(json_str(trial, "state", ""), "STATE_COMPLETED") == 0)
        return 1;
    return all <= 0 ? 0 : done < all ? done / all : 1;
}
