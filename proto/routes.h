/*
 * The routes of the REST API, one line each, checked against openapi.yaml by tests/unit/proto.
 * X(name, METHOD, pattern, AUTH, BODY): `name` is the operationId, and the handler is api_<name>;
 * AUTH one of NONE USER ANY ADMIN (http.h: HTTP_AUTH_*); BODY is DEFAULT (1 MiB, and 4 KiB where
 * AUTH is NONE), BUNDLE (256 KiB), LARGE (4 MiB), REPORT (32 MiB) or MAX (96 MiB).
 */
#ifndef PROTO_ROUTES_H
#define PROTO_ROUTES_H

#include <stddef.h>

#define ROUTES_PLAIN(X)                                                                            \
    X(info, GET, "/info", NONE, DEFAULT)                                                           \
    X(health, GET, "/healthz", NONE, DEFAULT)                                                      \
    X(readiness, GET, "/readyz", NONE, DEFAULT)                                                    \
    X(prometheus, GET, "/metrics", NONE, DEFAULT)                                                  \
    X(legacy_login, POST, "/login", NONE, DEFAULT)                                                 \
    X(preview_search, POST, "/searcher/preview", USER, DEFAULT)                                    \
    X(download_model_def, GET, "/experiments/{experimentId}/model_def", USER, DEFAULT)             \
    X(download_file, GET, "/experiments/{experimentId}/file/download", USER, DEFAULT)              \
    X(download_checkpoint, GET, "/checkpoints/{checkpointUuid}", USER, DEFAULT)                    \
    X(preview_gc, GET, "/experiments/{id}/preview_gc", USER, DEFAULT)                              \
    X(download_allocation_raw, GET, "/resources/allocation/raw", ADMIN, DEFAULT)                   \
    X(download_allocations_csv, GET, "/resources/allocation/allocations-csv", ADMIN, DEFAULT)      \
    X(download_allocation_aggregated, GET, "/resources/allocation/aggregated", ADMIN, DEFAULT)

