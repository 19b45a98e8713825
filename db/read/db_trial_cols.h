/* trial.v1.Trial without its state, as columns (db_doc.h), in the order of enum db_trial_col.
 * Private to db/. */
#ifndef DB_DB_TRIAL_COLS_H
#define DB_DB_TRIAL_COLS_H

/* Of trial t, joined WITH_TRIAL_MEMBERS. */
#define TRIAL_MEMBERS                                                                              \
    "t.experiment_id \"experimentId\", t.task_id \"taskId\", t.id, t.start_time \"startTime\", "   \
    "t.end_time \"endTime\", least(t.restarts, coalesce((SELECT config->>'max_restarts' "          \
    "FROM experiments WHERE id = t.experiment_id)::integer, t.restarts)) restarts, t.hparams, "    \
    "coalesce(h.steps, 0) \"totalBatchesProcessed\", t.best_validation \"bestValidation\", "       \
    "t.latest_validation \"latestValidation\", " TRIAL_BEST_CHECKPOINT " \"bestCheckpoint\", "     \
    "t.runner_state \"runnerState\", w.seconds \"wallClockTime\", "                                \
    "coalesce(t.warm_start_checkpoint, '') \"warmStartCheckpointUuid\", "                          \
    "k.bytes::text \"totalCheckpointSize\", k.n \"checkpointCount\", "                             \
    "CASE WHEN h.tail > 0 THEN trial_summary(t.id, t.summary_metrics) "                            \
    "ELSE t.summary_metrics END \"summaryMetrics\", json_build_array(t.task_id) \"taskIds\", "     \
    "t.searcher_metric_value \"searcherMetricValue\", t.progress \"unitsCompleted\", "             \
    "t.epoch_batches \"epochLength\" "
/* The checkpoint at the best validation; only where there is none must all be looked at. */
#define TRIAL_BEST_CHECKPOINT                                                                      \
    "CASE WHEN k.n > 0 THEN coalesce((SELECT checkpoint_workload(c) FROM checkpoints c "           \
    "WHERE c.trial_id = t.id AND c.state = 'COMPLETED' "                                           \
    "AND c.steps = (t.best_validation->>'totalBatches')::integer ORDER BY c.uuid LIMIT 1), "       \
    "best_checkpoint_doc(t.id)) END"
#define WITH_TRIAL_MEMBERS                                                                         \
    "CROSS JOIN LATERAL (SELECT greatest(max(steps), 0) steps, sum(tail) tail "                    \
    "FROM metric_heads WHERE trial_id = t.id) h "                                                  \
    "CROSS JOIN LATERAL (SELECT coalesce(sum(seconds_between(a.start_time, "                       \
    "coalesce(a.end_time, now()))), 0) seconds FROM allocations a WHERE a.trial_id = t.id) w "     \
    "CROSS JOIN LATERAL (SELECT count(*) n, coalesce(sum(c.bytes), 0) bytes FROM checkpoints c "   \
    "WHERE c.trial_id = t.id AND c.state IN ('COMPLETED', 'PARTIALLY_DELETED')) k "
/* Of each id of an integer[], numbered x.ord: an array is expected to be short, whatever the
 * planner thinks of where it comes from. */
#define TRIALS_OF_IDS(ids)                                                                         \
    "unnest(" ids ") WITH ORDINALITY x(id, ord) JOIN trials t ON t.id = x.id " WITH_TRIAL_MEMBERS

#endif
