/*
 * Who may ask what of the REST API: one rule a route of routes.h, X(name, right, subject, where).
 * A route without a rule is refused to everybody, and tests/unit/proto finds it.
 *
 * The right (rights.h: RIGHT_*) is asked of what the request is about, its subject: SUBJECT_NONE
 * the cluster, SUBJECT_ASKS what the handler finds out and asks of itself (access.h), or what
 * `where` names: a variable of the path, or, after a dot, a member of the body; "[]" is each of a
 * list's. Of a trial, a checkpoint, a job, a task and an allocation it is their experiment that
 * has the owner.
 *
 * These are rules for people. A task's token acts for its own trial and allocation only, whatever
 * its owner may do (http.h: WHO_ALLOC).
 */
#ifndef PROTO_RULES_H
#define PROTO_RULES_H

#include "json.h"
#include "rights.h"
#include "routes.h"
#include <stdbool.h>

enum subject {
    SUBJECT_NONE,
    SUBJECT_ASKS,
    SUBJECT_EXP,
    SUBJECT_TRIAL,
    SUBJECT_CKPT,
    SUBJECT_JOB,
    SUBJECT_TASK,
    SUBJECT_ALLOC,
    SUBJECT_WORKSPACE,
    SUBJECT_PROJECT,
    SUBJECT_TEMPLATE,
    SUBJECT_MODEL,
    SUBJECT_USER,
    SUBJECT_VIEW,  /* of the page; one that is not shared is not there for others */
    SUBJECT_TOKEN, /* seen by its owner and administrators only */
    SUBJECT_COUNT
};

struct rule {
    unsigned right; /* RIGHT_*; 0: none, refused */
    enum subject subject;
    const char *where;
};

enum route_id {
#define X(name, method, pattern, auth, body) ROUTE_##name,
    ROUTES(X)
#undef X
        ROUTE_COUNT
};
extern const struct rule rules_all[ROUTE_COUNT];

bool subject_is_number(enum subject s); /* else its name is a text */

/* Appends to ids what `where` (".updates[].jobId") names in body, as strings; numbers as such where
 * the subject has numbers. DET_EINVAL: something that cannot be one. */
DET_MUST int rule_ids(const struct rule *r, const json_t *body, json_t *ids, struct det_err *err);

#define RULES_PLAIN(X)                                                                             \
    X(info, OPEN, NONE, "")                                                                        \
    X(health, OPEN, NONE, "")                                                                      \
    X(readiness, OPEN, NONE, "")                                                                   \
    X(prometheus, OPEN, NONE, "")                                                                  \
    X(legacy_login, OPEN, NONE, "")                                                                \
    X(preview_search, SEE, NONE, "")                                                               \
    X(download_model_def, SEE, EXP, "experimentId")                                                \
    X(download_file, SEE, EXP, "experimentId")                                                     \
    X(download_checkpoint, SEE, CKPT, "checkpointUuid")                                            \
    X(preview_gc, SEE, EXP, "id")                                                                  \
    X(download_allocation_raw, CLUSTER, NONE, "")                                                  \
    X(download_allocations_csv, CLUSTER, NONE, "")                                                 \
    X(download_allocation_aggregated, CLUSTER, NONE, "")

