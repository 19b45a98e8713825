/*
 * Records what a program asks of the file system below $POWER_ROOT, for replay.py: preloaded, it
 * writes a line for each change of a file, a name or of what is on the disk to $POWER_LOG.
 *
 *   create|mkdir DIR NAME INODE   link INODE DIR NAME   rename DIR NAME DIR NAME   unlink DIR NAME
 *   write INODE OFFSET BYTES   truncate INODE SIZE   fsync INODE   mark TEXT
 *
 * Names, bytes and texts are hex. A mark is what the program promises from then on: access() of
 * "/.power-mark/TEXT". What goes past libc's calls (mmap, stdio's own writes) is not seen;
 * replay.py compares the last state with the real one.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MARK     "/.power-mark/"
#define raw(...) real_syscall()(__VA_ARGS__)

typedef long syscall_fn(long number, ...);

static syscall_fn *real_syscall(void)
{
    static syscall_fn *fn;
    if (!fn)
        fn = (syscall_fn *)dlsym(RTLD_NEXT, "syscall");
    return fn;
}

/* One change at a time, so that lines stand in the order in which things happened. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void put(const void *p, size_t n)
{
    static int fd = -1;
    const char *path = getenv("POWER_LOG");
    if (fd < 0 && path)
        fd = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && raw(SYS_write, fd, p, n) != (ssize_t)n)
        abort(); /* a log with holes proves nothing */
}

static void put_hex(FILE *f, const void *p, size_t n)
{
    const unsigned char *b = p;
    fputc(' ', f);
    if (n == 0)
        fputc('-', f);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%02x", b[i]);
}

/* Is the open file below the root? Its inode, or 0. */
static ino_t inode_of(int fd)
{
    char link[64], path[4096];
    struct stat st;
    const char *root = getenv("POWER_ROOT");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = root ? readlink(link, path, sizeof path - 1) : -1;
    if (n <= 0 || fstat(fd, &st) < 0)
        return 0;
    path[n] = 0;
    size_t k = strlen(root);
    bool below = strncmp(path, root, k) == 0 && (path[k] == 0 || path[k] == '/');
    return below ? st.st_ino : 0;
}

struct place {
    ino_t dir;
    char name[256];
};

/* The directory that holds the last name of a path. */
static bool place_of(int at, const char *path, struct place *ret)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", path);
    for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
        dir[n - 1] = 0;
    char *slash = strrchr(dir, '/');
    snprintf(ret->name, sizeof ret->name, "%.255s", slash ? slash + 1 : dir);
    if (slash)
        slash[slash == dir ? 1 : 0] = 0;
    int fd = (int)raw(SYS_openat, at, slash ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ret->dir = fd < 0 ? 0 : inode_of(fd);
    if (fd >= 0)
        close(fd);
    return ret->dir != 0;
}

static void say(const char *what, const struct place *a, const struct place *b, ino_t inode)
{
    char *line;
    size_t n;
    FILE *f = open_memstream(&line, &n);
    fputs(what, f);
    if (strcmp(what, "link") == 0)
        fprintf(f, " %lu", (unsigned long)inode);
    for (const struct place *p = a; p; p = p == a ? b : NULL) {
        fprintf(f, " %lu", (unsigned long)p->dir);
        put_hex(f, p->name, strlen(p->name));
    }
    if (inode && strcmp(what, "link") != 0)
        fprintf(f, " %lu", (unsigned long)inode);
    fputc('\n', f);
    fclose(f);
    put(line, n);
    free(line);
}

static void say_bytes(ino_t inode, off_t at, const void *p, size_t bytes)
{
    char *line;
    size_t n;
    FILE *f = open_memstream(&line, &n);
    fprintf(f, "write %lu %lld", (unsigned long)inode, (long long)at);
    put_hex(f, p, bytes);
    fputc('\n', f);
    fclose(f);
    put(line, n);
    free(line);
}

static void say_number(const char *what, ino_t inode, long long number)
{
    char line[128];
    int n = number < 0
                ? snprintf(line, sizeof line, "%s %lu\n", what, (unsigned long)inode)
                : snprintf(line, sizeof line, "%s %lu %lld\n", what, (unsigned long)inode, number);
    put(line, (size_t)n);
}

/* Frees the lock and keeps errno. */
static void leave(void)
{
    int why = errno;
    pthread_mutex_unlock(&lock);
    errno = why;
}

/* ---- files ---- */

static int open_any(int at, const char *path, int flags, mode_t mode)
{
    struct place p;
    struct stat st;
    pthread_mutex_lock(&lock);
    bool makes = (flags & O_CREAT) && fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) < 0;
    int fd = (int)raw(SYS_openat, at, path, flags, mode);
    ino_t inode = fd >= 0 && (flags & (O_CREAT | O_TRUNC)) ? inode_of(fd) : 0;
    if (inode && makes && place_of(at, path, &p))
        say("create", &p, NULL, inode);
    else if (inode && (flags & O_TRUNC))
        say_number("truncate", inode, 0);
    leave();
    return fd;
}

#define OPENS(name)                                                                                \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;                    \
        va_end(ap);                                                                                \
        return open_any(AT_FDCWD, path, flags, mode);                                              \
    }
#define OPENS_AT(name)                                                                             \
    int name(int at, const char *path, int flags, ...)                                             \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;                    \
        va_end(ap);                                                                                \
        return open_any(at, path, flags, mode);                                                    \
    }
#define OPENS_2(name)                                                                              \
    int name(const char *path, int flags);                                                         \
    int name(const char *path, int flags)                                                          \
    {                                                                                              \
        return open_any(AT_FDCWD, path, flags, 0);                                                 \
    }
