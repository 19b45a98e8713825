#include "op_compare.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "mem.h"
#include "op_result.h"

#define CASE_SECONDS                                                                               \
    60           /* of processor and device: the first case loads libraries from a cold disk */
#define BROKEN 3 /* exit status of a process whose device can do no more */

static struct det_engine *open_engine(const char *device)
{
    struct det_engine *e;
    struct det_err err;
    const struct det_engine_options o = {.device = device, .seed = 5, .threads = 2};
    if (det_engine_create(&o, &e, &err) == 0)
        return e;
    printf("off %s\n", err.text);
    exit(1);
}

static int compare_case(enum op_compare how, struct det_engine *known, struct det_engine *tested,
                        const struct op_case *c, struct det_err *err)
{
    det_cleanup(result_finish) struct result a = {0}, b = {0};
    int rc = result_of(how == OP_COMPARE_REF ? known : tested, c, &a, err);
    if (rc == 0)
        rc = result_of(tested, c, &b, err);
    if (rc == 0)
        rc = how == OP_COMPARE_REF ? result_compare(c, &a, &b, err) : result_same(c, &a, &b, err);
    return rc;
}

/* "case N" after each, "off TEXT" for what failed. */
static void compare_from(enum op_compare how, const char *device, int first)
{
    struct det_engine *known = open_engine("ref"), *tested = open_engine(device);
    for (int i = first; op_case_at(i); i++) {
        struct det_err err;
        alarm(CASE_SECONDS);
        int rc = compare_case(how, known, tested, op_case_at(i), &err);
        if (rc < 0)
            printf("off %s\n", err.text);
        printf("case %d\n", i);
        fflush(stdout);
        if (rc == DET_EDEVICE)
            _exit(BROKEN); /* an error of a device stays: whatever comes next would fail by it */
        det_engine_clear_error(tested);
    }
    det_engine_destroy(known);
    det_engine_destroy(tested);
}

bool op_compare_main(int argc, char **argv)
{
    if (argc != 5 || strcmp(argv[1], "--compare") != 0)
        return false;
    compare_from((enum op_compare)strtol(argv[2], NULL, 10), argv[3],
                 (int)strtol(argv[4], NULL, 10));
    return true;
}

static FILE *start(enum op_compare how, const char *device, int first, pid_t *ret)
{
    char from[16], mode[16];
    int pipe_fds[2];
    posix_spawn_file_actions_t actions;
    snprintf(from, sizeof from, "%d", first);
    snprintf(mode, sizeof mode, "%d", (int)how);
    char *argv[] = {
        (char[]){"test_ops"}, (char[]){"--compare"}, mode, det_strdup(device), from, NULL};
    if (pipe(pipe_fds) < 0)
        return NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
    posix_spawn_file_actions_addclose(&actions, pipe_fds[0]);
    int rc = posix_spawn(ret, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    free(argv[3]);
    close(pipe_fds[1]);
    return rc == 0 ? fdopen(pipe_fds[0], "r") : NULL;
}

/* Reads what a process says; *done counts its cases. The number of those that failed. */
static int hear(FILE *f, int *done)
{
    char line[DET_ERR_TEXT_MAX + 16];
    int failed = 0;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "case ", 5) == 0)
            ++*done;
        else if (strncmp(line, "off ", 4) == 0 && ++failed > 0)
            printf("  %s", line + 4);
    }
    return failed;
}

/* The case in which a process ended with `status`, if it did not end by itself. */
static int blame(int status, int at)
{
    const struct op_case *c = op_case_at(at);
    if (!WIFSIGNALED(status) || !c)
        return 0;
    printf("  %s (%s): %s\n", c->op, c->what,
           WTERMSIG(status) == SIGALRM ? "no end after 60 s" : strsignal(WTERMSIG(status)));
    return 1;
}

int op_compare_all(enum op_compare how, const char *device, int *ret_compared)
{
    int failed = 0, first = 0, status = 0;
    while (op_case_at(first)) {
        int done = 0;
        pid_t pid;
        FILE *f = start(how, device, first, &pid);
        if (!f)
            return -1;
        failed += hear(f, &done);
        fclose(f);
        if (waitpid(pid, &status, 0) != pid)
            return -1;
        int died = blame(status, first + done);
        failed += died;
        first += done + died;
        if (!died && status != 0 &&
            !(WIFEXITED(status) && WEXITSTATUS(status) == BROKEN && done > 0))
            return -1;
    }
    *ret_compared = first;
    return failed;
}