#define RULES_USERS(X)                                                                             \
    X(login, OPEN, NONE, "")                                                                       \
    X(logout, SEE, NONE, "")                                                                       \
    X(make_login_link, SEE, NONE, "")                                                              \
    X(exchange_login_link, OPEN, NONE, "")                                                         \
    X(current_user, SEE, NONE, "")                                                                 \
    X(get_me, SEE, NONE, "")                                                                       \
    X(get_users, SEE, NONE, "")                                                                    \
    X(get_user, SEE, NONE, "")                                                                     \
    X(get_user_setting, SEE, NONE, "")                                                             \
    X(post_user_setting, SEE, NONE, "")                                                            \
    X(reset_user_setting, SEE, NONE, "")                                                           \
    X(get_user_by_username, SEE, NONE, "")                                                         \
    X(post_user, CLUSTER, NONE, "")                                                                \
    X(patch_user, ACCOUNT, USER, "userId")                                                         \
    X(set_user_password, ACCOUNT, USER, "userId")                                                  \
    X(post_token, ACCOUNT, ASKS, "")                                                               \
    X(get_tokens, SEE, NONE, "")                                                                   \
    X(patch_token, ACCOUNT, TOKEN, "tokenId")                                                      \
    X(search_groups, SEE, NONE, "")                                                                \
    X(get_group, SEE, NONE, "")                                                                    \
    X(post_group, CLUSTER, NONE, "")                                                               \
    X(put_group, CLUSTER, NONE, "")                                                                \
    X(delete_group, CLUSTER, NONE, "")                                                             \
    X(assign_groups, CLUSTER, NONE, "")                                                            \
    X(get_permissions_summary, SEE, NONE, "")                                                      \
    X(search_roles, SEE, NONE, "")                                                                 \
    X(search_roles_assignable, SEE, NONE, "")                                                      \
    X(get_roles_by_id, SEE, NONE, "")                                                              \
    X(get_roles_of_user, SEE, NONE, "")                                                            \
    X(get_roles_of_group, SEE, NONE, "")                                                           \
    X(get_roles_of_workspace, SEE, NONE, "")                                                       \
    X(add_assignments, GRANT, ASKS, "")                                                            \
    X(remove_assignments, GRANT, ASKS, "")                                                         \
    X(get_master, OPEN, NONE, "")                                                                  \
    X(get_telemetry, OPEN, NONE, "")                                                               \
    X(get_master_config, CLUSTER, NONE, "")                                                        \
    X(get_lives, CLUSTER, NONE, "")                                                                \
    X(get_strays, CLUSTER, NONE, "")                                                               \
    X(delete_strays, CLUSTER, NONE, "")                                                            \
    X(get_audit, CLUSTER, NONE, "")                                                                \
    X(rotate_authority, CLUSTER, NONE, "")                                                         \
    X(master_logs, SEE, NONE, "")                                                                  \
    X(cleanup_logs, CLUSTER, NONE, "")

#define RULES_EXPERIMENTS(X)                                                                       \
    X(create_experiment, CREATE, ASKS, "")                                                         \
    X(put_external_experiment, CREATE, ASKS, "")                                                   \
    X(get_experiments, SEE, NONE, "")                                                              \
    X(search_experiments, SEE, NONE, "")                                                           \
    X(group_experiments, SEE, NONE, "")                                                            \
    X(get_experiment, SEE, EXP, "experimentId")                                                    \
    X(get_experiment_trials, SEE, EXP, "experimentId")                                             \
    X(get_model_def, SEE, EXP, "experimentId")                                                     \
    X(get_model_def_tree, SEE, EXP, "experimentId")                                                \
    X(get_model_def_file, SEE, EXP, "experimentId")                                                \
    X(get_validation_history, SEE, EXP, "experimentId")                                            \
    X(get_best_searcher_validation_metric, SEE, EXP, "experimentId")                               \
    X(get_searcher_events, SEE, EXP, "experimentId")                                               \
    X(post_searcher_operations, OPERATE, EXP, "experimentId")                                      \
    X(replay_search, SEE, EXP, "experimentId")                                                     \
    X(get_rungs, SEE, EXP, "experimentId")                                                         \
    X(preview_hp_search, SEE, NONE, "")                                                            \
    X(get_experiment_checkpoints, SEE, EXP, "id")                                                  \
    X(get_experiment_labels, SEE, NONE, "")                                                        \
    X(activate_experiments, OPERATE, ASKS, "")                                                     \
    X(pause_experiments, OPERATE, ASKS, "")                                                        \
    X(cancel_experiments, OPERATE, ASKS, "")                                                       \
    X(kill_experiments, OPERATE, ASKS, "")                                                         \
    X(archive_experiments, EDIT, ASKS, "")                                                         \
    X(unarchive_experiments, EDIT, ASKS, "")                                                       \
    X(delete_experiments, DELETE, ASKS, "")                                                        \
    X(continue_experiment, OPERATE, EXP, ".id")                                                    \
    X(activate_experiment, OPERATE, EXP, "id")                                                     \
    X(pause_experiment, OPERATE, EXP, "id")                                                        \
    X(cancel_experiment, OPERATE, EXP, "id")                                                       \
    X(kill_experiment, OPERATE, EXP, "id")                                                         \
    X(archive_experiment, EDIT, EXP, "id")                                                         \
    X(unarchive_experiment, EDIT, EXP, "id")                                                       \
    X(delete_experiment, DELETE, EXP, "experimentId")                                              \
    X(patch_experiment, EDIT, EXP, "experiment.id")                                                \
    X(move_experiment, MOVE, EXP, "experimentId")                                                  \
    X(move_experiments, MOVE, ASKS, "")                                                            \
    X(put_experiment_label, EDIT, EXP, "experimentId")                                             \
    X(delete_experiment_label, EDIT, EXP, "experimentId")

