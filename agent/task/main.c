/* det-task: started by det-agent, one for each allocation on its host; see task.h. */
#include "endtask.h"
#include "gcrun.h"
#include "log.h"
#include "reach.h"
#include "serve.h"
#include "task.h"

#include <stdio.h>
#include <string.h>

static int print_usage(FILE *to)
{
    fputs("usage: det-task DIR            runs the task described in DIR (started by det-agent)\n"
          "       det-task --recover DIR  ends what a killed det-task has left\n"
          "       det-task --end DIR      ends the task and its processes\n"
          "       det-task --serve        forks a det-task for each order of det-agent\n"
          "       det-task --probe        says what of namespaces the kernel refuses\n",
          to);
    return to == stdout ? 0 : 2;
}

static int end_task(const char *dir)
{
    struct det_err err = {0};
    if (endtask(dir, &err) == 0)
        return 0;
    log_error("%s", err.text);
    return 1;
}

static int probe_kernel(void)
{
    struct det_err err = {0};
    if (taskbox_probe(&err) == 0)
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

int main(int argc, char **argv)
{
    log_init("det-task", LOG_INFO);
    if (argc == 2 && strcmp(argv[1], "--gc") == 0)
        return gcrun_main();
    if (argc == 2 && strcmp(argv[1], "--reach") == 0)
        return reach_main();
    if (argc == 2 && strcmp(argv[1], "--probe") == 0)
        return probe_kernel();
    if (argc >= 2 && strcmp(argv[1], "--serve") == 0)
        return serve_main(argc, argv);
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_usage(stdout);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("det-task " DET_VERSION) < 0;
    if (argc == 3 && strcmp(argv[1], "--recover") == 0)
        return task_main(argv[2], TASK_RECOVER);
    if (argc == 3 && strcmp(argv[1], "--end") == 0)
        return end_task(argv[2]);
    if (argc != 2 || argv[1][0] == '-')
        return print_usage(stderr);
    return task_main(argv[1], TASK_RUN);
}
