/* The parts of fsx.h that work on whole trees: create, remove, walk. */
#include "fsx.h"

#include "mem.h"
#include "vec.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One descriptor is open per level; deeper trees are no one's real work. */
#define WALK_DEPTH_MAX 128
/* Below this depth removal moves a directory up instead of going down: no tree is too deep. */
#define REMOVE_DEPTH_MAX 64

static int fail_io(struct det_err *err, const char *what, const char *path)
{
    return det_fail_errno(err, det_code_of_errno(errno), errno, "%s %s", what, path);
}

/* Makes one directory beneath `at` and returns it opened. */
static int make_and_open(int at, const char *name, mode_t mode, struct det_err *err)
{
    if (strcmp(name, "..") == 0)
        return det_fail(err, DET_EINVAL, "create directory: \"..\" is refused in a path");
    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return fail_io(err, "create directory", name);
    return fsx_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0, err);
}

/* Who may write a directory and not read it cannot sync it; nor are there syncs of one on each file
 * system. What else fails here would leave a name that a power cut takes away. */
static int sync_dir(int at)
{
    det_cleanup(det_closep) int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : -1;
    return fsync(fd) == 0 || errno == EINVAL || errno == EOPNOTSUPP ? 0 : -1;
}

/* As make_and_open for a path of the program's own: links and ".." are its business. What is put
 * beneath it may be promised to last, so its name does. */
static int make_trusted(int at, const char *name, mode_t mode, struct det_err *err)
{
    const int through = O_PATH | O_DIRECTORY | O_CLOEXEC;
    int fd = openat(at, name, through);
    if (fd >= 0 || errno != ENOENT)
        return fd >= 0 ? fd : fail_io(err, "open directory", name);
    if ((mkdirat(at, name, mode) < 0 && errno != EEXIST) || sync_dir(at) < 0)
        return fail_io(err, "create directory", name);
    fd = openat(at, name, through);
    return fd >= 0 ? fd : fail_io(err, "open directory", name);
}