#define RULES_PLACES(X)                                                                            \
    X(get_templates, SEE, NONE, "")                                                                \
    X(get_template, SEE, NONE, "")                                                                 \
    X(post_template, CREATE, WORKSPACE, ".workspaceId")                                            \
    X(put_template, EDIT, TEMPLATE, "template.name")                                               \
    X(patch_template, EDIT, TEMPLATE, "templateName")                                              \
    X(delete_template, DELETE, TEMPLATE, "templateName")                                           \
    X(get_views, SEE, NONE, "")                                                                    \
    X(post_view, CREATE, ASKS, "")                                                                 \
    X(get_view, SEE, NONE, "")                                                                     \
    X(patch_view, PLACE, VIEW, "viewId")                                                           \
    X(delete_view, PLACE, VIEW, "viewId")                                                          \
    X(get_workspaces, SEE, NONE, "")                                                               \
    X(post_workspace, FOUND, NONE, "")                                                             \
    X(get_workspace, SEE, NONE, "")                                                                \
    X(delete_workspace, PLACE, WORKSPACE, "id")                                                    \
    X(patch_workspace, PLACE, WORKSPACE, "id")                                                     \
    X(archive_workspace, PLACE, WORKSPACE, "id")                                                   \
    X(unarchive_workspace, PLACE, WORKSPACE, "id")                                                 \
    X(get_workspace_projects, SEE, NONE, "")                                                       \
    X(post_project, CREATE, WORKSPACE, "workspaceId")                                              \
    X(get_project, SEE, NONE, "")                                                                  \
    X(delete_project, PLACE, PROJECT, "id")                                                        \
    X(patch_project, PLACE, PROJECT, "id")                                                         \
    X(archive_project, PLACE, PROJECT, "id")                                                       \
    X(unarchive_project, PLACE, PROJECT, "id")

#define RULES_MODELS(X)                                                                            \
    X(get_models, SEE, NONE, "")                                                                   \
    X(post_model, CREATE, ASKS, "")                                                                \
    X(get_model, SEE, NONE, "")                                                                    \
    X(patch_model, EDIT, MODEL, "modelName")                                                       \
    X(delete_model, DELETE, MODEL, "modelName")                                                    \
    X(archive_model, EDIT, MODEL, "modelName")                                                     \
    X(unarchive_model, EDIT, MODEL, "modelName")                                                   \
    X(move_model, MOVE, MODEL, "modelName")                                                        \
    X(get_model_labels, SEE, NONE, "")                                                             \
    X(get_model_versions, SEE, NONE, "")                                                           \
    X(post_model_version, EDIT, MODEL, "modelName")                                                \
    X(get_model_version, SEE, NONE, "")                                                            \
    X(patch_model_version, EDIT, MODEL, "modelName")                                               \
    X(delete_model_version, DELETE, ASKS, "")

