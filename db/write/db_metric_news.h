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
    const char *open;       /* JSON array: SETTLED_OPEN of the snapshot or sample */
    const char *shown; /* JSON array: trials of the last sample, whose older points are known */
};
/* {"searcherMetrics", "trainingMetrics", "validationMetrics", "metricNames"}; ids: JSON array. */
void db_metric_names(struct db *db, const char *ids, db_cb *cb, void *arg);
/* {"batches"}: steps at which the metric was reported. */
void db_metric_batches(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg);
/* Snapshots and samples are looked up in two parts. First what trials that have ended show, once
 * for all who look until something but reports changes (db_query_chart_lasting()); then, each time,
 * what those show that run, or reported after their end. One row: the trials that the second part
 * is to look at, beside those that run by then; the newest report in it, and what it is. */
enum { SETTLED_OPEN, SETTLED_SINCE, SETTLED_LINES };
/* The last value of each trial within [from, to]: a line each, "ID NEWEST {..}", by id. Of trials
 * that are in both parts the second tells. It has the new ones alone, the first all. */
void db_metric_snapshot_settled(struct db *db, const struct db_metric_news *n, db_cb *cb,
                                void *arg);
void db_metric_snapshot(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg);
/* The best of those that have ended are looked at again. */
void db_metric_sample_settled(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg);
/* The points of the best trials; of an adaptive search, of those that trained longest. A row for
 * each, by id, at least one; its columns follow those above: id (null: there is none),
 * hyperparameters, and its items (proto/series.h), which may be more than points. NEWS_DOC is the
 * answer's end, behind the trials. */
enum { SAMPLE_TRIAL = NEWS_TRIALS + 1, SAMPLE_HPARAMS, SAMPLE_ITEMS };
void db_metric_sample(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg);

#endif
