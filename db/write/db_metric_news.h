/* What is new of an experiment's metrics, for pages that follow it: a large experiment's may take
 * long (db_query_chart). */
#ifndef DB_DB_METRIC_NEWS_H
#define DB_DB_METRIC_NEWS_H

#include "db.h"

/* One row: the answer; whether all the experiments have ended; the newest report in it (0: nothing
 * is new); the trials in it as a JSON array. The answer is null when there is no such
 * experiment. */
enum db_metric_news_col { NEWS_DOC, NEWS_ENDED, NEWS_SINCE, NEWS_TRIALS };
struct db_metric_news {
    int64_t exp_id;
    const char *group, *name;
    int64_t since;          /* reports after this one */
    int64_t from, to;       /* steps, both within */
    int64_t trials, points; /* at most; of the sample */
    const char *shown; /* JSON array: trials of the last sample, whose older points are known */
};
/* {"searcherMetrics", "trainingMetrics", "validationMetrics", "metricNames"}; ids: JSON array. */
void db_metric_names(struct db *db, const char *ids, db_cb *cb, void *arg);
/* {"batches"}: steps at which the metric was reported. */
void db_metric_batches(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg);
/* {"trials"}: the last value of each trial within [from, to]. */
void db_metric_snapshot(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg);
/* The points of the best trials; of an adaptive search, of those that trained longest. A row for
 * each, by id, at least one; its columns follow those above: id (null: there is none),
 * hyperparameters, and its items (proto/series.h), which may be more than points. NEWS_DOC is the
 * answer's end, behind the trials. */
enum { SAMPLE_TRIAL = NEWS_TRIALS + 1, SAMPLE_HPARAMS, SAMPLE_ITEMS };
void db_metric_sample(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg);

#endif