#define ROUTES_USERS(X)                                                                            \
    X(login, POST, "/api/v1/auth/login", NONE, DEFAULT)                                            \
    X(logout, POST, "/api/v1/auth/logout", ANY, DEFAULT)                                           \
    X(make_login_link, POST, "/api/v1/auth/link", USER, DEFAULT)                                   \
    X(exchange_login_link, POST, "/api/v1/auth/link/exchange", NONE, DEFAULT)                      \
    X(current_user, GET, "/api/v1/auth/user", USER, DEFAULT)                                       \
    X(get_me, GET, "/api/v1/me", ANY, DEFAULT)                                                     \
    X(get_users, GET, "/api/v1/users", USER, DEFAULT)                                              \
    X(get_user, GET, "/api/v1/users/{userId}", USER, DEFAULT)                                      \
    X(get_user_setting, GET, "/api/v1/users/setting", USER, DEFAULT)                               \
    X(post_user_setting, POST, "/api/v1/users/setting", USER, DEFAULT)                             \
    X(reset_user_setting, POST, "/api/v1/users/setting/reset", USER, DEFAULT)                      \
    X(get_user_by_username, GET, "/api/v1/users/{username}/by-username", USER, DEFAULT)            \
    X(post_user, POST, "/api/v1/users", ADMIN, DEFAULT)                                            \
    X(patch_user, PATCH, "/api/v1/users/{userId}", USER, DEFAULT)                                  \
    X(set_user_password, POST, "/api/v1/users/{userId}/password", USER, DEFAULT)                   \
    X(post_token, POST, "/api/v1/tokens", USER, DEFAULT)                                           \
    X(get_tokens, GET, "/api/v1/tokens", USER, DEFAULT)                                            \
    X(patch_token, PATCH, "/api/v1/tokens/{tokenId}", USER, DEFAULT)                               \
    X(search_groups, POST, "/api/v1/groups/search", USER, DEFAULT)                                 \
    X(get_group, GET, "/api/v1/groups/{groupId}", USER, DEFAULT)                                   \
    X(post_group, POST, "/api/v1/groups", ADMIN, DEFAULT)                                          \
    X(put_group, PUT, "/api/v1/groups/{groupId}", ADMIN, DEFAULT)                                  \
    X(delete_group, DELETE, "/api/v1/groups/{groupId}", ADMIN, DEFAULT)                            \
    X(assign_groups, PATCH, "/api/v1/users/assignments", ADMIN, DEFAULT)                           \
    X(get_permissions_summary, GET, "/api/v1/permissions/summary", USER, DEFAULT)                  \
    X(search_roles, POST, "/api/v1/roles/search", USER, DEFAULT)                                   \
    X(search_roles_assignable, POST, "/api/v1/roles/search/by-assignability", USER, DEFAULT)       \
    X(get_roles_by_id, POST, "/api/v1/roles/search/by-ids", USER, DEFAULT)                         \
    X(get_roles_of_user, GET, "/api/v1/roles/search/by-user/{userId}", USER, DEFAULT)              \
    X(get_roles_of_group, GET, "/api/v1/roles/search/by-group/{groupId}", USER, DEFAULT)           \
    X(get_roles_of_workspace, GET, "/api/v1/roles/workspace/{workspaceId}", USER, DEFAULT)         \
    X(add_assignments, POST, "/api/v1/roles/add-assignments", USER, DEFAULT)                       \
    X(remove_assignments, POST, "/api/v1/roles/remove-assignments", USER, DEFAULT)                 \
    X(get_master, GET, "/api/v1/master", NONE, DEFAULT)                                            \
    X(get_telemetry, GET, "/api/v1/master/telemetry", NONE, DEFAULT)                               \
    X(get_master_config, GET, "/api/v1/master/config", ADMIN, DEFAULT)                             \
    X(get_lives, GET, "/api/v1/master/lives", ADMIN, DEFAULT)                                      \
    X(get_strays, GET, "/api/v1/master/strays", ADMIN, DEFAULT)                                    \
    X(delete_strays, DELETE, "/api/v1/master/strays", ADMIN, DEFAULT)                              \
    X(get_audit, GET, "/api/v1/master/audit", ADMIN, DEFAULT)                                      \
    X(rotate_authority, POST, "/api/v1/master/authority/rotate", ADMIN, DEFAULT)                   \
    X(master_logs, GET, "/api/v1/master/logs", USER, DEFAULT)                                      \
    X(cleanup_logs, POST, "/api/v1/master/cleanup_logs", ADMIN, DEFAULT)