#define RULES_TRIALS(X)                                                                            \
    X(post_trial, REPORT, EXP, ".experimentId")                                                    \
    X(put_trial, REPORT, EXP, ".createTrialRequest.experimentId")                                  \
    X(patch_trial, REPORT, TRIAL, "trialId")                                                       \
    X(start_trial, REPORT, TRIAL, "trialId")                                                       \
    X(get_trial, SEE, TRIAL, "trialId")                                                            \
    X(get_trial_timeline, SEE, TRIAL, "id")                                                        \
    X(get_trial_why, SEE, TRIAL, "id")                                                             \
    X(get_experiment_why, SEE, EXP, "id")                                                          \
    X(get_job_why, SEE, NONE, "")                                                                  \
    X(get_trial_workloads, SEE, TRIAL, "trialId")                                                  \
    X(get_trial_checkpoints, SEE, TRIAL, "id")                                                     \
    X(trial_logs, SEE, TRIAL, "trialId")                                                           \
    X(trial_logs_fields, SEE, TRIAL, "trialId")                                                    \
    X(kill_trial, OPERATE, TRIAL, "id")                                                            \
    X(ask_trial_stacks, OPERATE, TRIAL, "id")                                                      \
    X(compare_trials, SEE, NONE, "")                                                               \
    X(exp_metric_names, SEE, NONE, "")                                                             \
    X(exp_metric_batches, SEE, EXP, "experimentId")                                                \
    X(exp_trials_snapshot, SEE, EXP, "experimentId")                                               \
    X(exp_trials_sample, SEE, EXP, "experimentId")                                                 \
    X(get_metrics, SEE, NONE, "")                                                                  \
    X(get_training_metrics, SEE, NONE, "")                                                         \
    X(get_validation_metrics, SEE, NONE, "")                                                       \
    X(get_searcher_operation, SEE, TRIAL, "trialId")                                               \
    X(post_progress, REPORT, TRIAL, "trialId")                                                     \
    X(post_completed_operation, REPORT, TRIAL, "trialId")                                          \
    X(post_early_exit, REPORT, TRIAL, "trialId")                                                   \
    X(post_runner_metadata, REPORT, TRIAL, "trialId")                                              \
    X(post_metrics, REPORT, TRIAL, "trialId")                                                      \
    X(post_metrics_batch, REPORT, TRIAL, "trialId")                                                \
    X(post_training_metrics, REPORT, TRIAL, "trialId")                                             \
    X(post_validation_metrics, REPORT, TRIAL, "trialId")                                           \
    X(post_profiler_metrics, REPORT, TRIAL, ".batches[].labels.trialId")                           \
    X(get_profiler_series, SEE, TRIAL, "trialId")                                                  \
    X(get_profiler_metrics, SEE, TRIAL, "labels.trialId")                                          \
    X(post_checkpoint, REPORT, TASK, ".taskId")                                                    \
    X(adopt_checkpoint, CLUSTER, NONE, "")                                                         \
    X(patch_checkpoints, DELETE, CKPT, ".checkpoints[].uuid")                                      \
    X(delete_checkpoints, DELETE, CKPT, ".checkpointUuids[]")                                      \
    X(remove_checkpoint_files, DELETE, CKPT, ".checkpointUuids[]")                                 \
    X(collect_checkpoints, DELETE, ASKS, "")                                                       \
    X(undelete_checkpoints, EDIT, CKPT, ".checkpointUuids[]")                                      \
    X(get_checkpoint, SEE, CKPT, "checkpointUuid")                                                 \
    X(post_checkpoint_metadata, EDIT, CKPT, "checkpoint.uuid")

