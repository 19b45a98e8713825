/* det task: what runs and waits, by task, and the log of one. */
#include "cli.h"
#include "experiment.h"
#include "logs.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>

static void task_row(struct table *t, const json_t *task)
{
    table_cell(t, "%s", json_str(task, "taskId", ""));
    table_cell(t, "%s", json_str(task, "allocationId", ""));
    table_cell(t, "%s", json_str(task, "name", ""));
    table_cell(t, "%" PRId64, json_int(task, "slotsNeeded", 0));
    table_cell(t, "%s", show_time(json_str(task, "registeredTime", NULL)));
    table_cell(t, "%s", json_str(task, "resourcePool", ""));
    table_cell(t, "%s", json_array_size(json_arr(task, "resources")) ? "yes" : "no");
}

static int list_tasks(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"TASK",       "ALLOCATION", "NAME",  ">SLOTS",
                                        "REGISTERED", "POOL",       "PLACED"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/tasks") < 0)
        return CLI_FAILED;
    json_t *tasks = json_obj(answer, "allocationIdToSummary");
    if (cli_print_json(c, tasks))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    const char *key;
    json_t *task;
    json_object_foreach(tasks, key, task) task_row(t, task);
    table_print(t, "nothing runs and nothing waits");
    return 0;
}

static int print_logs(struct cli *c, struct det_err *err)
{
    char *task det_cleanup(freep) = cli_escaped(cli_arg(c, 0));
    char *path det_cleanup(freep) = det_asprintf("/tasks/%s/logs", task);
    return logs_print(c, path, err);
}

static const struct verb verbs[] = {
    {"list", "ls", "", "what runs and what waits", NULL, list_tasks},
    {"logs", NULL, "TASK", "its log", logs_opts, print_logs},
    {0},
};

const struct noun noun_task = {"task", "tsk", NULL, "tasks: list, read the log", verbs};
