/* experiment.v1.Experiment without its state, as columns (db_doc.h), in the order of enum
 * db_exp_col. Private to db/. */
#ifndef DB_DB_EXP_COLS_H
#define DB_DB_EXP_COLS_H

/* clang-format off */
/* Of experiment e, joined WITH_MEMBERS. */
#define MEMBERS(trial_ids, notes)                                                                  \
    "e.config_json config, e.job_id \"jobId\", e.archived, u.id \"userId\", e.id, e.description, e.labels, "   \
    "e.start_time \"startTime\", e.end_time \"endTime\", " SUM_OF("trials") " \"numTrials\", "         \
    trial_ids " \"trialIds\", u.display_name \"displayName\", u.username, "                        \
    "e.resource_pool \"resourcePool\", coalesce(e.config#>>'{searcher,name}', '') "                \
    "\"searcherType\", e.searcher_metric \"searcherMetric\", e.name, " notes " notes, "            \
    "e.parent_id \"forkedFrom\", e.progress, p.id \"projectId\", p.name \"projectName\", "         \
    "w.id \"workspaceId\", w.name \"workspaceName\", p.archived OR w.archived \"parentArchived\", " \
    "e.original_config \"originalConfig\", p.user_id \"projectOwnerId\", "                         \
    SUM_OF("bytes") "::text \"checkpointSize\", " SUM_OF("checkpoints") " \"checkpointCount\", e.unmanaged, " \
    "octet_length(e.model_def) \"modelDefinitionSize\", e.best_metric "                            \
    "\"bestTrialSearcherMetric?\", CASE WHEN e.best_metric IS NOT NULL THEN e.best_trial_id END "  \
    "\"bestTrialId?\", seconds_between(e.start_time, e.end_time)::integer \"duration?\" "
#define MEMBERS_IN_LIST                                                                            \
    MEMBERS("'[]'::json", "CASE WHEN e.notes <> '' THEN 'omitted' ELSE e.notes END")
#define WITH_MEMBERS                                                                               \
    "JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id "                    \
    "JOIN workspaces w ON w.id = p.workspace_id " WITH_SUMS
/* Numbers of an experiment's trials and checkpoints, kept by triggers; none: no row. */
#define WITH_SUMS   "LEFT JOIN experiment_sums s ON s.experiment_id = e.id "
#define SUM_OF(sum) "coalesce(s." sum ", 0)"
/* clang-format on */

#endif