#define ROUTES_EXPERIMENTS(X)                                                                      \
    X(create_experiment, POST, "/api/v1/experiments", USER, MAX)                                   \
    X(put_external_experiment, PUT, "/api/v1/experiments/by-external-id/{externalExperimentId}",   \
      USER, MAX)                                                                                   \
    X(get_experiments, GET, "/api/v1/experiments", USER, DEFAULT)                                  \
    X(search_experiments, GET, "/api/v1/experiments-search", USER, DEFAULT)                        \
    X(group_experiments, GET, "/api/v1/experiments-groups", USER, DEFAULT)                         \
    X(get_experiment, GET, "/api/v1/experiments/{experimentId}", ANY, DEFAULT)                     \
    X(get_experiment_trials, GET, "/api/v1/experiments/{experimentId}/trials", USER, DEFAULT)      \
    X(get_model_def, GET, "/api/v1/experiments/{experimentId}/model_def", USER, DEFAULT)           \
    X(get_model_def_tree, GET, "/api/v1/experiments/{experimentId}/file_tree", USER, DEFAULT)      \
    X(get_model_def_file, POST, "/api/v1/experiments/{experimentId}/file", USER, DEFAULT)          \
    X(get_validation_history, GET, "/api/v1/experiments/{experimentId}/validation-history", USER,  \
      DEFAULT)                                                                                     \
    X(get_best_searcher_validation_metric, GET,                                                    \
      "/api/v1/experiments/{experimentId}/searcher/best_searcher_validation_metric", ANY, DEFAULT) \
    X(get_searcher_events, GET, "/api/v1/experiments/{experimentId}/searcher_events", USER,        \
      DEFAULT)                                                                                     \
    X(post_searcher_operations, POST, "/api/v1/experiments/{experimentId}/searcher_operations",    \
      USER, LARGE)                                                                                 \
    X(replay_search, GET, "/api/v1/experiments/{experimentId}/searcher/replay", USER, DEFAULT)     \
    X(get_rungs, GET, "/api/v1/experiments/{experimentId}/rungs", USER, DEFAULT)                   \
    X(preview_hp_search, POST, "/api/v1/preview-hp-search", USER, DEFAULT)                         \
    X(get_experiment_checkpoints, GET, "/api/v1/experiments/{id}/checkpoints", USER, DEFAULT)      \
    X(get_experiment_labels, GET, "/api/v1/experiment/labels", USER, DEFAULT)                      \
    X(activate_experiments, POST, "/api/v1/experiments/activate", USER, DEFAULT)                   \
    X(pause_experiments, POST, "/api/v1/experiments/pause", USER, DEFAULT)                         \
    X(cancel_experiments, POST, "/api/v1/experiments/cancel", USER, DEFAULT)                       \
    X(kill_experiments, POST, "/api/v1/experiments/kill", USER, DEFAULT)                           \
    X(archive_experiments, POST, "/api/v1/experiments/archive", USER, DEFAULT)                     \
    X(unarchive_experiments, POST, "/api/v1/experiments/unarchive", USER, DEFAULT)                 \
    X(delete_experiments, DELETE, "/api/v1/experiments/delete", USER, DEFAULT)                     \
    X(continue_experiment, POST, "/api/v1/experiments/continue", USER, DEFAULT)                    \
    X(activate_experiment, POST, "/api/v1/experiments/{id}/activate", USER, DEFAULT)               \
    X(pause_experiment, POST, "/api/v1/experiments/{id}/pause", USER, DEFAULT)                     \
    X(cancel_experiment, POST, "/api/v1/experiments/{id}/cancel", USER, DEFAULT)                   \
    X(kill_experiment, POST, "/api/v1/experiments/{id}/kill", USER, DEFAULT)                       \
    X(archive_experiment, POST, "/api/v1/experiments/{id}/archive", USER, DEFAULT)                 \
    X(unarchive_experiment, POST, "/api/v1/experiments/{id}/unarchive", USER, DEFAULT)             \
    X(delete_experiment, DELETE, "/api/v1/experiments/{experimentId}", USER, DEFAULT)              \
    X(patch_experiment, PATCH, "/api/v1/experiments/{experiment.id}", USER, DEFAULT)               \
    X(move_experiment, POST, "/api/v1/experiments/{experimentId}/move", USER, DEFAULT)             \
    X(move_experiments, POST, "/api/v1/experiments/move", USER, DEFAULT)                           \
    X(put_experiment_label, PUT, "/api/v1/experiments/{experimentId}/labels/{label}", USER,        \
      DEFAULT)                                                                                     \
    X(delete_experiment_label, DELETE, "/api/v1/experiments/{experimentId}/labels/{label}", USER,  \
      DEFAULT)

