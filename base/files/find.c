#include "find.h"

#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char *find_self(void)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    return n > 0 ? det_strdup(exe) : NULL;
}

char *find_beside(const char *place, int mode)
{
    det_cleanup(freep) char *exe = find_self();
    const char *slash = exe ? strrchr(exe, '/') : NULL;
    if (!slash)
        return NULL;
    det_cleanup(freep) char *file = det_asprintf("%.*s/%s", (int)(slash - exe), exe, place);
    return access(file, mode) == 0 ? det_take(file) : NULL;
}

/* With the rights that a child will have. */
static bool is_program(const char *file)
{
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
           faccessat(AT_FDCWD, file, X_OK, AT_EACCESS) == 0;
}

char *find_on_path(const char *path, const char *name)
{
    if (strchr(name, '/'))
        return det_strdup(name);
    for (const char *p = path ? path : "/usr/bin:/bin"; *p; p += strspn(p, ":")) {
        size_t n = strcspn(p, ":");
        det_cleanup(freep) char *file = det_asprintf("%.*s/%s", (int)n, p, name);
        if (*p == '/' && is_program(file))
            return det_take(file);
        p += n;
    }
    return NULL;
}

char *find_closed_folder(const char *path)
{
    struct stat st;
    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        det_cleanup(freep) char *folder = det_strndup(path, (size_t)(p - path));
        if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
            faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) < 0)
            return det_take(folder);
    }
    return NULL;
}

bool find_has_torch(const char *python)
{
    char *const argv[] = {(char *)python, "-c",
                          "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)",
                          NULL};
    char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    pid_t pid;
    int status;
    if (posix_spawn(&pid, python, NULL, NULL, argv, env) != 0)
        return false;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

char *find_python(const char *path, const char *given)
{
    bool is_given = given && *given;
    det_cleanup(freep) char *first = find_on_path(path, is_given ? given : "python3");
    if (is_given || (first && find_has_torch(first)))
        return det_take(first);
    return find_has_torch("/usr/bin/python3") ? det_strdup("/usr/bin/python3") : NULL;
}