#define OPENS_AT_2(name)                                                                           \
    int name(int at, const char *path, int flags);                                                 \
    int name(int at, const char *path, int flags)                                                  \
    {                                                                                              \
        return open_any(at, path, flags, 0);                                                       \
    }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
OPENS_2(__open_2)
OPENS_2(__open64_2)
OPENS_AT_2(__openat_2)
OPENS_AT_2(__openat64_2)

/* openat2() is no call of libc's; who uses it knows kernels without it. */
long syscall(long number, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number != SYS_openat2)
        return raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    errno = ENOSYS;
    return -1;
}

static void wrote(int fd, off_t at, const void *p, ssize_t n)
{
    ino_t inode = n > 0 ? inode_of(fd) : 0;
    if (inode)
        say_bytes(inode, at, p, (size_t)n);
}

/* Where a write that names no place begins. */
static off_t position(int fd)
{
    struct stat st;
    if (inode_of(fd) == 0)
        return 0;
    if (fcntl(fd, F_GETFL) & O_APPEND)
        return fstat(fd, &st) < 0 ? 0 : st.st_size;
    return lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *p, size_t n)
{
    pthread_mutex_lock(&lock);
    off_t at = position(fd);
    ssize_t k = raw(SYS_write, fd, p, n);
    wrote(fd, at, p, k);
    leave();
    return k;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    pthread_mutex_lock(&lock);
    ssize_t k = raw(SYS_pwrite64, fd, p, n, at);
    wrote(fd, at, p, k);
    leave();
    return k;
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
    return pwrite(fd, p, n, at);
}

/* A part of them is a write of less, as the kernel may give too. */
ssize_t writev(int fd, const struct iovec *v, int n)
{
    for (int i = 0; i < n; i++)
        if (v[i].iov_len)
            return write(fd, v[i].iov_base, v[i].iov_len);
    return 0;
}

/* These two are refused where they would write below the root: who uses them has another way. */
ssize_t sendfile(int out, int in, off_t *at, size_t n)
{
    if (inode_of(out) == 0)
        return raw(SYS_sendfile, out, in, at, n);
    errno = EINVAL;
    return -1;
}

ssize_t sendfile64(int out, int in, off_t *at, size_t n)
{
    return sendfile(out, in, at, n);
}

ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags)
{
    if (inode_of(out) == 0)
        return raw(SYS_copy_file_range, in, in_at, out, out_at, n, flags);
    errno = ENOSYS;
    return -1;
}

int ftruncate(int fd, off_t size)
{
    pthread_mutex_lock(&lock);
    int rc = (int)raw(SYS_ftruncate, fd, size);
    ino_t inode = rc == 0 ? inode_of(fd) : 0;
    if (inode)
        say_number("truncate", inode, size);
    leave();
    return rc;
}

int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

static int sync_any(long call, int fd)
{
    pthread_mutex_lock(&lock);
    int rc = (int)raw(call, fd);
    ino_t inode = rc == 0 ? inode_of(fd) : 0;
    if (inode)
        say_number("fsync", inode, -1);
    leave();
    return rc;
}

int fsync(int fd)
{
    return sync_any(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_any(SYS_fdatasync, fd);
}

/* ---- names ---- */

int mkdirat(int at, const char *path, mode_t mode)
{
    struct place p;
    struct stat st;
    pthread_mutex_lock(&lock);
    int rc = (int)raw(SYS_mkdirat, at, path, mode);
    if (rc == 0 && place_of(at, path, &p) && fstatat(at, path, &st, 0) == 0)
        say("mkdir", &p, NULL, st.st_ino);
    leave();
    return rc;
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

int unlinkat(int at, const char *path, int flags)
{
    struct place p;
    pthread_mutex_lock(&lock);
    bool below = place_of(at, path, &p);
    int rc = (int)raw(SYS_unlinkat, at, path, flags);
    if (rc == 0 && below)
        say("unlink", &p, NULL, 0);
    leave();
    return rc;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int renameat2(int from, const char *a, int to, const char *b, unsigned flags)
{
    struct place pa, pb;
    pthread_mutex_lock(&lock);
    bool below = place_of(from, a, &pa) && place_of(to, b, &pb);
    int rc = (int)raw(SYS_renameat2, from, a, to, b, flags);
    if (rc == 0 && below)
        say("rename", &pa, &pb, 0);
    leave();
    return rc;
}

int renameat(int from, const char *a, int to, const char *b)
{
    return renameat2(from, a, to, b, 0);
}

int rename(const char *a, const char *b)
{
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, 0);
}

int linkat(int from, const char *a, int to, const char *b, int flags)
{
    struct place p;
    struct stat st;
    pthread_mutex_lock(&lock);
    int rc = (int)raw(SYS_linkat, from, a, to, b, flags);
    if (rc == 0 && place_of(to, b, &p) && fstatat(to, b, &st, AT_SYMLINK_NOFOLLOW) == 0)
        say("link", &p, NULL, st.st_ino);
    leave();
    return rc;
}

int link(const char *a, const char *b)
{
    return linkat(AT_FDCWD, a, AT_FDCWD, b, 0);
}

/* ---- promises ---- */

static bool mark(const char *path)
{
    char *line;
    size_t n;
    if (strncmp(path, MARK, strlen(MARK)) != 0)
        return false;
    FILE *f = open_memstream(&line, &n);
    fputs("mark", f);
    put_hex(f, path + strlen(MARK), strlen(path) - strlen(MARK));
    fputc('\n', f);
    fclose(f);
    pthread_mutex_lock(&lock);
    put(line, n);
    pthread_mutex_unlock(&lock);
    free(line);
    return true;
}

int access(const char *path, int mode)
{
    return mark(path) ? 0 : (int)raw(SYS_faccessat, AT_FDCWD, path, mode);
}