#define RULES_TASKS(X)                                                                             \
    X(get_tasks, SEE, NONE, "")                                                                    \
    X(get_tasks_count, SEE, NONE, "")                                                              \
    X(get_task, SEE, TASK, "taskId")                                                               \
    X(get_context_directory, SEE, TASK, "taskId")                                                  \
    X(get_task_accelerators, SEE, TASK, "taskId")                                                  \
    X(task_logs, SEE, TASK, "taskId")                                                              \
    X(task_logs_fields, SEE, TASK, "taskId")                                                       \
    X(post_task_logs, REPORT, TASK, ".logs[].taskId")                                              \
    X(post_task_logs_plain, REPORT, TASK, ".[].taskId")                                            \
    X(get_allocation, SEE, ALLOC, "allocationId")                                                  \
    X(post_accelerators, REPORT, ALLOC, "allocationId")                                            \
    X(rendezvous, REPORT, ALLOC, "allocationId")                                                   \
    X(preemption_signal, REPORT, ALLOC, "allocationId")                                            \
    X(ack_preemption, REPORT, ALLOC, "allocationId")                                               \
    X(all_gather, REPORT, ALLOC, "allocationId")                                                   \
    X(mark_daemon, REPORT, ALLOC, "allocationId")                                                  \
    X(allocation_ready, REPORT, ALLOC, "allocationId")                                             \
    X(allocation_waiting, REPORT, ALLOC, "allocationId")

#define RULES_CLUSTER(X)                                                                           \
    X(get_agents, SEE, NONE, "")                                                                   \
    X(get_agent, SEE, NONE, "")                                                                    \
    X(get_slots, SEE, NONE, "")                                                                    \
    X(get_slot, SEE, NONE, "")                                                                     \
    X(post_join_token, CLUSTER, NONE, "")                                                          \
    X(revoke_agent, CLUSTER, NONE, "")                                                             \
    X(enable_agent, CLUSTER, NONE, "")                                                             \
    X(disable_agent, CLUSTER, NONE, "")                                                            \
    X(enable_slot, CLUSTER, NONE, "")                                                              \
    X(disable_slot, CLUSTER, NONE, "")                                                             \
    X(get_webhooks, CLUSTER, NONE, "")                                                             \
    X(post_webhook, CLUSTER, NONE, "")                                                             \
    X(get_webhook_key, CLUSTER, NONE, "")                                                          \
    X(delete_webhook, CLUSTER, NONE, "")                                                           \
    X(test_webhook, CLUSTER, NONE, "")                                                             \
    X(get_stores, SEE, NONE, "")                                                                   \
    X(adopt_store, CLUSTER, NONE, "")                                                              \
    X(look_through_store, CLUSTER, NONE, "")                                                       \
    X(get_unknown_checkpoints, CLUSTER, NONE, "")                                                  \
    X(note_unknown_checkpoints, CLUSTER, NONE, "")                                                 \
    X(get_resource_pools, SEE, NONE, "")                                                           \
    X(get_jobs, SEE, NONE, "")                                                                     \
    X(get_jobs_v2, SEE, NONE, "")                                                                  \
    X(get_job_queue_stats, SEE, NONE, "")                                                          \
    X(update_job_queue, OPERATE, JOB, ".updates[].jobId")                                          \
    X(resource_allocation_raw, CLUSTER, NONE, "")                                                  \
    X(resource_allocation_aggregated, CLUSTER, NONE, "")

#define RULES(X)                                                                                   \
    RULES_PLAIN(X)                                                                                 \
    RULES_USERS(X)                                                                                 \
    RULES_EXPERIMENTS(X)                                                                           \
    RULES_PLACES(X)                                                                                \
    RULES_MODELS(X)                                                                                \
    RULES_TRIALS(X)                                                                                \
    RULES_TASKS(X)                                                                                 \
    RULES_CLUSTER(X)

#endif