#define ROUTES_PLACES(X)                                                                           \
    X(get_templates, GET, "/api/v1/templates", USER, DEFAULT)                                      \
    X(get_template, GET, "/api/v1/templates/{templateName}", USER, DEFAULT)                        \
    X(post_template, POST, "/api/v1/templates/{template.name}", USER, DEFAULT)                     \
    X(put_template, PUT, "/api/v1/templates/{template.name}", USER, DEFAULT)                       \
    X(patch_template, PATCH, "/api/v1/templates/{templateName}", USER, DEFAULT)                    \
    X(delete_template, DELETE, "/api/v1/templates/{templateName}", USER, DEFAULT)                  \
    X(get_views, GET, "/api/v1/views", USER, DEFAULT)                                              \
    X(post_view, POST, "/api/v1/views", USER, DEFAULT)                                             \
    X(get_view, GET, "/api/v1/views/{viewId}", USER, DEFAULT)                                      \
    X(patch_view, PATCH, "/api/v1/views/{viewId}", USER, DEFAULT)                                  \
    X(delete_view, DELETE, "/api/v1/views/{viewId}", USER, DEFAULT)                                \
    X(get_workspaces, GET, "/api/v1/workspaces", USER, DEFAULT)                                    \
    X(post_workspace, POST, "/api/v1/workspaces", USER, DEFAULT)                                   \
    X(get_workspace, GET, "/api/v1/workspaces/{id}", USER, DEFAULT)                                \
    X(delete_workspace, DELETE, "/api/v1/workspaces/{id}", USER, DEFAULT)                          \
    X(patch_workspace, PATCH, "/api/v1/workspaces/{id}", USER, DEFAULT)                            \
    X(archive_workspace, POST, "/api/v1/workspaces/{id}/archive", USER, DEFAULT)                   \
    X(unarchive_workspace, POST, "/api/v1/workspaces/{id}/unarchive", USER, DEFAULT)               \
    X(get_workspace_projects, GET, "/api/v1/workspaces/{id}/projects", USER, DEFAULT)              \
    X(post_project, POST, "/api/v1/workspaces/{workspaceId}/projects", USER, DEFAULT)              \
    X(get_project, GET, "/api/v1/projects/{id}", USER, DEFAULT)                                    \
    X(delete_project, DELETE, "/api/v1/projects/{id}", USER, DEFAULT)                              \
    X(patch_project, PATCH, "/api/v1/projects/{id}", USER, DEFAULT)                                \
    X(archive_project, POST, "/api/v1/projects/{id}/archive", USER, DEFAULT)                       \
    X(unarchive_project, POST, "/api/v1/projects/{id}/unarchive", USER, DEFAULT)

#define ROUTES_MODELS(X)                                                                           \
    X(get_models, GET, "/api/v1/models", USER, DEFAULT)                                            \
    X(post_model, POST, "/api/v1/models", USER, DEFAULT)                                           \
    X(get_model, GET, "/api/v1/models/{modelName}", USER, DEFAULT)                                 \
    X(patch_model, PATCH, "/api/v1/models/{modelName}", USER, DEFAULT)                             \
    X(delete_model, DELETE, "/api/v1/models/{modelName}", USER, DEFAULT)                           \
    X(archive_model, POST, "/api/v1/models/{modelName}/archive", USER, DEFAULT)                    \
    X(unarchive_model, POST, "/api/v1/models/{modelName}/unarchive", USER, DEFAULT)                \
    X(move_model, POST, "/api/v1/models/{modelName}/move", USER, DEFAULT)                          \
    X(get_model_labels, GET, "/api/v1/model/labels", USER, DEFAULT)                                \
    X(get_model_versions, GET, "/api/v1/models/{modelName}/versions", USER, DEFAULT)               \
    X(post_model_version, POST, "/api/v1/models/{modelName}/versions", USER, DEFAULT)              \
    X(get_model_version, GET, "/api/v1/models/{modelName}/versions/{modelVersionNum}", USER,       \
      DEFAULT)                                                                                     \
    X(patch_model_version, PATCH, "/api/v1/models/{modelName}/versions/{modelVersionNum}", USER,   \
      DEFAULT)                                                                                     \
    X(delete_model_version, DELETE, "/api/v1/models/{modelName}/versions/{modelVersionNum}", USER, \
      DEFAULT)

