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

#define LINKS_MAX 8

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

/* Where a link leads that cannot be followed; NULL: it is none. Caller frees. */
static char *target_of(const char *link)
{
    char target[PATH_MAX];
    struct stat st;
    if (stat(link, &st) == 0 || errno != EACCES)
        return NULL;
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n <= 0)
        return NULL;
    target[n] = '\0';
    int folder = (int)(strrchr(link, '/') - link);
    return *target == '/' ? det_strdup(target) : det_asprintf("%.*s/%s", folder, link, target);
}

static char *find_closed(const char *path, int links)
{
    struct stat st;
    for (const char *p = path; *p;) {
        p++;
        p += strcspn(p, "/");
        det_cleanup(freep) char *folder = det_strndup(path, (size_t)(p - path));
        if (*p && stat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
            faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) < 0)
            return det_take(folder);
        det_cleanup(freep) char *target = links > 0 ? target_of(folder) : NULL;
        det_cleanup(freep) char *beyond = target ? det_asprintf("%s%s", target, p) : NULL;
        if (beyond)
            return find_closed(beyond, links - 1);
    }
    return NULL;
}

char *find_closed_folder(const char *path)
{
    return find_closed(path, LINKS_MAX);
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