int fsx_mkdirs(int dirfd, const char *path, mode_t mode, struct det_err *err)
{
    bool trusted = dirfd == AT_FDCWD;
    if (!trusted && *path == '/')
        return det_fail(err, DET_EINVAL, "create directory %s: the path leaves its directory",
                        path);
    det_cleanup(det_closep) int at = -1;
    if (*path == '/' && (at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return fail_io(err, "open", "/");
    for (const char *part = path; *part;) {
        size_t n = strcspn(part, "/");
        det_cleanup(freep) char *name = det_strndup(part, n);
        part += n + strspn(part + n, "/");
        if (n == 0)
            continue;
        int from = at >= 0 ? at : dirfd;
        int next =
            trusted ? make_trusted(from, name, mode, err) : make_and_open(from, name, mode, err);
        if (next < 0)
            return det_wrap(err, next, "%s", path);
        det_closep(&at);
        at = next;
    }
    return 0;
}

/* ---- removal ---- */

struct removal {
    int top;        /* where what lies too deep is moved up to */
    unsigned moved; /* since the last pass over top, so another pass is needed */
};

static int remove_below(struct removal *r, int fd, int depth, struct det_err *err);

static int move_up(struct removal *r, int at, const char *name, struct det_err *err)
{
    static const char prefix[] = ".det-remove-";
    for (unsigned i = 0; i < 1000000; i++) {
        char up[40];
        snprintf(up, sizeof up, "%s%u", prefix, r->moved + i);
        if (faccessat(r->top, up, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        r->moved += i + 1;
        return renameat(at, name, r->top, up) < 0 ? fail_io(err, "move up", name) : 0;
    }
    return det_fail(err, DET_EIO, "remove %s: no free name", name);
}

static int remove_dir(struct removal *r, int at, const char *name, int depth, struct det_err *err)
{
    if (depth >= REMOVE_DEPTH_MAX)
        return move_up(r, at, name, err);
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
        fd = openat(at, name, flags);
    if (fd < 0)
        return errno == ENOENT ? 0 : fail_io(err, "open directory", name);
    int rc = remove_below(r, fd, depth + 1, err); /* takes fd */
    if (rc < 0)
        return det_wrap(err, rc, "%s", name);
    return unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? fail_io(err, "remove", name)
                                                                   : 0;
}

static int remove_entry(struct removal *r, int at, const char *name, int depth, struct det_err *err)
{
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno == EISDIR || errno == EPERM)
        return remove_dir(r, at, name, depth, err);
    if (errno == EACCES && fchmod(at, 0700) == 0 && unlinkat(at, name, 0) == 0)
        return 0;
    return errno == EISDIR ? remove_dir(r, at, name, depth, err) : fail_io(err, "remove", name);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void closedirp(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* Empties the directory fd, which it takes. */
static int remove_below(struct removal *r, int fd, int depth, struct det_err *err)
{
    det_cleanup(closedirp) DIR *d = fdopendir(fd);
    if (!d) {
        int rc = fail_io(err, "read", "directory");
        close(fd);
        return rc;
    }
    errno = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL; errno = 0) {
        int rc = is_dots(e->d_name) ? 0 : remove_entry(r, fd, e->d_name, depth, err);
        if (rc < 0)
            return rc;
    }
    return errno ? fail_io(err, "read", "directory") : 0;
}

/* Empties the directory fd (borrowed), pass after pass while something was moved up into it. */
static int remove_all_below(int fd, struct det_err *err)
{
    struct removal r = {.top = fd};
    do {
        r.moved = 0;
        int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (again < 0)
            return fail_io(err, "open", "directory");
        int rc = remove_below(&r, again, 0, err);
        if (rc < 0)
            return rc;
    } while (r.moved);
    return 0;
}

int fsx_remove_tree(int dirfd, const char *path, struct det_err *err)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    det_cleanup(freep) char *whole = det_strndup(path, n);
    char *slash = strrchr(whole, '/');
    const char *name = slash ? slash + 1 : whole;
    if (!*name || is_dots(name))
        return det_fail(err, DET_EINVAL, "remove %s: not the name of a file or directory", path);
    det_cleanup(freep) char *dir =
        slash ? det_strndup(whole, slash == whole ? 1 : (size_t)(slash - whole)) : det_strdup(".");
    det_cleanup(det_closep) int parent = fsx_open_dir(dirfd, dir, err);
    if (parent < 0)
        return parent == DET_ENOENT ? 0 : det_wrap(err, parent, "remove %s", path);
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return fail_io(err, "remove", path);
    fchmodat(parent, name, 0700, 0); /* fails where it is not ours: the open then says so */
    det_cleanup(det_closep) int fd =
        openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail_io(err, "remove", path);
    int rc = remove_all_below(fd, err);
    if (rc < 0)
        return det_wrap(err, rc, "remove %s", path);
    return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT
               ? fail_io(err, "remove", path)
               : 0;
}

/* ---- walking ---- */

typedef VEC(char *) names;

struct walk {
    walk_fn *fn;
    void *arg;
    bool all;        /* links and special files too */
    struct buf path; /* of the directory at hand, with its '/' */
};

static void names_finish(names *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    vec_free(l);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(int fd, names *out, struct det_err *err)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    det_cleanup(closedirp) DIR *d = again >= 0 ? fdopendir(again) : NULL;
    if (!d) {
        int rc = fail_io(err, "read", "directory");
        det_closep(&again);
        return rc;
    }
    errno = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL; errno = 0)
        if (!is_dots(e->d_name))
            vec_push(out, det_strdup(e->d_name));
    if (errno) /* half a list would be taken for all there is */
        return fail_io(err, "read", "directory");
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_name);
    return 0;
}

static int walk_below(struct walk *w, int fd, int depth, struct det_err *err);

static int walk_entry(struct walk *w, int fd, const char *name, int depth, struct det_err *err)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail_io(err, "stat", name);
    size_t from = w->path.len;
    buf_add_str(&w->path, name);
    int rc = 0;
    if (S_ISREG(st.st_mode)) {
        rc = w->fn(w->arg, w->path.p, false, (uint64_t)st.st_size, err);
    } else if (S_ISDIR(st.st_mode)) {
        buf_add_ch(&w->path, '/');
        rc = w->fn(w->arg, w->path.p, true, 0, err);
        det_cleanup(det_closep) int sub = -1;
        if (rc == 0) {
            sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            rc =
                sub < 0 ? fail_io(err, "open directory", name) : walk_below(w, sub, depth + 1, err);
        } else if (rc == FSX_SKIP) {
            rc = 0;
        }
    } else if (w->all) {
        rc = w->fn(w->arg, w->path.p, false, 0, err);
    }
    w->path.len = from;
    w->path.p[from] = '\0';
    return rc;
}

static int walk_below(struct walk *w, int fd, int depth, struct det_err *err)
{
    if (depth > WALK_DEPTH_MAX)
        return det_fail(err, DET_ETOOBIG, "%s: directories nested above %d levels",
                        buf_str(&w->path), WALK_DEPTH_MAX);
    det_cleanup(names_finish) names l = {0};
    int rc = list_names(fd, &l, err);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        rc = walk_entry(w, fd, l.v[i], depth, err);
    return rc;
}

static int walk_tree(struct walk w, int dirfd, struct det_err *err)
{
    int rc = walk_below(&w, dirfd, 0, err);
    buf_finish(&w.path);
    return rc;
}

int fsx_walk(int dirfd, walk_fn *fn, void *arg, struct det_err *err)
{
    return walk_tree((struct walk){.fn = fn, .arg = arg}, dirfd, err);
}

int fsx_walk_all(int dirfd, walk_fn *fn, void *arg, struct det_err *err)
{
    return walk_tree((struct walk){.fn = fn, .arg = arg, .all = true}, dirfd, err);
}