#define ROUTES_TRIALS(X)                                                                           \
    X(post_trial, POST, "/api/v1/trials", USER, DEFAULT)                                           \
    X(put_trial, PUT, "/api/v1/trials", USER, DEFAULT)                                             \
    X(patch_trial, PATCH, "/api/v1/trials/{trialId}", USER, DEFAULT)                               \
    X(start_trial, POST, "/api/v1/trials/{trialId}/start", USER, DEFAULT)                          \
    X(get_trial, GET, "/api/v1/trials/{trialId}", ANY, DEFAULT)                                    \
    X(get_trial_timeline, GET, "/api/v1/trials/{id}/timeline", ANY, DEFAULT)                       \
    X(get_trial_why, GET, "/api/v1/trials/{id}/why", USER, DEFAULT)                                \
    X(get_experiment_why, GET, "/api/v1/experiments/{id}/why", USER, DEFAULT)                      \
    X(get_job_why, GET, "/api/v1/jobs/{jobId}/why", USER, DEFAULT)                                 \
    X(get_trial_workloads, GET, "/api/v1/trials/{trialId}/workloads", USER, DEFAULT)               \
    X(get_trial_checkpoints, GET, "/api/v1/trials/{id}/checkpoints", ANY, DEFAULT)                 \
    X(trial_logs, GET, "/api/v1/trials/{trialId}/logs", USER, DEFAULT)                             \
    X(trial_logs_fields, GET, "/api/v1/trials/{trialId}/logs/fields", USER, DEFAULT)               \
    X(kill_trial, POST, "/api/v1/trials/{id}/kill", USER, DEFAULT)                                 \
    X(ask_trial_stacks, POST, "/api/v1/trials/{id}/stacks", USER, DEFAULT)                         \
    X(compare_trials, GET, "/api/v1/trials/time-series", USER, DEFAULT)                            \
    X(exp_metric_names, GET, "/api/v1/experiments/metrics-stream/metric-names", USER, DEFAULT)     \
    X(exp_metric_batches, GET, "/api/v1/experiments/{experimentId}/metrics-stream/batches", USER,  \
      DEFAULT)                                                                                     \
    X(exp_trials_snapshot, GET,                                                                    \
      "/api/v1/experiments/{experimentId}/metrics-stream/trials-snapshot", USER, DEFAULT)          \
    X(exp_trials_sample, GET, "/api/v1/experiments/{experimentId}/metrics-stream/trials-sample",   \
      USER, DEFAULT)                                                                               \
    X(get_metrics, GET, "/api/v1/trials/metrics/trial_metrics", USER, DEFAULT)                     \
    X(get_training_metrics, GET, "/api/v1/trials/metrics/training_metrics", USER, DEFAULT)         \
    X(get_validation_metrics, GET, "/api/v1/trials/metrics/validation_metrics", USER, DEFAULT)     \
    X(get_searcher_operation, GET, "/api/v1/trials/{trialId}/searcher/operation", ANY, DEFAULT)    \
    X(post_progress, POST, "/api/v1/trials/{trialId}/progress", ANY, DEFAULT)                      \
    X(post_completed_operation, POST, "/api/v1/trials/{trialId}/searcher/completed_operation",     \
      ANY, DEFAULT)                                                                                \
    X(post_early_exit, POST, "/api/v1/trials/{trialId}/early_exit", ANY, DEFAULT)                  \
    X(post_runner_metadata, POST, "/api/v1/trials/{trialId}/runner/metadata", ANY, DEFAULT)        \
    X(post_metrics, POST, "/api/v1/trials/{trialId}/metrics", ANY, REPORT)                         \
    X(post_metrics_batch, POST, "/api/v1/trials/{trialId}/metrics/batch", ANY, BUNDLE)             \
    X(post_training_metrics, POST, "/api/v1/trials/{trialId}/training_metrics", ANY, REPORT)       \
    X(post_validation_metrics, POST, "/api/v1/trials/{trialId}/validation_metrics", ANY, REPORT)   \
    X(post_profiler_metrics, POST, "/api/v1/trials/profiler/metrics", ANY, LARGE)                  \
    X(get_profiler_series, GET, "/api/v1/trials/{trialId}/profiler/available_series", ANY,         \
      DEFAULT)                                                                                     \
    X(get_profiler_metrics, GET, "/api/v1/trials/{labels.trialId}/profiler/metrics", ANY, DEFAULT) \
    X(post_checkpoint, POST, "/api/v1/checkpoints", ANY, LARGE)                                    \
    X(adopt_checkpoint, POST, "/api/v1/checkpoints/adopt", ADMIN, DEFAULT)                         \
    X(patch_checkpoints, PATCH, "/api/v1/checkpoints", ANY, LARGE)                                 \
    X(delete_checkpoints, DELETE, "/api/v1/checkpoints", USER, DEFAULT)                            \
    X(remove_checkpoint_files, POST, "/api/v1/checkpoints/rm", USER, DEFAULT)                      \
    X(collect_checkpoints, POST, "/api/v1/checkpoints/gc", USER, DEFAULT)                          \
    X(undelete_checkpoints, POST, "/api/v1/checkpoints/undelete", USER, DEFAULT)                   \
    X(get_checkpoint, GET, "/api/v1/checkpoints/{checkpointUuid}", ANY, DEFAULT)                   \
    X(post_checkpoint_metadata, POST, "/api/v1/checkpoints/{checkpoint.uuid}/metadata", USER,      \
      DEFAULT)

