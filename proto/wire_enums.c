/* The enums of the API (names and numbers are the contract's). */
#include "wire.h"

#define END                                                                                        \
    {                                                                                              \
        NULL, 0                                                                                    \
    }

const struct wire_name wire_order_by[] = {
    {"ORDER_BY_UNSPECIFIED", 0}, {"ORDER_BY_ASC", 1}, {"ORDER_BY_DESC", 2}, END};

/* The short names are what log shippers are known to send. */
const struct wire_name wire_log_level[] = {{"LOG_LEVEL_UNSPECIFIED", 0},
                                           {"LOG_LEVEL_TRACE", 1},
                                           {"LOG_LEVEL_DEBUG", 2},
                                           {"LOG_LEVEL_INFO", 3},
                                           {"LOG_LEVEL_WARNING", 4},
                                           {"LOG_LEVEL_ERROR", 5},
                                           {"LOG_LEVEL_CRITICAL", 6},
                                           {"TRACE", 1},
                                           {"DEBUG", 2},
                                           {"INFO", 3},
                                           {"WARNING", 4},
                                           {"ERROR", 5},
                                           {"CRITICAL", 6},
                                           END};

const struct wire_name wire_exp_state[] = {{"STATE_UNSPECIFIED", 0},
                                           {"STATE_ACTIVE", 1},
                                           {"STATE_PAUSED", 2},
                                           {"STATE_STOPPING_COMPLETED", 3},
                                           {"STATE_STOPPING_CANCELED", 4},
                                           {"STATE_STOPPING_ERROR", 5},
                                           {"STATE_COMPLETED", 6},
                                           {"STATE_CANCELED", 7},
                                           {"STATE_ERROR", 8},
                                           {"STATE_DELETED", 9},
                                           {"STATE_DELETING", 10},
                                           {"STATE_DELETE_FAILED", 11},
                                           {"STATE_STOPPING_KILLED", 12},
                                           {"STATE_QUEUED", 13},
                                           {"STATE_PULLING", 14},
                                           {"STATE_STARTING", 15},
                                           {"STATE_RUNNING", 16},
                                           END};

const struct wire_name wire_trial_state[] = {{"STATE_UNSPECIFIED", 0},
                                             {"STATE_ACTIVE", 1},
                                             {"STATE_PAUSED", 2},
                                             {"STATE_STOPPING_CANCELED", 3},
                                             {"STATE_STOPPING_KILLED", 4},
                                             {"STATE_STOPPING_COMPLETED", 5},
                                             {"STATE_STOPPING_ERROR", 6},
                                             {"STATE_CANCELED", 7},
                                             {"STATE_COMPLETED", 8},
                                             {"STATE_ERROR", 9},
                                             {"STATE_QUEUED", 10},
                                             {"STATE_PULLING", 11},
                                             {"STATE_STARTING", 12},
                                             {"STATE_RUNNING", 13},
                                             END};

const struct wire_name wire_checkpoint_state[] = {{"STATE_UNSPECIFIED", 0},
                                                  {"STATE_ACTIVE", 1},
                                                  {"STATE_COMPLETED", 2},
                                                  {"STATE_ERROR", 3},
                                                  {"STATE_DELETED", 4},
                                                  {"STATE_PARTIALLY_DELETED", 5},
                                                  END};

const struct wire_name wire_trial_sort[] = {{"SORT_BY_UNSPECIFIED", 0},
                                            {"SORT_BY_ID", 1},
                                            {"SORT_BY_START_TIME", 4},
                                            {"SORT_BY_END_TIME", 5},
                                            {"SORT_BY_STATE", 6},
                                            {"SORT_BY_BEST_VALIDATION_METRIC", 7},
                                            {"SORT_BY_LATEST_VALIDATION_METRIC", 8},
                                            {"SORT_BY_BATCHES_PROCESSED", 9},
                                            {"SORT_BY_DURATION", 10},
                                            {"SORT_BY_RESTARTS", 11},
                                            {"SORT_BY_CHECKPOINT_SIZE", 12},
                                            END};

const struct wire_name wire_exp_sort[] = {{"SORT_BY_UNSPECIFIED", 0},
                                          {"SORT_BY_ID", 1},
                                          {"SORT_BY_DESCRIPTION", 2},
                                          {"SORT_BY_START_TIME", 4},
                                          {"SORT_BY_END_TIME", 5},
                                          {"SORT_BY_STATE", 6},
                                          {"SORT_BY_NUM_TRIALS", 8},
                                          {"SORT_BY_PROGRESS", 9},
                                          {"SORT_BY_USER", 10},
                                          {"SORT_BY_NAME", 11},
                                          {"SORT_BY_FORKED_FROM", 12},
                                          {"SORT_BY_RESOURCE_POOL", 13},
                                          {"SORT_BY_PROJECT_ID", 14},
                                          {"SORT_BY_CHECKPOINT_SIZE", 15},
                                          {"SORT_BY_CHECKPOINT_COUNT", 16},
                                          {"SORT_BY_SEARCHER_METRIC_VAL", 17},
                                          END};

