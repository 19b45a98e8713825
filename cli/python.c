/* det python: an interpreter with torch, in which `import determined` works. */
#include "python.h"
#include "cli.h"
#include "find.h"
#include "mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char has_torch[] =
    "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)";

/* Looks at what it finds, and imports nothing. */
static bool can_train(const char *python)
{
    pid_t pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0) {
        execl(python, python, "-c", has_torch, (char *)NULL);
        _exit(127);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return status == 0;
}

/* The caller frees; NULL: there is none. */
static char *first_python(bool need_torch)
{
    const char *path = getenv("PATH");
    char *places det_cleanup(freep) = det_asprintf("%s:/usr/bin", path ? path : "");
    char *left = NULL;
    for (char *p = strtok_r(places, ":", &left); p; p = strtok_r(NULL, ":", &left)) {
        char *python = det_asprintf("%s/python3", p);
        if (access(python, X_OK) == 0 && (!need_torch || can_train(python)))
            return python;
        free(python);
    }
    return NULL;
}

/* Last, so that a package of the user's own comes first. */
static void add_package(void)
{
    char *init det_cleanup(freep) = find_beside("../lib/det/python/determined/__init__.py", R_OK);
    if (!init)
        return;
    init[strlen(init) - strlen("/determined/__init__.py")] = '\0';
    char *dir det_cleanup(freep) = realpath(init, NULL);
    const char *own = getenv("PYTHONPATH");
    char *whole det_cleanup(freep) =
        own && *own ? det_asprintf("%s:%s", own, dir ? dir : init) : det_strdup(dir ? dir : init);
    setenv("PYTHONPATH", whole, 1);
}

int python_become(char **argv, struct det_err *err)
{
    const char *named = getenv("DET_PYTHON_EXECUTABLE");
    char *python det_cleanup(freep) = named && *named ? det_strdup(named) : first_python(true);
    if (!python)
        python = first_python(false);
    if (!python)
        return det_fail(err, DET_ENOENT,
                        "there is no python3 on PATH: install it, or name one "
                        "in DET_PYTHON_EXECUTABLE"),
               CLI_FAILED;
    add_package();
    argv[0] = python;
    execv(python, argv);
    return det_fail_errno(err, DET_EIO, errno, "%s", python), CLI_FAILED;
}

/* Only for its help: what follows `det python` is not det's to read. */
static int show_usage(struct cli *c, struct det_err *err)
{
    (void)c, (void)err;
    return CLI_USAGE;
}

static const struct verb verbs[] = {
    {"", NULL, "[ARGUMENT...]", "python3 with the determined package: a script, -m, -c, or nothing",
     NULL, show_usage},
    {0},
};

const struct noun noun_python = {"python", "", NULL, "python3, with the determined package", verbs};