#define ROUTES_TASKS(X)                                                                            \
    X(get_tasks, GET, "/api/v1/tasks", USER, DEFAULT)                                              \
    X(get_tasks_count, GET, "/api/v1/tasks/count", USER, DEFAULT)                                  \
    X(get_task, GET, "/api/v1/tasks/{taskId}", USER, DEFAULT)                                      \
    X(get_context_directory, GET, "/api/v1/tasks/{taskId}/context_directory", ANY, DEFAULT)        \
    X(get_task_accelerators, GET, "/api/v1/tasks/{taskId}/acceleratorData", USER, DEFAULT)         \
    X(task_logs, GET, "/api/v1/tasks/{taskId}/logs", USER, DEFAULT)                                \
    X(task_logs_fields, GET, "/api/v1/tasks/{taskId}/logs/fields", USER, DEFAULT)                  \
    X(post_task_logs, POST, "/api/v1/task/logs", ANY, LARGE)                                       \
    X(post_task_logs_plain, POST, "/task-logs", ANY, LARGE)                                        \
    X(get_allocation, GET, "/api/v1/allocations/{allocationId}", ANY, DEFAULT)                     \
    X(post_accelerators, POST, "/api/v1/allocations/{allocationId}/acceleratorData", ANY, DEFAULT) \
    X(rendezvous, GET, "/api/v1/allocations/{allocationId}/resources/{resourcesId}/rendezvous",    \
      ANY, DEFAULT)                                                                                \
    X(preemption_signal, GET, "/api/v1/allocations/{allocationId}/signals/preemption", ANY,        \
      DEFAULT)                                                                                     \
    X(ack_preemption, POST, "/api/v1/allocations/{allocationId}/signals/ack_preemption", ANY,      \
      DEFAULT)                                                                                     \
    X(all_gather, POST, "/api/v1/allocations/{allocationId}/all_gather", ANY, DEFAULT)             \
    X(mark_daemon, POST, "/api/v1/allocations/{allocationId}/resources/{resourcesId}/daemon", ANY, \
      DEFAULT)                                                                                     \
    X(allocation_ready, POST, "/api/v1/allocations/{allocationId}/ready", ANY, DEFAULT)            \
    X(allocation_waiting, POST, "/api/v1/allocations/{allocationId}/waiting", ANY, DEFAULT)