const struct wire_name wire_user_sort[] = {
    {"SORT_BY_UNSPECIFIED", 0}, {"SORT_BY_DISPLAY_NAME", 1},
    {"SORT_BY_USER_NAME", 2},   {"SORT_BY_ADMIN", 3},
    {"SORT_BY_ACTIVE", 4},      {"SORT_BY_MODIFIED_TIME", 5},
    {"SORT_BY_NAME", 6},        {"SORT_BY_LAST_AUTH_TIME", 7},
    {"SORT_BY_REMOTE", 8},      END};

const struct wire_name wire_template_sort[] = {
    {"SORT_BY_UNSPECIFIED", 0}, {"SORT_BY_NAME", 1}, END};

const struct wire_name wire_model_sort[] = {
    {"SORT_BY_UNSPECIFIED", 0},       {"SORT_BY_NAME", 1},
    {"SORT_BY_DESCRIPTION", 2},       {"SORT_BY_CREATION_TIME", 4},
    {"SORT_BY_LAST_UPDATED_TIME", 5}, {"SORT_BY_NUM_VERSIONS", 6},
    {"SORT_BY_WORKSPACE", 7},         END};

const struct wire_name wire_version_sort[] = {
    {"SORT_BY_UNSPECIFIED", 0}, {"SORT_BY_VERSION", 3}, {"SORT_BY_CREATION_TIME", 4}, END};

const struct wire_name wire_workspace_sort[] = {
    {"SORT_BY_UNSPECIFIED", 0}, {"SORT_BY_ID", 1}, {"SORT_BY_NAME", 2}, END};

const struct wire_name wire_project_sort[] = {{"SORT_BY_UNSPECIFIED", 0},
                                              {"SORT_BY_CREATION_TIME", 1},
                                              {"SORT_BY_LAST_EXPERIMENT_START_TIME", 2},
                                              {"SORT_BY_NAME", 3},
                                              {"SORT_BY_DESCRIPTION", 4},
                                              {"SORT_BY_ID", 5},
                                              END};

const struct wire_name wire_agent_sort[] = {
    {"SORT_BY_UNSPECIFIED", 0}, {"SORT_BY_ID", 1}, {"SORT_BY_TIME", 2}, END};

const struct wire_name wire_checkpoint_sort[] = {
    {"SORT_BY_UNSPECIFIED", 0},     {"SORT_BY_UUID", 1},
    {"SORT_BY_TRIAL_ID", 2},        {"SORT_BY_BATCH_NUMBER", 3},
    {"SORT_BY_END_TIME", 4},        {"SORT_BY_STATE", 5},
    {"SORT_BY_SEARCHER_METRIC", 6}, END};

const struct wire_name wire_filter_option[] = {{"FILTER_OPTION_UNSPECIFIED", 0},
                                               {"FILTER_OPTION_CHECKPOINT", 1},
                                               {"FILTER_OPTION_VALIDATION", 2},
                                               {"FILTER_OPTION_CHECKPOINT_OR_VALIDATION", 3},
                                               END};

const struct wire_name wire_metric_type[] = {{"METRIC_TYPE_UNSPECIFIED", 0},
                                             {"METRIC_TYPE_TRAINING", 1},
                                             {"METRIC_TYPE_VALIDATION", 2},
                                             END};

const struct wire_name wire_early_exit[] = {{"EXITED_REASON_UNSPECIFIED", 0},
                                            {"EXITED_REASON_INVALID_HP", 1},
                                            {"EXITED_REASON_INIT_INVALID_HP", 3},
                                            END};

const struct wire_name wire_job_state[] = {{"STATE_UNSPECIFIED", 0},
                                           {"STATE_QUEUED", 1},
                                           {"STATE_SCHEDULED", 2},
                                           {"STATE_SCHEDULED_BACKFILLED", 3},
                                           END};

const struct wire_name wire_profiler_type[] = {{"PROFILER_METRIC_TYPE_UNSPECIFIED", 0},
                                               {"PROFILER_METRIC_TYPE_SYSTEM", 1},
                                               {"PROFILER_METRIC_TYPE_TIMING", 2},
                                               {"PROFILER_METRIC_TYPE_MISC", 3},
                                               END};