#define ROUTES_CLUSTER(X)                                                                          \
    X(get_agents, GET, "/api/v1/agents", USER, DEFAULT)                                            \
    X(get_agent, GET, "/api/v1/agents/{agentId}", USER, DEFAULT)                                   \
    X(get_slots, GET, "/api/v1/agents/{agentId}/slots", USER, DEFAULT)                             \
    X(get_slot, GET, "/api/v1/agents/{agentId}/slots/{slotId}", USER, DEFAULT)                     \
    X(post_join_token, POST, "/api/v1/agents/join-tokens", ADMIN, DEFAULT)                         \
    X(revoke_agent, POST, "/api/v1/agents/{agentId}/revoke", ADMIN, DEFAULT)                       \
    X(enable_agent, POST, "/api/v1/agents/{agentId}/enable", ADMIN, DEFAULT)                       \
    X(disable_agent, POST, "/api/v1/agents/{agentId}/disable", ADMIN, DEFAULT)                     \
    X(enable_slot, POST, "/api/v1/agents/{agentId}/slots/{slotId}/enable", ADMIN, DEFAULT)         \
    X(disable_slot, POST, "/api/v1/agents/{agentId}/slots/{slotId}/disable", ADMIN, DEFAULT)       \
    X(get_webhooks, GET, "/api/v1/webhooks", ADMIN, DEFAULT)                                       \
    X(post_webhook, POST, "/api/v1/webhooks", ADMIN, DEFAULT)                                      \
    X(get_webhook_key, GET, "/api/v1/webhooks/signing-key", ADMIN, DEFAULT)                        \
    X(delete_webhook, DELETE, "/api/v1/webhooks/{id}", ADMIN, DEFAULT)                             \
    X(test_webhook, POST, "/api/v1/webhooks/{id}/test", ADMIN, DEFAULT)                            \
    X(get_stores, GET, "/api/v1/checkpoint-stores", USER, DEFAULT)                                 \
    X(adopt_store, POST, "/api/v1/checkpoint-stores/adopt", ADMIN, DEFAULT)                        \
    X(look_through_store, POST, "/api/v1/checkpoint-stores/look", ADMIN, DEFAULT)                  \
    X(get_unknown_checkpoints, GET, "/api/v1/checkpoint-stores/unknown", ADMIN, DEFAULT)           \
    X(note_unknown_checkpoints, POST, "/api/v1/checkpoint-stores/found", ANY, MAX)                 \
    X(get_resource_pools, GET, "/api/v1/resource-pools", USER, DEFAULT)                            \
    X(get_jobs, GET, "/api/v1/job-queues", USER, DEFAULT)                                          \
    X(get_jobs_v2, GET, "/api/v1/job-queues-v2", USER, DEFAULT)                                    \
    X(get_job_queue_stats, GET, "/api/v1/job-queues/stats", USER, DEFAULT)                         \
    X(update_job_queue, POST, "/api/v1/job-queues", USER, DEFAULT)                                 \
    X(resource_allocation_raw, GET, "/api/v1/resources/allocation/raw", ADMIN, DEFAULT)            \
    X(resource_allocation_aggregated, GET, "/api/v1/resources/allocation/aggregated", ADMIN,       \
      DEFAULT)

#define ROUTES(X)                                                                                  \
    ROUTES_PLAIN(X)                                                                                \
    ROUTES_USERS(X)                                                                                \
    ROUTES_EXPERIMENTS(X)                                                                          \
    ROUTES_PLACES(X)                                                                               \
    ROUTES_MODELS(X)                                                                               \
    ROUTES_TRIALS(X)                                                                               \
    ROUTES_TASKS(X)                                                                                \
    ROUTES_CLUSTER(X)

struct route_info {
    const char *name, *method, *pattern, *auth;
};
extern const struct route_info routes_all[];
extern const size_t routes_count;

#endif
